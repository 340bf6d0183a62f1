import type { ContextFact, ContextMachineEvent } from '../../machines/context.machine.ts'
import type { A2AError } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { ClientMessage, TaskFact } from '../../machines/task-events.ts'
import { failureReasonOf } from '../../machines/task.machine.ts'
import type { Limits } from '../access/limits.ts'
import {
  type OpeningDetails,
  type ReadOpeningDetails,
  receivedBytes,
  type WorkInput
} from '../authoring/work-arguments.ts'
import type { ActorHost } from '../commits/actor-host.ts'
import { factAtEventLimit } from '../commits/task-ledger.ts'
import type { Effect } from '../commits/turn.ts'
import type { Clock } from '../ports/clock.ts'
import { type Logger, WORK_FAILED } from '../ports/logger.ts'
import { NONE } from '../primitives/collections.ts'
import { jsonBytes } from '../primitives/json.ts'
import type { ContextKey, JournalRow, MessageRow, TaskEvent } from '../store/store.ts'
import { isLast } from '../store/task-record.ts'
import { readAllEvents } from '../streams/task-stream.ts'
import { awaitTask, isPermanent } from '../work/awaited-tasks.ts'
import { readHistory } from '../work/context-history.ts'
import { ENDED_SLEEP, ENDLESS_SLEEP } from '../work/journal.ts'
import { checkRestoredBytes, isOpening, WorkInputs } from '../work/work-input.ts'
import type { ContextServices, HostedContext } from './dependencies.ts'
import { readWholeOrThrow, tooManyBytes, tooManyEvents } from './errors.ts'
import { ContextRecovery } from './recovery.ts'
import { TaskPaces } from './task-paces.ts'
import type { WorkSpans } from './work-spans.ts'

const DEFAULT_HISTORY = 50

/** Part of `limits.taskBytes` at which a task is logged as nearly full. */
const NEARLY_FULL = 0.8

/**
 * Host of the actors of one live context: collects their events and effects in the open turn, and gives them access to
 * the store.
 */
export class ContextHost implements ActorHost {
  readonly key: ContextKey
  /** `undefined` without tracing. */
  readonly traces: WorkSpans | undefined
  readonly #services: ContextServices
  readonly #context: HostedContext
  /** Created for a context with stored tasks. */
  #recovery: ContextRecovery | undefined
  readonly #inputs: WorkInputs
  /** Created by the first hasty turn. */
  #paces: TaskPaces | undefined
  #isEnding = false

  constructor(key: ContextKey, services: ContextServices, context: HostedContext, traces?: WorkSpans) {
    this.key = key
    this.#services = services
    this.#context = context
    this.#inputs = new WorkInputs(key, services, context.tasks)
    this.traces = traces
  }

  get recovery(): ContextRecovery {
    return (this.#recovery ??= new ContextRecovery(this.#services, this.#context.tasks, this))
  }

  /** Takes back recoveries, because the process shuts down cleanly. */
  processEnds(): void {
    this.#recovery?.processEnds()
  }

  noteRun(taskId: string): void {
    this.#services.observers.active?.runs(taskId)
  }

  send(event: ContextMachineEvent): void {
    this.#context.root.send(event)
  }

  get logger(): Logger {
    return this.#services.logger
  }

  get limits(): Limits {
    return this.#services.limits
  }

  get clock(): Clock {
    return this.#services.clock
  }

  get isLeaving(): boolean {
    return this.#isOver && !this.#isEnding
  }

  /** Makes the next stop final: the tasks will not resume. */
  end(): void {
    this.#isEnding = true
  }

  get #isOver(): boolean {
    return this.#context.pipeline.isOver
  }

  noteContextFact(fact: ContextFact): void {
    this.#context.noteFact(fact)
  }

