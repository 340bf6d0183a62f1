import type { Message, Task } from '../../machines/protocol/objects.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import type { Scope } from '../../runtime/store/rows.ts'
import type { MessageRow } from '../../runtime/store/store.ts'
import { type HistoryReader, LARGE_BYTES, readWhole } from '../../runtime/streams/task-stream.ts'
import { newestMessages } from './v01-answers.ts'
import { isCancellation, messagePrefixOf } from './v01-requests.ts'

/** The past of a task under its id of 0.1: the messages of the negotiation, and its earlier tasks. */
interface Past {
  readonly negotiated: readonly Message[]
  readonly earlierTasks: readonly Task[]
}

/** The most messages of a session that are read for the history of a negotiation. */
const MESSAGES = 200

/** Reads what came before the tasks and answers of 0.1. The callers have got these from an operation. */
export class PastReader {
  readonly #runtime: ServedRuntime

  constructor(runtime: ServedRuntime) {
    this.#runtime = runtime
  }

  /** The past of a task under an id. A task under the runtime's own id has none. */
  async of(task: Task, id: string, call: CallContext): Promise<Past> {
    const earlierTasks = await this.earlierTasks(task, id, call)
    const [first = task] = earlierTasks
    return {
      earlierTasks,
      negotiated: await this.negotiated(id, { contextId: task.contextId, taskId: first.id }, call)
    }
  }

  /** The messages of an id's negotiation in a session, before a task or up to now: the newest 200 within 1 MiB. */
  async negotiated(
    id: string,
    { contextId, taskId }: { readonly contextId: string | undefined; readonly taskId?: string },
    call: CallContext
  ): Promise<Message[]> {
    if (!this.#runtime.settings.negotiates || contextId === undefined || taskId === id) return []
    const choice = { bytes: LARGE_BYTES, ...(taskId !== undefined && { before: taskId }) }
    return this.#runtime.readHistory(call, async (store, scope) =>
      negotiatedIn(await store.readMessages({ ...scope, contextId }, MESSAGES, choice), id)
    )
  }

  /** The earlier tasks of the same id, oldest first. */
  async earlierTasks({ id: taskId }: Task, id: string, call: CallContext): Promise<Task[]> {
    return taskId === id
      ? []
      : this.#runtime.readHistory(call, (store, scope) => this.#before(store, scope, taskId, call))
  }

  /**
   * The tasks before a task, oldest first: the message that opened a task refers to the one before it. Gives the newest
   * ones that fit into `limits.referencedTasks` and `limits.referencedBytes`.
   */
  async #before(store: HistoryReader, scope: Scope, taskId: string, { budget }: CallContext): Promise<Task[]> {
    const { referencedTasks, referencedBytes } = this.#runtime.settings.limits
    const tasks: Task[] = []
    let bytes = 0
    for (let id = taskId; tasks.length < referencedTasks;) {
      const [before] = (await store.readTaskMessages(scope, id, 0, 1)).flatMap(
        ({ message }) => message.referenceTaskIds ?? []
      )
      const [size] = before === undefined ? [] : await store.measureTasks({ ...scope, taskIds: [before] })
      if (!size || (bytes += size.bytes) > referencedBytes) break
      if (bytes > LARGE_BYTES) await budget?.(referencedBytes)
      const read = await readWhole(store, scope, size.taskId)
      if (!read) break
      tasks.unshift(read.task)
      id = size.taskId
    }
    return tasks
  }
}

/**
 * The task of an id of 0.1, with the content of its past in front: the messages of its negotiation, those of its
 * earlier tasks, each with its final status message, and their artifacts. `historyLength` counts the messages of all.
 */
export function withPast(task: Task, { negotiated, earlierTasks }: Past, id: string, historyLength?: number): Task {
  if (earlierTasks.length + negotiated.length === 0) return task
  const earlier = earlierTasks.flatMap(({ history = [], status: { message } }) =>
    message ? [...history, message] : history
  )
  const history = newestMessages(
    [...negotiated, ...earlier, ...(task.history ?? [])].filter(message => !isCancellation(message, id)),
    historyLength
  )
  const artifacts = [...earlierTasks, task].flatMap(({ artifacts = [] }) => artifacts)
  const { history: _, ...others } = task
  return { ...others, ...(historyLength !== 0 && { history }), ...(artifacts.length > 0 && { artifacts }) }
}

/**
 * The messages of an id's negotiation in its session, of client and agent, since the last task of the id. Each of the
 * client's is followed by its answer.
 */
function negotiatedIn(session: readonly MessageRow[], id: string): Message[] {
  const prefix = messagePrefixOf(id)
  const own = session.findLastIndex(
    ({ message, taskId }) => taskId !== undefined && message.messageId.startsWith(prefix)
  )
  return session
    .slice(own + 1)
    .flatMap(({ message }, index, later) =>
      message.messageId.startsWith(prefix) ? later.slice(index, index + 2).map(each => each.message) : []
    )
}

/** The number of their artifacts. */
export function artifactsIn(earlier: readonly Task[]): number {
  return earlier.reduce((sum, { artifacts = [] }) => sum + artifacts.length, 0)
}
