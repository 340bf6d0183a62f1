import type { AnyActorRef } from 'xstate'
import type { ContextFact, ContextMachineEvent } from '../../machines/context.machine.ts'
import type { Message, Task } from '../../machines/protocol/objects.ts'
import type { TaskFact } from '../../machines/task-events.ts'
import { failureReasonOf } from '../../machines/task.machine.ts'
import type { Limits } from '../access/limits.ts'
import { agentOfVersion, type EarlierVersion } from '../agent/earlier-versions.ts'
import type { ReadOpeningDetails, WorkInput } from '../authoring/work-arguments.ts'
import type { ActorHost } from '../commits/actor-host.ts'
import type { CommitPipeline, Effect } from '../commits/commit-pipeline.ts'
import type { TaskLedger } from '../commits/task-ledger.ts'
import type { TaskTimers } from '../commits/task-timers.ts'
import type { Clock } from '../ports/clock.ts'
import { type Logger, WORK_FAILED } from '../ports/logger.ts'
import { appendItem, NONE } from '../primitives/collections.ts'
import { jsonBytes } from '../primitives/json.ts'
import type { RestoredTask } from '../snapshots/snapshot-text.ts'
import type { ContextKey, JournalRow, TaskEvent } from '../store/store.ts'
import { readAllEvents, readWholeOrThrow } from '../streams/task-stream.ts'
import { awaitTask, isPermanent } from '../work/awaited-tasks.ts'
import { readHistory } from '../work/context-history.ts'
import { ENDED_SLEEP, ENDLESS_SLEEP } from '../work/replay.ts'
import { checkRestoredBytes, isOpening, WorkInputs } from '../work/work-input.ts'
import type { ContextServices } from './dependencies.ts'
import type { Facts, OpenedTask, PendingCalls } from './facts.ts'
import { ContextRecovery } from './recovery.ts'
import { TaskPaces } from './task-paces.ts'
import type { WorkSpans } from './work-spans.ts'

const DEFAULT_HISTORY = 50

/** The state of a context that its host reads and changes. */
export interface ContextParts {
  readonly pipeline: CommitPipeline
  readonly tasks: TaskLedger
  readonly facts: Facts
  readonly calls: Pick<PendingCalls, 'has'>
}

interface ContextActors {
  readonly root: AnyActorRef
  readonly timers: TaskTimers
}

/**
 * Host of the actors of one live context. Their events and effects go into the open turn, and their reads to the store.
 * It starts and ends the author's work.
 */
export class WorkHost implements ActorHost {
  readonly key: ContextKey
  /** `undefined` without tracing. */
  readonly traces: WorkSpans | undefined
  readonly #services: ContextServices
  readonly #pipeline: CommitPipeline
  readonly #tasks: TaskLedger
  readonly #facts: Facts
  readonly #calls: Pick<PendingCalls, 'has'>
  /** Set before the actors start. */
  #actors: ContextActors | undefined
  /** Created for a context with stored tasks. */
  #recovery: ContextRecovery | undefined
  readonly #inputs: WorkInputs
  /** Created by the first hasty turn. */
  #paces: TaskPaces | undefined
  /** Ids of the tasks that were loaded from the store. */
  #restored: readonly string[] = NONE
  /** The versions of tasks that go on with the work of an earlier one. */
  #versions: Map<string, string> | undefined

  constructor(key: ContextKey, services: ContextServices, parts: ContextParts, traces?: WorkSpans) {
    this.key = key
    this.#services = services
    this.#pipeline = parts.pipeline
    this.#tasks = parts.tasks
    this.#facts = parts.facts
    this.#calls = parts.calls
    this.#inputs = new WorkInputs(key, services, parts.tasks, taskId => this.workOf(taskId))
    this.traces = traces
  }

  /** Sets the context's actor and its timers, which are made with this host. */
  attach(actors: ContextActors): void {
    this.#actors = actors
  }

  get #root(): AnyActorRef {
    return (this.#actors as ContextActors).root
  }

  get #timers(): TaskTimers {
    return (this.#actors as ContextActors).timers
  }

