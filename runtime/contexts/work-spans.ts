import { isTerminal } from '../../machines/protocol/states.ts'
import type { Limits } from '../access/limits.ts'
import type { Agent } from '../agent/define-agent.ts'
import type { Effect, Turn } from '../commits/commit-pipeline.ts'
import type { ContextKey, JournalRow, Store, StoredContext, TaskEvent } from '../store/store.ts'
import { ATTRIBUTES, errorTypeOf, INVOKES_AGENT } from '../telemetry/spans.ts'
import type { SpanAttributes, Telemetry, TelemetrySpan, TraceCarrier } from '../telemetry/telemetry.ts'

/** Journal key of a task's trace. */
const TRACE = 'trace'

/** Journal row with the trace context of the message that opened a task. */
export function traceRow(taskId: string, carrier: TraceCarrier): JournalRow {
  return { taskId, key: TRACE, value: carrier }
}

/**
 * Trace contexts of a context's stored tasks, by task. Reads one journal at a time, and none larger than
 * `limits.restoredBytes`.
 */
export async function storedTraces(
  store: Store,
  key: ContextKey,
  { tasks }: StoredContext,
  { restoredBytes }: Pick<Limits, 'restoredBytes'>
): Promise<ReadonlyMap<string, TraceCarrier>> {
  const traces = new Map<string, TraceCarrier>()
  for (const { taskId, journalBytes } of await store.measureTasks({
    ...key,
    taskIds: tasks.map(({ taskId }) => taskId)
  })) {
    const rows = journalBytes > restoredBytes ? [] : await store.readJournal(key, taskId)
    traces.set(taskId, (rows.find(row => row.key === TRACE)?.value as TraceCarrier | undefined) ?? {})
  }
  return traces
}

/** A traced task. */
interface TracedTask {
  /** Span of the message that opened it. */
  readonly parent: TraceCarrier
  /** Whether it was restored from the store. */
  readonly isRecovered: boolean
  /** Number of starts of its work since then. */
  attempt: number
  /** Span of its running work. */
  span?: TelemetrySpan | undefined
  /** Class of the last error that its work has thrown. */
  errorType?: string | undefined
}

/**
 * Spans of work in one context: one per start of a work, until it ends or leaves memory, including its waits for the
 * client. The author's code runs within the span. Events of the task are added to it after their commit.
 */
export class WorkSpans {
  readonly #telemetry: Telemetry
  readonly #attributes: SpanAttributes
  readonly #name: string
  readonly #tasks = new Map<string, TracedTask>()

  /** `stored`: trace contexts of stored tasks, by task. */
  constructor(
    telemetry: Telemetry,
    { card: { name, version } }: Agent,
    { contextId }: ContextKey,
    stored: ReadonlyMap<string, TraceCarrier> = new Map()
  ) {
    this.#telemetry = telemetry
    this.#name = name
    this.#attributes = {
      ...INVOKES_AGENT,
      [ATTRIBUTES.agentName]: name,
      [ATTRIBUTES.agentVersion]: version,
      [ATTRIBUTES.conversationId]: contextId
    }
    for (const [taskId, parent] of stored) this.#tasks.set(taskId, { parent, isRecovered: true, attempt: 0 })
  }

  /** Stores the trace context of a message with the task that it opens. */
  open(taskId: string, parent: TraceCarrier, turn: Turn): void {
    this.#tasks.set(taskId, { parent, isRecovered: false, attempt: 0 })
    if (Object.keys(parent).length > 0) turn.addJournal(traceRow(taskId, parent))
  }

  /** Links the span of a task's work with that of a message to the task. */
  link(taskId: string, message: TraceCarrier, turn: Turn): void {
    turn.afterCommit({ taskId, run: () => this.#tasks.get(taskId)?.span?.link(message) })
  }

  /** Runs an effect within the span of its task's work. The first effect starts the span. */
  run(effect: Effect): void {
    const task = this.#tasks.get(effect.taskId)
    if (!task) return effect.run()
    task.span ??= this.#begin(effect.taskId, task)
    task.span.run(() => effect.run())
  }

  /** Runs the negotiation of a message within its own span. */
  async negotiated<T>(parent: TraceCarrier | undefined, negotiate: () => T | Promise<T>): Promise<T> {
    const span = this.#telemetry.begin({
      name: `negotiate ${this.#name}`,
      kind: 'internal',
      parent,
      attributes: this.#attributes
    })
    try {
      const answer = await span.run(negotiate)
      span.end()
      return answer
    } catch (error) {
      span.end(errorTypeOf(error))
      throw error
    }
  }

  /** Notes an error of the author's code. */
  crashed(taskId: string, error: unknown): void {
    const task = this.#tasks.get(taskId)
    if (task) task.errorType = errorTypeOf(error)
  }

  /** Ends the span of crashed work, so that its restart gets a new one. */
  restart(taskId: string): void {
    const task = this.#tasks.get(taskId)
    task?.span?.end(task.errorType)
    if (task) task.span = undefined
  }

  /** Adds the events of a committed turn to the spans of their tasks. */
  addEvents(turn: Turn): void {
    for (const entry of turn.log) {
      const task = 'update' in entry ? this.#tasks.get(entry.taskId) : undefined
      if (task) this.#addEvent(task, entry as TaskEvent, turn)
    }
  }

  /** Ends all spans, because the context leaves memory. Remaining effects still run within them. */
  leave(): void {
    for (const [taskId, { span }] of this.#tasks) {
      span?.end()
      if (!span) this.#tasks.delete(taskId)
    }
  }

  #addEvent(task: TracedTask, { taskId, generation, update }: TaskEvent, turn: Turn): void {
    if ('artifactUpdate' in update) {
      const { append, artifact } = update.artifactUpdate
      if (!append)
        task.span?.event('a2a.task.artifact', {
          [ATTRIBUTES.artifactId]: artifact.artifactId,
          [ATTRIBUTES.generation]: generation
        })
      return
    }
    const { state } = update.statusUpdate.status
    // The work starts with an effect of the same turn.
    if (state === 'TASK_STATE_WORKING') task.span ??= this.#begin(taskId, task)
    task.span?.event('a2a.task.status', { [ATTRIBUTES.taskState]: state, [ATTRIBUTES.generation]: generation })
    task.span?.set({ [ATTRIBUTES.taskState]: state })
    if (!isTerminal(state)) return
    task.span?.end(state === 'TASK_STATE_FAILED' ? (task.errorType ?? state) : undefined)
    // Removed last, because cleanup effects of this turn still need the span.
    turn.afterCommit({ taskId, run: () => this.#tasks.delete(taskId) })
    if (!task.span) this.#tasks.delete(taskId)
  }

  #begin(taskId: string, task: TracedTask): TelemetrySpan {
    task.attempt += 1
    const attributes = {
      ...this.#attributes,
      [ATTRIBUTES.taskId]: taskId,
      ...(task.isRecovered && { [ATTRIBUTES.isRecovered]: true }),
      ...(task.attempt > 1 && { [ATTRIBUTES.attempt]: task.attempt })
    }
    return this.#telemetry.begin({
      name: `invoke_agent ${this.#name}`,
      kind: 'internal',
      parent: task.parent,
      attributes
    })
  }
}
