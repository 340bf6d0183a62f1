import type { Message } from '../../machines/protocol/objects.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { Limits } from '../access/limits.ts'
import type { WorkStore } from '../store/retrying-reads.ts'
import type { ContextKey, MessageRow, TaskSize } from '../store/store.ts'
import { readWhole } from '../streams/task-stream.ts'

/**
 * The newest messages of a context before the one that opened a task, oldest first, at most `limit`. They are the
 * client's messages, the agent's replies, and the agent's messages in tasks that had ended by then. Later messages are
 * never included, so a replay reads the same; only messages that have been removed since are missing.
 *
 * The messages have `limits.referencedBytes` together, and so have the tasks that are read for the agent's messages,
 * newest first. Of the other tasks only the client's messages are included. Throws RangeError for a limit that is not a
 * whole number from 0.
 */
export async function readHistory(
  store: WorkStore,
  key: ContextKey,
  taskId: string,
  limit: number,
  { referencedBytes }: Pick<Limits, 'referencedBytes'>
): Promise<Message[]> {
  if (!Number.isInteger(limit) || limit < 0)
    throw new RangeError(`The limit of history has to be a whole number from 0, not ${String(limit)}.`)
  const rows = await store.readMessages(key, limit, { before: taskId, bytes: referencedBytes })
  const openedAt = await timeOpened(store, key, taskId)
  const unsaid = new Map<string, Message[]>()
  let left = referencedBytes
  for (const { taskId: id, bytes } of await sizesOf(store, key, rows)) {
    if (bytes > left) break
    left -= bytes
    unsaid.set(id, await endedTaskMessages(store, key, id, openedAt))
  }
  const messages = rows.flatMap(({ message, taskId: id = '' }) => upTo(message, unsaid.get(id) ?? []))
  return messages.slice(Math.max(messages.length - limit, 0))
}

/** Sizes of the messages' tasks, in the order of their newest message, newest first. */
async function sizesOf(store: WorkStore, key: ContextKey, rows: readonly MessageRow[]): Promise<TaskSize[]> {
  const taskIds = [...new Set(rows.toReversed().flatMap(row => row.taskId ?? []))]
  const sizes = await store.measureTasks({ ...key, taskIds })
  return sizes.toSorted((one, other) => taskIds.indexOf(one.taskId) - taskIds.indexOf(other.taskId))
}

async function timeOpened(store: WorkStore, key: ContextKey, taskId: string): Promise<string> {
  const [opened] = await store.readEvents(key, taskId, 0, 1)
  /* c8 ignore next -- the first event of a task is a status with its time */
  return opened && 'statusUpdate' in opened.update ? String(opened.update.statusUpdate.status.timestamp) : ''
}

/**
 * All messages of a task that had ended by `openedAt`. None of a later one, since its messages have no times to
 * compare.
 */
async function endedTaskMessages(
  store: WorkStore,
  key: ContextKey,
  taskId: string,
  openedAt: string
): Promise<Message[]> {
  const stored = await readWhole(store, key, taskId, { artifacts: false })
  /* c8 ignore next -- a task goes with its messages, so it is missing only if it goes during this call */
  if (!stored) return []
  if (!isTerminal(stored.task.status.state) || String(stored.task.status.timestamp) > openedAt) return []
  const { status, history = [] } = stored.task
  return status.message ? [...history, status.message] : history
}

/**
 * Removes from a task's messages those up to a client's message, and the agent's messages that follow it, and gives
 * them.
 */
function upTo(message: Message, unsaid: Message[]): Message[] {
  const at = unsaid.findIndex(({ messageId, role }) => messageId === message.messageId && role === message.role)
  if (at < 0) return [message]
  const next = unsaid.findIndex(({ role }, index) => index > at && role === message.role)
  return unsaid.splice(0, next < 0 ? unsaid.length : next)
}
