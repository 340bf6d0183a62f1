import type { Task, TaskStatus } from '../../machines/protocol/objects.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import { TwoGenerationCache } from '../../runtime/primitives/collections.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { metadataOf, taskResult, type ToolResult, wordsIn } from './content.ts'
import type { Abilities, Elicitation, Questions } from './questions.ts'

/** The states of the extension. */
type Status = 'working' | 'input_required' | 'completed' | 'cancelled'

/** A task as the extension has it, without its contents. */
export interface TaskFields {
  readonly taskId: string
  readonly status: Status
  readonly statusMessage?: string
  readonly createdAt: string
  readonly lastUpdatedAt: string
  /** Milliseconds from `createdAt`; null for no end. */
  readonly ttlMs: number | null
  readonly pollIntervalMs: number
  readonly _meta?: Readonly<Record<string, unknown>>
}

/** A task as `tasks/get` answers. */
export interface TaskAnswer extends TaskFields {
  readonly resultType: 'complete'
  readonly result?: ToolResult
  readonly inputRequests?: Readonly<Record<string, Elicitation>>
}

/** The interval of polls, in milliseconds: at first, and when nothing has changed for a minute. */
const POLL_MS = 1000
const SLOW_POLL_MS = 5000
const QUIET_MS = 60_000

/** The longest status message, in characters. */
const LONGEST_STATUS = 1000

/** How long the time of a task's first event is kept in memory after its last poll. */
const CACHED_MS = 60_000

/** Tasks as the extension `io.modelcontextprotocol/tasks` shows them. */
export class TaskViews {
  readonly #runtime: ServedRuntime
  readonly #questions: Questions
  readonly #created = new TwoGenerationCache<{ at?: string | undefined }>(() => ({}), CACHED_MS)

  constructor(runtime: ServedRuntime, questions: Questions) {
    this.#runtime = runtime
    this.#questions = questions
  }

  /** The handle of a task that a call has opened. */
  async handleOf(
    task: Task,
    abilities: Abilities,
    call: CallContext
  ): Promise<{ readonly resultType: 'task' } & TaskFields> {
    const { resultType: _, result: __, inputRequests: ___, ...fields } = await this.answerOf(task, abilities, call)
    return { resultType: 'task', ...fields }
  }

  /** The answer of `tasks/get`. */
  async answerOf(task: Task, abilities: Abilities, call: CallContext): Promise<TaskAnswer> {
    const { state, message } = task.status
    const words = wordsIn(message?.parts ?? [])
    if (state === 'TASK_STATE_CANCELED')
      return this.#with(task, 'cancelled', (await this.#questions.cancelReason(task, call)) ?? words, call)
    if (isTerminal(state)) return { ...(await this.#with(task, 'completed', words, call)), result: taskResult(task) }
    const question = await this.#questions.openOf(task, call)
    const asked = question && this.#questions.elicitationOf(question, abilities)
    if (!question || !asked) return this.#with(task, 'working', question?.words ?? words, call)
    return {
      ...(await this.#with(task, 'input_required', question.words, call)),
      inputRequests: { [question.key]: asked }
    }
  }

  async #with(task: Task, status: Status, words: string, call: CallContext): Promise<TaskAnswer> {
    const { settings } = this.#runtime
    const createdAt = await this.#createdAt(task, call)
    const lastUpdatedAt = task.status.timestamp as string
    const statusMessage = lineOf(words)
    const endMs = Date.parse(lastUpdatedAt) + settings.endedTasksMs - Date.parse(createdAt)
    const isQuiet = settings.clock.now() - Date.parse(lastUpdatedAt) >= QUIET_MS
    return {
      resultType: 'complete',
      taskId: task.id,
      status,
      ...(statusMessage !== '' && { statusMessage }),
      createdAt,
      lastUpdatedAt,
      ttlMs: isTerminal(task.status.state) && Number.isFinite(endMs) ? endMs : null,
      pollIntervalMs: isQuiet ? SLOW_POLL_MS : POLL_MS,
      ...metadataOf(task)
    }
  }

  /** The time of a task's first event. */
  async #createdAt({ id, status }: Task, call: CallContext): Promise<string> {
    const cached = this.#created.get(id, this.#runtime.settings.clock.now())
    cached.at ??= await this.#runtime.readHistory(call, async (store, scope) => {
      const [first] = await store.readEvents(scope, id, 0, 1)
      return (first?.update as { statusUpdate?: { status: TaskStatus } } | undefined)?.statusUpdate?.status.timestamp
    })
    return [cached.at, status.timestamp].find(time => time !== undefined) as string
  }
}

/** Words as one line of a bounded length. */
function lineOf(words: string): string {
  const line = words.replace(/\s+/g, ' ').trim()
  return line.length > LONGEST_STATUS ? `${line.slice(0, LONGEST_STATUS)}…` : line
}
