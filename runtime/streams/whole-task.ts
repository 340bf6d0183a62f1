import type { Task } from '../../machines/protocol/objects.ts'
import type { Room } from '../access/call-context.ts'
import type { Limits } from '../access/limits.ts'
import { turnEnd } from '../primitives/event-loop.ts'
import { jsonBytes } from '../primitives/json.ts'
import type { Scope } from '../store/rows.ts'
import type { ContextKey, MessageRow, ReadOptions, Store, StoredTask, TaskEvent } from '../store/store.ts'
import { applyEvents, applyMessage, newTaskRecord, projectTask } from '../store/task-record.ts'

/** A task with more bytes than this is read and answered in pieces. */
export const LARGE_BYTES = 1024 * 1024

/** The size of a piece in bytes, and its maximum of events: even the smallest then fill one. Both are small, so that a piece is garbage before the next collection. */
export const PIECE_BYTES = LARGE_BYTES / 4
const EVENTS_A_PIECE = 1024

/** The part of a store that reads whole tasks. */
export type WholeTaskReader = Pick<Store, 'readTask' | 'readTaskMessages' | 'readEvents'>

/** Reads a task. A large one waits for `room`, and is read in pieces, so that it does not block the event loop. */
export async function readWhole(
  store: WholeTaskReader,
  scope: Scope,
  taskId: string,
  options: ReadOptions = {},
  room?: Room
): Promise<StoredTask | undefined> {
  const stored = await store.readTask(scope, taskId, { ...options, within: LARGE_BYTES })
  return stored && completed(store, scope, stored, options, room)
}

/**
 * Adds artifacts and history to a large task, which a store gave without them. `undefined` if the task was removed since.
 */
export async function completed(
  store: WholeTaskReader,
  scope: Scope,
  stored: StoredTask,
  options: ReadOptions,
  room?: Room
): Promise<StoredTask | undefined> {
  const { task, generation, large } = stored
  if (!large) return stored
  await room?.(large.bytes)
  const record = newTaskRecord({ ...scope, contextId: task.contextId }, task.id)
  const messages: MessageRow[] = []
  while (messages.length < large.messages) {
    const piece = await store.readTaskMessages(scope, task.id, messages.length, PIECE_BYTES)
    if (piece.length === 0) return undefined
    messages.push(...piece.slice(0, large.messages - messages.length))
    await turnEnd()
  }
  let next = 0
  for await (const piece of eventPieces(store, scope, task.id, generation))
    next = applyEvents(record, piece, messages, next)
  if (record.generation < generation) return undefined
  for (const message of messages.slice(next)) applyMessage(record, message)
  return projectTask(record, options)
}

/**
 * The events of a task up to a generation, in pieces, so that they do not block the event loop. The store reads the next piece while the
 * caller uses one. They end early if the store does not have all of them.
 */
export async function* eventPieces(
  store: Pick<Store, 'readEvents'>,
  scope: Scope,
  taskId: string,
  generation: number
): AsyncGenerator<TaskEvent[], void, undefined> {
  const read = (after: number) =>
    store.readEvents(scope, taskId, after, Math.min(EVENTS_A_PIECE, generation - after), PIECE_BYTES)
  let after = 0
  for (let next: Promise<TaskEvent[]> | undefined = read(after); next;) {
    const piece: TaskEvent[] = await next
    const newest = piece.at(-1)?.generation ?? 0
    if (newest <= after) return
    after = newest
    next = after < generation ? read(after) : undefined
    // The caller may leave before it is awaited.
    next?.catch(() => {})
    yield piece
    if (next) await turnEnd()
  }
}

/** The most messages that are read for a history before a task. */
const MESSAGES = 200

/** The newest messages of a context before the one that opened a task, or up to now, within 1 MiB. */
export function messagesBefore(
  store: Pick<Store, 'readMessages'>,
  key: ContextKey,
  taskId: string | undefined
): Promise<MessageRow[]> {
  return store.readMessages(key, MESSAGES, { bytes: LARGE_BYTES, ...(taskId !== undefined && { before: taskId }) })
}

/** All events of a task up to a generation, read in pieces. */
export async function readAllEvents(
  store: Pick<Store, 'readEvents'>,
  scope: Scope,
  taskId: string,
  generation: number
): Promise<TaskEvent[]> {
  const events: TaskEvent[] = []
  for await (const piece of eventPieces(store, scope, taskId, generation)) events.push(...piece)
  return events
}

/** Bytes of the parts that an event adds to its task. */
export function bytesIn({ update }: TaskEvent): number {
  const { parts = [] } =
    'artifactUpdate' in update ? update.artifactUpdate.artifact : (update.statusUpdate.status.message ?? {})
  let bytes = 0
  for (const part of parts)
    bytes +=
      'text' in part ? part.text.length : 'raw' in part ? part.raw.length : 'data' in part ? jsonBytes(part.data) : 0
  return bytes
}

/**
 * Earlier tasks of the same name, oldest first: the message that opened a task refers to the one before it. Gives the newest ones that
 * fit into `limits.referencedTasks` and `limits.referencedBytes`.
 */
export async function roundsBefore(
  { store, limits }: { readonly store: Store; readonly limits: Pick<Limits, 'referencedTasks' | 'referencedBytes'> },
  scope: Scope,
  taskId: string,
  room?: Room
): Promise<Task[]> {
  const rounds: Task[] = []
  let bytes = 0
  for (let id = taskId; rounds.length < limits.referencedTasks;) {
    const [before] = (await store.readTaskMessages(scope, id, 0, 1)).flatMap(
      ({ message }) => message.referenceTaskIds ?? []
    )
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
