import type { Message, Task } from '../../../../machines/protocol/objects.ts'
import type { TaskEvent } from '../../../../runtime/store/store.ts'
import {
  applyEvent,
  ArtifactList,
  newTaskRecord,
  projectTask,
  type TaskRecord
} from '../../../../runtime/store/task-record.ts'

/** The maximum number of separate events of a task. */
const MOST_EVENTS = 5000

/** The number of events that are folded at once above it. */
const FOLDED_AT_ONCE = 1000

/** The events of a task: `folded` is the task after the oldest events. */
export interface TaskEvents {
  readonly taskId: string
  readonly contextId: string
  readonly folded: TaskRecord
  /** In order. */
  readonly events: readonly TaskEvent[]
}

/** An unknown task. */
export function noEvents(taskId: string, contextId: string): TaskEvents {
  return { taskId, contextId, folded: newTaskRecord({ tenant: '', principal: '', contextId }, taskId), events: [] }
}

/** The same with more events; known ones are ignored. */
export function withEvents(before: TaskEvents, more: readonly TaskEvent[]): TaskEvents {
  const last = lastGeneration(before)
  const events = [...before.events, ...more.filter(({ generation }) => generation > last)]
  if (events.length <= MOST_EVENTS) return { ...before, events }
  const folded = copyOf(before.folded)
  for (const event of events.slice(0, FOLDED_AT_ONCE)) applyEvent(folded, event)
  return { ...before, folded, events: events.slice(FOLDED_AT_ONCE) }
}

/** The generation of the last event; 0 before the first. */
export function lastGeneration({ folded, events }: TaskEvents): number {
  return events.at(-1)?.generation ?? folded.generation
}

/** The earliest generation at which the task can be shown. */
export function firstGeneration({ folded, events }: TaskEvents): number {
  return folded.generation > 0 ? folded.generation : (events[0]?.generation ?? 0)
}

/** The task at a generation. Its history has only the agent's messages; `historyAt` adds the client's. */
export function taskAt({ folded, events }: TaskEvents, generation: number): Task {
  const record = copyOf(folded)
  for (const event of events) if (event.generation <= generation) applyEvent(record, event)
  return projectTask(record).task
}

/**
 * The messages up to a generation. `said` is the current history, oldest first. A client's message has no generation:
 * it is shown from the generation after the agent's message before it.
 */
export function historyAt({ folded, events }: TaskEvents, said: readonly Message[], generation: number): Message[] {
  const saidAt = new Map<string, number>()
  for (const { messageId } of folded.said) saidAt.set(messageId, folded.generation)
  for (const { generation, update } of events) {
    const message = 'statusUpdate' in update ? update.statusUpdate.status.message : undefined
    if (message) saidAt.set(message.messageId, generation)
  }
  let before = 0
  return said.filter(message => {
    const at = message.role === 'ROLE_AGENT' ? (saidAt.get(message.messageId) ?? before) : before + 1
    if (message.role === 'ROLE_AGENT') before = at
    return at <= generation
  })
}

function copyOf(record: TaskRecord): TaskRecord {
  const artifacts = record.artifacts && new ArtifactList()
  for (const artifact of record.artifacts?.copies() ?? []) artifacts?.set(artifact)
  return { ...record, artifacts, said: [...record.said] }
}
