import { isTerminal } from '../../machines/protocol/states.ts'
import type { Limits } from '../access/limits.ts'
import type { Agent } from '../agent/define-agent.ts'
import type { Effect, Turn } from '../commits/turn.ts'
import type { ContextKey, JournalRow, Store, StoredContext, TaskEvent } from '../store/store.ts'
import { ATTRIBUTES, errorTypeOf, INVOKES_AGENT } from '../telemetry/attributes.ts'
import type { SpanAttributes, Telemetry, TelemetrySpan, TraceCarrier } from '../telemetry/telemetry.ts'

/** The key in a task's journal of the trace that it belongs to. */
const TRACE = 'trace'

/** What the journal of a task keeps of the trace of the message that opened it. */
export function traceRow(taskId: string, carrier: TraceCarrier): JournalRow {
  return { taskId, key: TRACE, value: carrier }
}

/** The traces that the stored tasks of a context belong to, by task. One journal at a time is read, and none that is too large for the work to start again. */
export async function storedTraces(store: Store, key: ContextKey, { tasks }: StoredContext, { restoredBytes }: Pick<Limits, 'restoredBytes'>): Promise<ReadonlyMap<string, TraceCarrier>> {
  const traces = new Map<string, TraceCarrier>()
  for (const { taskId, journalBytes } of await store.measureTasks({ ...key, taskIds: tasks.map(({ taskId }) => taskId) })) {
    const rows = journalBytes > restoredBytes ? [] : await store.readJournal(key, taskId)
    traces.set(taskId, (rows.find(row => row.key === TRACE)?.value as TraceCarrier | undefined) ?? {})
  }
  return traces
}

/** A task in its trace. */
interface TracedTask {
  /** The span of the message that opened it. */
  readonly parent: TraceCarrier
  /** It was stored by a process, or a stay in memory, before this one. */
  readonly isRecovered: boolean
  /** How often its work has begun here. */
  attempt: number
  /** The span of its work, once that has begun. */
  span?: TelemetrySpan | undefined
  /** The class of the last error that its work has thrown. */
  errorType?: string | undefined
}

/**
 * The spans of the works of one context: one for each time that a work begins here, for as long as it is in memory, the
 * waits for its client included. What the author's code does is done within it. What happens to the task is told to it when
 * that is committed.
 */
export class WorkSpans {
  readonly #telemetry: Telemetry
  readonly #attributes: SpanAttributes
  readonly #name: string
  readonly #tasks = new Map<string, TracedTask>()

  /** `stored` are the traces of the tasks that the store holds, by task. */
  constructor(telemetry: Telemetry, { card: { name, version } }: Agent, { contextId }: ContextKey, stored: ReadonlyMap<string, TraceCarrier> = new Map()) {
    this.#telemetry = telemetry
    this.#name = name
    this.#attributes = { ...INVOKES_AGENT, [ATTRIBUTES.agentName]: name, [ATTRIBUTES.agentVersion]: version, [ATTRIBUTES.conversationId]: contextId }
    for (const [taskId, parent] of stored) this.#tasks.set(taskId, { parent, isRecovered: true, attempt: 0 })
  }

  /** A message opens a task: where it belongs is kept with the task. */
  open(taskId: string, parent: TraceCarrier, turn: Turn): void {
    this.#tasks.set(taskId, { parent, isRecovered: false, attempt: 0 })
    if (Object.keys(parent).length > 0) turn.journal.push(traceRow(taskId, parent))
  }

  /** A message comes to a task: the span of its work has to do with that of the message. */
  link(taskId: string, message: TraceCarrier, turn: Turn): void {
    turn.effects.push({ taskId, run: () => this.#tasks.get(taskId)?.span?.link(message) })
  }

  /** Runs what has waited for a commit within the span of the work that it is for; the first thing begins that. */
  run(effect: Effect): void {
    const task = this.#tasks.get(effect.taskId)
    if (!task) return effect.run()
    task.span ??= this.#begin(effect.taskId, task)
    task.span.run(() => effect.run())
  }

  /** Runs the negotiation of a message within a span of its own. */
  async negotiated<T>(parent: TraceCarrier | undefined, negotiate: () => T | Promise<T>): Promise<T> {
    const span = this.#telemetry.begin({ name: `negotiate ${this.#name}`, kind: 'internal', parent, attributes: this.#attributes })
    try {
      const answer = await span.run(negotiate)
      span.end()
      return answer
    } catch (error) {
      span.end(errorTypeOf(error))
      throw error
    }
  }

  /** Code of the author's has thrown. */
  crashed(taskId: string, error: unknown): void {
    const task = this.#tasks.get(taskId)
    if (task) task.errorType = errorTypeOf(error)
  }

  /** Work that crashed begins again, with a span of its own. */
  restart(taskId: string): void {
    const task = this.#tasks.get(taskId)
    task?.span?.end(task.errorType)
    if (task) task.span = undefined
  }

  /** What a turn has told of tasks. */
  tell({ log, effects }: Turn): void {
    for (const entry of log) {
      const task = 'update' in entry ? this.#tasks.get(entry.taskId) : undefined
      if (task) this.#told(task, entry as TaskEvent, effects)
    }
  }

  /** The context leaves memory. What it still does is done within the spans that there are. */
  leave(): void {
    for (const [taskId, { span }] of this.#tasks) {
      span?.end()
      if (!span) this.#tasks.delete(taskId)
    }
  }

  #told(task: TracedTask, { taskId, generation, update }: TaskEvent, effects: Effect[]): void {
    if ('artifactUpdate' in update) {
      const { append, artifact } = update.artifactUpdate
      if (!append) task.span?.event('a2a.task.artifact', { [ATTRIBUTES.artifactId]: artifact.artifactId, [ATTRIBUTES.generation]: generation })
      return
    }
    const { state } = update.statusUpdate.status
    // Its work begins with what the same turn holds.
    if (state === 'TASK_STATE_WORKING') task.span ??= this.#begin(taskId, task)
    task.span?.event('a2a.task.status', { [ATTRIBUTES.taskState]: state, [ATTRIBUTES.generation]: generation })
    task.span?.set({ [ATTRIBUTES.taskState]: state })
    if (!isTerminal(state)) return
    task.span?.end(state === 'TASK_STATE_FAILED' ? (task.errorType ?? state) : undefined)
    // What cleans up after it is in this turn, too.
    effects.push({ taskId, run: () => this.#tasks.delete(taskId) })
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
    return this.#telemetry.begin({ name: `invoke_agent ${this.#name}`, kind: 'internal', parent: task.parent, attributes })
  }
}