  noteTaskFact(taskId: string, fact: TaskFact): void {
    if (fact.type === 'restart.requested') return this.afterCommit({ taskId, run: () => this.#restart(taskId) })
    const { eventsPerTask, taskBytes } = this.#services.limits
    const { tasks } = this.#context
    const generation = tasks.generationOf(taskId)
    const bytes = jsonBytes(fact)
    const fits = generation === 0 || tasks.fits(taskId, bytes, taskBytes)
    if (fits) this.#addBytes(taskId, bytes)
    const tooLarge = fits ? undefined : this.#tooManyBytes(taskId, bytes)
    const full = tooLarge ?? (generation < eventsPerTask ? undefined : tooManyEvents(eventsPerTask))
    const accepted = full ? factAtEventLimit(fact, full.message, fits) : fact
    const event = accepted && tasks.stamp(taskId, accepted)
    if (event) this.#context.pipeline.turn.addEvent(event)
    if (tooLarge) this.#failFull(taskId, tooLarge)
    else if (event?.generation === eventsPerTask && !isLast(event)) this.failTask(taskId, tooManyEvents(eventsPerTask))
  }

  /**
   * Adds a client's message to the log of the open turn. Gives false if it exceeds the task's bytes; the message that
   * opens a task always fits.
   */
  logMessage(
    row: MessageRow & { readonly taskId: string; readonly generation: number },
    request?: ClientMessage['request']
  ): boolean {
    const { tasks, pipeline } = this.#context
    const bytes = receivedBytes(request ? { message: row.message, request } : row)
    if (row.generation > 0 && !tasks.fits(row.taskId, bytes, this.#services.limits.taskBytes)) return false
    this.#addBytes(row.taskId, bytes)
    tasks.keep(row.taskId, bytes)
    pipeline.turn.addEvent(row)
    return true
  }

  #addBytes(taskId: string, added: number): void {
    const { taskBytes } = this.#services.limits
    const bytes = this.#context.tasks.addBytes(taskId, added)
    const most = NEARLY_FULL * taskBytes
    if (bytes >= most && bytes - added < most)
      this.logger.warn('a task is near its limit of bytes', { taskId, bytes, taskBytes })
  }

  #tooManyBytes(taskId: string, added: number): A2AError {
    const { tasks } = this.#context
    return tasks.fullBy(taskId) ?? tooManyBytes(this.#services.limits.taskBytes, tasks.sizeOf(taskId) + added)
  }

  /** Fails a task that exceeds its limit of bytes, once. */
  #failFull(taskId: string, error: A2AError): void {
    if (this.#context.tasks.fill(taskId, error)) this.failTask(taskId, error)
  }

  /** Throws RateLimited if a task with this snapshot exceeds its limit of bytes. */
  checkSnapshot(taskId: string, snapshot: string): void {
    const { taskBytes } = this.#services.limits
    const { tasks } = this.#context
    const bytes = tasks.sizeOf(taskId, snapshot.length)
    if (bytes <= taskBytes) return
    const error = tooManyBytes(taskBytes, bytes)
    tasks.fill(taskId, error)
    throw error
  }

  bytesOf(taskId: string): number {
    return this.#context.tasks.bytesOf(taskId)
  }

  markChanged(taskId: string): void {
    if (this.#context.tasks.has(taskId) && !this.#isOver) this.#context.pipeline.turn.markChanged(taskId)
  }

  noteHaste(taskId: string): void {
    if (this.#context.tasks.has(taskId) && !this.#isOver)
      (this.#paces ??= new TaskPaces(this, this.#services.limits.hastyTurns)).noteHaste(taskId)
  }

  /** Stops slowing a task, and runs its waiting effects: a client has written to it. */
  stopThrottling(taskId: string): void {
    for (const effect of this.#paces?.forget(taskId) ?? NONE) this.run(effect)
  }

  /** Runs an effect that is committed, unless its task is slowed: then it waits. */
  runThrottled(effect: Effect): void {
    if (!this.#paces?.keepsBack(effect)) this.run(effect)
  }

  afterCommit(effect: Effect): void {
    if (this.#isOver) this.run(effect)
    else if (!this.#recovery?.keepsBack(effect)) this.#context.pipeline.turn.afterCommit(effect)
  }

  writable(taskId: string): Promise<void> | undefined {
    if (!this.#context.owner.isRefused) return undefined
    this.markChanged(taskId)
    return new Promise(resolve => this.afterCommit({ taskId, run: resolve }))
  }

  workInput(taskId: string, open?: ReadOpeningDetails): Promise<WorkInput> {
    return this.#inputs.load(taskId, open)
  }

  /** Clears the timers of an ended task, and releases the tasks that were loaded for its work. */
  ended(taskId: string): void {
    this.#context.timers.clearTask(taskId)
    this.#inputs.ended(taskId)
    for (const effect of this.#paces?.forget(taskId) ?? NONE) this.afterCommit(effect)
  }

  /** Releases the resources of the context, because it leaves memory. */
  leave(): void {
    this.traces?.leave()
    this.#inputs.leave()
    this.#paces?.clear()
  }

  async readTask(taskId: string): Promise<Task> {
    const { limits, reads } = this.#services
    const [size] = await reads.measureTasks({ ...this.key, taskIds: [taskId] })
    if (size) checkRestoredBytes(size, limits)
    return (await readWholeOrThrow(reads, this.key, taskId, {})).task
  }

  completedTask(taskId: string, neededBy: string, signal: AbortSignal): Promise<Task> {
    if (taskId === neededBy) throw new TypeError(`Task ${taskId} cannot wait for itself. Wait for another task.`)
    const { reads: store, subscriptions, limits } = this.#services
    const loads = this.#inputs.loadsOf(neededBy)
    const waits = (isWaiting: boolean) =>
      this.keep({ taskId: neededBy, key: `needs/${taskId}`, value: isWaiting ? ENDLESS_SLEEP : ENDED_SLEEP })
    return awaitTask(taskId, { store, subscriptions, limits, scope: this.key, loads, signal, waits })
  }

  async readJournal(taskId: string): Promise<JournalRow[]> {
    const rows = await this.#services.reads.readJournal(this.key, taskId)
    // What the task was opened with counts as its message.
    this.#context.tasks.setJournalBytes(
      taskId,
      rows.reduce((sum, row) => sum + (isOpening(row) ? 0 : jsonBytes(row.value)), 0)
    )
    return rows
  }

  readEvents(taskId: string): Promise<TaskEvent[]> {
    return readAllEvents(this.#services.reads, this.key, taskId, this.#context.tasks.generationOf(taskId))
  }

  isInterrupted(taskId: string): boolean {
    return this.#context.tasks.isInterrupted(taskId)
  }

  isAwaited(callId: string): boolean {
    return this.#context.calls.has(callId)
  }

  get turnNumber(): number {
    return this.#context.commits
  }

  keep(row: JournalRow): void {
    if (this.#isOver) return
    const { taskId, value } = row
    const { tasks, pipeline } = this.#context
    const bytes = jsonBytes(value)
    if (tasks.has(taskId) && !tasks.fits(taskId, bytes, this.#services.limits.taskBytes)) {
      return this.#failFull(taskId, this.#tooManyBytes(taskId, bytes))
    }
    tasks.addJournalBytes(taskId, bytes)
    pipeline.turn.addJournal(row)
    this.markChanged(taskId)
  }

  awaitCleanup(taskId: string, settled: Promise<unknown>): void {
    this.#services.cleanUps.add(taskId, settled)
  }

  crash(taskId: string, error: unknown): void {
    this.#noteCrash(taskId, error)
    if (isPermanent(error)) return this.#fail(taskId, error)
    this.logger.error(WORK_FAILED, { taskId, error })
    const crash = { atMs: this.clock.now(), policy: this.#services.agent.restart }
    this.send({ type: 'work.crashed', taskId, message: { parts: [{ text: failureReasonOf(error) }] }, crash })
  }

  async readMessages(limit = DEFAULT_HISTORY): Promise<Message[]> {
    return (
      await this.#services.reads.readMessages(this.key, limit, { bytes: this.#services.limits.referencedBytes })
    ).map(({ message }) => message)
  }

  async readHistory(taskId: string, limit = DEFAULT_HISTORY): Promise<Message[]> {
    return readHistory(this.#services.reads, this.key, taskId, limit, this.#services.limits)
  }

  failTask(taskId: string, error: unknown): void {
    this.#noteCrash(taskId, error)
    this.logger.error(WORK_FAILED, { taskId, error })
    this.#fail(taskId, error)
  }

  /** Tells traces and observers of an error of the author's code. */
  #noteCrash(taskId: string, error: unknown): void {
    this.traces?.crashed(taskId, error)
    this.#services.observers.active?.crashed(taskId, error)
  }

  #fail(taskId: string, error: unknown): void {
    this.send({ type: 'task.fail', taskId, message: { parts: [{ text: failureReasonOf(error) }] } })
  }

  setAlarm(taskId: string, name: string, dueMs: number, ring: () => void): void {
    if (!this.#isOver && this.#context.tasks.has(taskId)) this.#context.timers.setAlarm(taskId, name, dueMs, ring)
  }

  clearAlarm(taskId: string, name: string): void {
    this.#context.timers.clearAlarm(taskId, name)
  }

  /** Delivers a due event, at once or after its task has been recovered. */
  deliver(delivery: Effect): void {
    this.noteRun(delivery.taskId)
    if (this.#recovery?.isUnderWay(delivery.taskId)) this.afterCommit(delivery)
    else if (!this.#paces?.keepsBack(delivery)) delivery.run()
  }

  /** Runs an effect after its commit. An error in it crashes the task's work. */
  run(effect: Effect): void {
    this.noteRun(effect.taskId)
    try {
      if (this.traces) this.traces.run(effect)
      else effect.run()
    } catch (error) {
      this.crash(effect.taskId, error)
    }
  }

  /** Starts the work of a task. Without `input` it is loaded; `opened` saves a read of the journal. */
  startTask(taskId: string, input?: WorkInput, opened?: OpeningDetails): void {
    if (input) return this.begin(input)
    this.workInput(taskId, opened && (() => opened)).then(
      input => this.begin(input),
      error => this.failTask(taskId, error)
    )
  }

  /** Starts the work of a task, unless the task has ended. */
  begin(input: WorkInput): void {
    const { taskId } = input
    if (this.#isOver || !this.#context.tasks.has(taskId)) return
    const deadline = this.#context.tasks.generationOf(taskId) === 1 ? this.#context.timers.startDeadline(taskId) : {}
    this.noteRun(taskId)
    this.send({ type: 'task.start', taskId, input, ...deadline })
  }

  #restart(taskId: string): void {
    this.traces?.restart(taskId)
    this.startTask(taskId)
  }
}
