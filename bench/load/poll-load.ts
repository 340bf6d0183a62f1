import { taskIdIn } from '../checks.ts'
import { messageParams } from '../scenarios/message.ts'
import { httpLoad, mcpLoad } from './http-load.ts'
import type { Load } from './load.ts'

/** A client that opens tasks which wait for an answer, and polls them. */
export interface PollLoad extends Load {
  /** `open` gives the id of a new task that waits; `poll` the answer for the task of an id. */
  call(method: 'open' | 'poll', taskId?: unknown): Promise<string>
}

/** Polls over MCP: tasks/get. `principal` names the caller. */
export async function mcpPollLoad(port: number, connections: number, principal?: string): Promise<PollLoad> {
  const load = await mcpLoad(port, connections, headersOf(principal))
  const open = async () => {
    const answer = await load.call('tools/call', { name: 'Bench', arguments: { message: 'ask' } })
    const { result } = JSON.parse(answer) as { result: { taskId: string } }
    return result.taskId
  }
  return { ...load, call: (method, taskId) => (method === 'open' ? open() : load.call('tasks/get', { taskId })) }
}

/** Polls over A2A: GetTask by JSON-RPC. */
export async function a2aPollLoad(port: number, connections: number, principal?: string): Promise<PollLoad> {
  const load = await httpLoad(port, connections, headersOf(principal))
  const open = async () => taskIdIn(await load.call('SendMessage', messageParams({ kind: 'ask' })))
  return { ...load, call: (method, id) => (method === 'open' ? open() : load.call('GetTask', { id })) }
}

function headersOf(principal: string | undefined): Readonly<Record<string, string>> {
  return principal === undefined ? {} : { 'x-principal': principal }
}
