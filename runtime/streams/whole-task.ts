import type { Task } from '../../machines/protocol/objects.ts'
import type { Room } from '../access/call-context.ts'
import type { Limits } from '../access/limits.ts'
import { turnEnd } from '../primitives/event-loop.ts'
import type { MessageRow, ReadOptions, Scope, Store, StoredTask, TaskEvent } from '../store/store.ts'
import { applyEvent, applyMessage, newTaskRecord, projectTask } from '../store/task-record.ts'

/** With more bytes than this, a task is read in pieces, and its answer is written in pieces. */
export const LARGE_BYTES = 1024 * 1024

/** So many events have as many bytes as a piece, be they ever so small. */
const EVENTS_A_PIECE = 4096

/** Reads a task: a large one in pieces, when there is room for it, so that the event loop is never held for long. */
export async function readWhole(store: Store, scope: Scope, taskId: string, options: ReadOptions = {}, room?: Room): Promise<StoredTask | undefined> {
  const stored = await store.readTask(scope, taskId, { ...options, within: LARGE_BYTES })
  return stored && completed(store, scope, stored, options, room)
}

/**
 * Gives a task with its artifacts and history, of which a store gave neither because it is large. `undefined`: the task was
 * removed meanwhile.
 */
export async function completed(store: Store, scope: Scope, stored: StoredTask, options: ReadOptions, room?: Room): Promise<StoredTask | undefined> {
  const { task, generation, large } = stored
  if (!large) return stored
  await room?.(large.bytes)
  const record = newTaskRecord({ ...scope, contextId: task.contextId }, task.id)
  const messages: MessageRow[] = []
  while (messages.length < large.messages) {
    const piece = await store.readTaskMessages(scope, task.id, messages.length, LARGE_BYTES)
    if (piece.length === 0) return undefined
    messages.push(...piece.slice(0, large.messages - messages.length))
    await turnEnd()
  }
  let next = 0
  const apply = (event: TaskEvent) => {
    for (let message = messages[next]; message && (message.generation ?? 0) < event.generation; message = messages[next]) {
      applyMessage(record, message)
      next += 1
    }
    applyEvent(record, event)
  }
  while (record.generation < generation) {
    const piece = await store.readEvents(scope, task.id, record.generation, Math.min(EVENTS_A_PIECE, generation - record.generation), LARGE_BYTES)
    if (piece.length === 0) return undefined
    piece.forEach(apply)
    await turnEnd()
  }
  for (const message of messages.slice(next)) applyMessage(record, message)
  return projectTask(record, options)
}

/** The bytes of a task's artifacts that are texts and raw, if they alone make it large; else 0. */
export function largeBytes({ artifacts = [] }: Task): number {
  let length = 0
  for (const { parts } of artifacts) for (const part of parts) length += 'text' in part ? part.text.length : 'raw' in part ? part.raw.length : 0
  return length > LARGE_BYTES ? length : 0
}

/**
 * The tasks of a name before this one, oldest first: the message that opened a task refers to the one before. At most
 * `limits.referencedTasks` of them, the newest, and no more than fit into `limits.referencedBytes`.
 */
export async function roundsBefore({ store, limits }: { readonly store: Store; readonly limits: Pick<Limits, 'referencedTasks' | 'referencedBytes'> }, scope: Scope, taskId: string, room?: Room): Promise<Task[]> {
  const rounds: Task[] = []
  let bytes = 0
  for (let id = taskId; rounds.length < limits.referencedTasks;) {
    const [before] = (await store.readTaskMessages(scope, id, 0, 1)).flatMap(({ message }) => message.referenceTaskIds ?? [])
    const [size] = before === undefined ? [] : await store.measureTasks({ ...scope, taskIds: [before] })
    if (!size || (bytes += size.bytes) > limits.referencedBytes) break
    if (bytes > LARGE_BYTES) await room?.(limits.referencedBytes)
    const read = await readWhole(store, scope, size.taskId)
    if (!read) break
    rounds.unshift(read.task)
    id = size.taskId
  }
  return rounds
}
