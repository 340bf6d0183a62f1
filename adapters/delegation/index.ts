/** taskchart/delegation: tasks of other agents as child actors. */
export { delegate } from './delegate.ts'
export { remoteAgent } from './remote-agent.ts'
export type { RemoteAgent } from './remote-agent.ts'
export type { RemoteAnswer, RemoteInput, RemoteResult } from './remote-task.ts'
export type { RemoteEvent, RemoteQuestion } from './remote-record.ts'