  get recovery(): ContextRecovery {
    return (this.#recovery ??= new ContextRecovery(this.#services, this.#tasks, this))
  }

  /** Takes back recoveries, because the process shuts down cleanly. */
  processEnds(): void {
    this.#recovery?.processEnds()
  }

  /** Notes that a task was loaded from the store. */
  noteRestored({ row: { taskId }, earlierVersion }: RestoredTask): void {
    this.#restored = appendItem(this.#restored, taskId)
    if (earlierVersion !== undefined) (this.#versions ??= new Map()).set(taskId, earlierVersion)
  }

  /** The version of the agent whose work a task runs. */
  versionOf(taskId: string): string {
    return this.#versions?.get(taskId) ?? this.#services.agent.version
  }

  /** The work that a task runs: the agent's, or an earlier version's. */
  workOf(taskId: string): Pick<EarlierVersion, 'input' | 'recovery'> {
    return agentOfVersion(this.#services.agent, this.versionOf(taskId))
  }

  wasRestored(taskId: string): boolean {
    return this.#restored.includes(taskId)
  }

  noteRun(taskId: string): void {
    this.#services.observers.active?.runs(taskId)
  }

  send(event: ContextMachineEvent): void {
    this.#root.send(event)
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
    return this.#pipeline.isLeaving
  }

  get #isOver(): boolean {
    return this.#pipeline.isOver
  }

  noteContextFact(fact: ContextFact): void {
    switch (fact.type) {
      case 'task.opened': {
        const opened = this.#facts.openTask(fact)
        const { trace } = fact.request
        if (trace) this.traces?.open(opened.taskId, trace, this.#pipeline.turn)
        return this.startWork(opened.taskId, opened)
      }
      case 'request.answered':
        return this.#facts.addReply(fact)
      case 'request.refused':
        return this.#facts.refuse(fact)
      case 'child.crashed': {
        /* c8 ignore next -- a negotiation ends with an outcome, whatever its author's code does */
        if (!this.#tasks.has(fact.actorId)) return this.#facts.refuseCrashed(fact.actorId)
        this.noteTaskFact(fact.actorId, { type: 'status.changed', state: 'TASK_STATE_FAILED' })
        return this.markChanged(fact.actorId)
      }
    }
  }

  noteTaskFact(taskId: string, fact: TaskFact): void {
    if (fact.type === 'restart.requested') {
      const { traces } = this
      if (traces) this.afterCommit({ taskId, run: () => traces.restart(taskId) })
      return this.startWork(taskId)
    }
    const full = this.#facts.addTaskFact(taskId, fact)
    if (full) this.failTask(taskId, full)
  }

  bytesOf(taskId: string): number {
    return this.#tasks.bytesOf(taskId)
  }

  markChanged(taskId: string): void {
    if (this.#tasks.has(taskId) && !this.#isOver) this.#pipeline.turn.markChanged(taskId)
  }

  noteHaste(taskId: string): void {
    if (this.#tasks.has(taskId) && !this.#isOver)
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
    else if (!this.#recovery?.keepsBack(effect)) this.#pipeline.turn.afterCommit(effect)
  }

  writable(taskId: string): Promise<void> | undefined {
    if (!this.#services.state.isRefused) return undefined
    this.markChanged(taskId)
    return new Promise(resolve => this.afterCommit({ taskId, run: resolve }))
  }

  workInput(taskId: string, open?: ReadOpeningDetails): Promise<WorkInput> {
    return this.#inputs.load(taskId, open)
  }

  /** Clears the timers of an ended task, and releases the tasks that were loaded for its work. */
  ended(taskId: string): void {
    this.#timers.clearTask(taskId)
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
    const noteWaiting = (isWaiting: boolean) =>
      this.keep({ taskId: neededBy, key: `needs/${taskId}`, value: isWaiting ? ENDLESS_SLEEP : ENDED_SLEEP })
    return awaitTask(taskId, { store, subscriptions, limits, scope: this.key, loads, signal, noteWaiting })
  }

  async readJournal(taskId: string): Promise<JournalRow[]> {
    const rows = await this.#services.reads.readJournal(this.key, taskId)
    // The rows of the opening request count with its message.
    this.#tasks.setJournalBytes(
      taskId,
      rows.reduce((sum, row) => sum + (isOpening(row) ? 0 : jsonBytes(row.value)), 0)
    )
    return rows
  }

  readEvents(taskId: string): Promise<TaskEvent[]> {
    return readAllEvents(this.#services.reads, this.key, taskId, this.#tasks.generationOf(taskId))
  }

  isInterrupted(taskId: string): boolean {
    return this.#tasks.isInterrupted(taskId)
  }

  isAwaited(callId: string): boolean {
    return this.#calls.has(callId)
  }

  get turnNumber(): number {
    return this.#pipeline.commits
  }

  keep(row: JournalRow): void {
    if (this.#isOver) return
    const full = this.#facts.addJournal(row)
    if (full) this.failTask(row.taskId, full)
    else this.markChanged(row.taskId)
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
    if (!this.#isOver && this.#tasks.has(taskId)) this.#timers.setAlarm(taskId, name, dueMs, ring)
  }

  clearAlarm(taskId: string, name: string): void {
    this.#timers.clearAlarm(taskId, name)
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

  /**
   * Starts the work of a task: a function whose input is known in this turn, other work after the commit. Without
   * `input` it is loaded; `details` save a read of the journal.
   */
  startWork(taskId: string, { input, details }: Partial<OpenedTask> = {}): void {
    // The actor of a function starts here, before the commit, and `function-work.ts` lets the author's code wait for
    // it. The initial transition of a chart runs that code, so a chart starts after the commit.
    if (input && typeof this.#services.agent.work === 'function') return this.#begin(input)
    this.afterCommit({
      taskId,
      run: () => {
        if (input) return this.#begin(input)
        this.workInput(taskId, details && (() => details)).then(
          loaded => this.#begin(loaded),
          error => this.failTask(taskId, error)
        )
      }
    })
  }

  /** Starts the work of a task, unless the task has ended. */
  #begin(input: WorkInput): void {
    const { taskId } = input
    if (this.#isOver || !this.#tasks.has(taskId)) return
    const deadline = this.#tasks.isSubmitted(taskId) ? this.#timers.startDeadline(taskId) : {}
    this.noteRun(taskId)
    this.send({ type: 'task.start', taskId, input, ...deadline })
  }
}
