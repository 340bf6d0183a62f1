import { createActor, type Actor, type AnyActorRef } from 'xstate'
import type { ContextFact, ContextInput } from '../../machines/context.machine.ts'
import type { ContextRequest } from '../../machines/negotiation-events.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import { agentMessage } from '../authoring/words.ts'
import { hostActors, hasRunningLogic } from '../commits/actor-host.ts'
import { CommitPipeline, LOST_RACE, type Committer } from '../commits/commit-pipeline.ts'
import { TaskLedger, type TaskText } from '../commits/task-ledger.ts'
import type { Effect, Turn } from '../commits/turn.ts'
import { isNegotiation } from '../negotiation/negotiation.ts'
import { appendItem } from '../primitives/collections.ts'
import { restoredTask } from '../snapshots/restored-task.ts'
import {
  restoredContext,
  savedContext,
  taskTextOf,
  type SavedContext,
  type RestoredTask
} from '../snapshots/snapshot-text.ts'
import { contextName, NOT_OWNER, type Commit, type ContextKey, type StoredContext } from '../store/store.ts'
import { EventClock } from '../timers/delayed-events.ts'
import { TaskTimers } from '../timers/task-timers.ts'
import { runOf } from '../work/function-work.ts'
import { firstWorkInput, detailsFromRequest, storeOpened } from '../work/work-input.ts'
import { keepSpawnIdsApart, countInspectors } from '../xstate/actor-system.ts'
import { ContextHost } from './context-host.ts'
import type { ContextLogic } from './context-logic.ts'
import type { RegistryCallbacks, ContextServices, HostedContext, Residency } from './dependencies.ts'
import { noAnswer, requestRefused, CONTEXT_STOPPED } from './errors.ts'
import {
  acceptEvent,
  isForOther,
  PendingCalls,
  type CallOutcome,
  type StoredEventOptions,
  type OutsideEvent,
  type EventOptions,
  type EventRefusal
} from './external-events.ts'
import type { LiveActors } from './observers.ts'
import { resumeTasks } from './resume-tasks.ts'
import type { WorkSpans } from './work-spans.ts'

/**
 * One context in memory, with its actors. It is the single writer of its tasks: each event for them is part of a turn
 * of the {@link CommitPipeline}. A failed commit ends the live context: its actors stop, and waiting calls get the
 * error. The store still has the state before that commit.
 */
export class LiveContext implements LiveActors, Committer, HostedContext {
  readonly key: ContextKey
  /** Its key as a string. */
  readonly name: string
  readonly #services: ContextServices
  readonly #root: Actor<ContextLogic>
  readonly pipeline: CommitPipeline
  readonly tasks: TaskLedger
  readonly calls = new PendingCalls()
  readonly timers: TaskTimers
  readonly #host: ContextHost
  /** The number of its commits. */
  commits: number
  /** Whether it may have had a task. */
  #hasTasks: boolean
  #saved: SavedContext | undefined
  readonly owner: RegistryCallbacks<LiveContext>
  readonly residency: Residency

  constructor(
    key: ContextKey,
    stored: StoredContext | undefined,
    services: ContextServices,
    owner: RegistryCallbacks<LiveContext>,
    residency: Residency,
    traces?: WorkSpans
  ) {
    this.key = key
    this.name = contextName(key)
    this.#services = services
    this.owner = owner
    this.residency = residency
    this.commits = stored?.commit ?? 0
    this.#hasTasks = stored !== undefined
    this.tasks = new TaskLedger(key.contextId, services, residency.bytes)
    this.pipeline = new CommitPipeline(services.store, this)
    const { logic, agent, limits } = services
    this.#host = new ContextHost(key, services, this, traces)
    const eventClock = new EventClock(this.#host)
    const { negotiate } = agent
    const bargains =
      negotiate && isNegotiation(negotiate)
        ? { rounds: negotiate.rounds, waitingLimit: limits.queuedMessages }
        : undefined
    const input: ContextInput = {
      contextId: key.contextId,
      negotiates: typeof negotiate === 'function',
      bargains,
      taskLimit: limits.tasksPerContext
    }
    const tasks = (stored?.tasks ?? []).map(row => restoredTask(row, agent))
    const { inspect } = services.observers
    this.#root = createActor(logic, {
      id: 'context',
      ...(inspect && { inspect }),
      clock: eventClock,
      input,
      ...(stored && { snapshot: restoredContext(stored.snapshot, tasks, input) })
    })
    countInspectors(this.#root.system, inspect ? 1 : 0)
    if (stored)
      keepSpawnIdsApart(
        this.#root.system,
        tasks.map(({ saved }) => saved)
      )
    this.timers = new TaskTimers(this.#root, eventClock, this.#host, agent.deadlineMs)
    const { context, status, error } = this.#root.getSnapshot()
    if (status === 'error') throw new A2AError('InternalError', 'The context could not be restored.', { cause: error })
    if (stored) this.#saved = { context, snapshot: stored.snapshot }
    this.#start(tasks)
  }

  /** Whether nothing runs and nothing is due, so that the context may leave memory. */
  get isAtRest(): boolean {
    if (this.isLeaving || !this.pipeline.isSettled || this.#root.getSnapshot().context.negotiations.length > 0)
      return false
    return this.nextWakeMs > this.#services.clock.now()
  }

  /** When the context must be in memory next: 0 while work runs, Infinity if only a message needs it. */
  get nextWakeMs(): number {
    let nextMs = Infinity
    for (const taskId of this.tasks.ids()) nextMs = Math.min(nextMs, this.#wakeOf(taskId))
    return nextMs
  }

  get isLeaving(): boolean {
    return this.pipeline.isOver
  }

  get root(): AnyActorRef {
    return this.#root
  }

  /** Sends a request to the context: a message that addresses no task. Resolves when the outcome is committed. */
  receive(request: ContextRequest, terms: StoredEventOptions): Promise<CallOutcome> {
    if (this.pipeline.isOver) return Promise.reject(this.pipeline.error)
    const outcome = this.calls.add(request.callId, terms)
    this.#root.send({ type: 'request.received', request })
    return outcome
  }

  /**
   * Sends an event to a task. Gives the turn that handles it, or a refusal, which changes nothing. Either way it
   * resolves when everything decided so far is committed.
   */
  send(event: OutsideEvent, terms: EventOptions): Promise<Turn | EventRefusal> {
    return new Promise((resolve, reject) => {
      const { turn } = this.pipeline
      turn.onCommit({ onPublished: () => resolve(refusal ?? turn), onFailed: reject })
      const refusal = this.#trySend(event, terms, turn)
    })
  }

  /** Sends an event to its task, or gives the refusal. */
  #trySend(
    event: OutsideEvent,
    { ifGeneration, answers, send, webhook, trace }: EventOptions,
    turn: Turn
  ): EventRefusal | undefined {
    const { taskId } = event
    const task = this.#actorOf(taskId)
    const generation = this.tasks.generationOf(taskId)
    if (!task) return 'refused'
    if (ifGeneration !== undefined && ifGeneration !== generation) return 'stale'
    const {
      agent: { messages },
      limits: { queuedMessages }
    } = this.#services
    if (answers && isForOther(answers, this.tasks.questionOf(taskId), messages)) return 'other question'
    this.#host.noteRun(taskId)
    const accepted = acceptEvent(task, event, messages, queuedMessages)
    if (typeof accepted === 'string' || !('type' in accepted)) return accepted
    if ('message' in event && !this.#host.logMessage({ message: event.message, taskId, generation }, event.request))
      return 'large'
    if (send) turn.deduplicationRows = appendItem(turn.deduplicationRows, { ...send, taskId })
    if (webhook) turn.webhooks = appendItem(turn.webhooks, { ...webhook, taskId, told: generation })
    if (trace) this.#host.traces?.link(taskId, trace, turn)
    this.#root.send(accepted)
    this.#host.stopThrottling(taskId)
    return undefined
  }

  /**
   * Settles when replayed work of an interrupted task waits for its answer again; `undefined` if there is nothing to
   * wait for.
   */
  replayed(taskId: string): Promise<void> | undefined {
    const task = this.tasks.isInterrupted(taskId) ? this.#actorOf(taskId) : undefined
    const work: AnyActorRef | undefined = task?.getSnapshot().children.work
    return work && runOf(work)?.replayed()
  }

  /** Call it before `stop` if the process shuts down cleanly. */
  processEnds(): void {
    this.#host.processEnds()
  }

  /** Resolves when everything decided so far is committed and published, or has failed. */
  settled(): Promise<void> {
    if (this.pipeline.isSettled) return Promise.resolve()
    return new Promise(resolve =>
      this.pipeline.turn.onCommit({ onPublished: () => resolve(), onFailed: () => resolve() })
    )
  }

  /** Stops the actors. Calls that wait for a commit get `error`. May be called twice. */
  stop(error: unknown = CONTEXT_STOPPED): void {
    this.pipeline.end(error)
    this.calls.failAll(error)
    this.timers.clearAll()
    this.#host.leave()
    if (this.#root.getSnapshot().status === 'stopped') return
    this.#root.stop()
    this.#services.observers.active?.left(this)
  }

  /** Stops the actors for good, as if their tasks were canceled. Waiting calls get `error`. */
  erase(error: unknown): void {
    this.#host.end()
    this.stop(error)
  }

  #start(tasks: readonly RestoredTask[]): void {
    hostActors(this.#root.system, this.#host)
    this.#services.observers.active?.entered(this)
    this.#root.subscribe({ error: error => this.#failed(error) })
    if (tasks.length === 0) return void this.#root.start()
    resumeTasks(tasks, {
      root: this.#root,
      host: this.#host,
      ledger: this.tasks,
      timers: this.timers,
      services: this.#services,
      wasHere: this.residency.broken !== undefined
    })
  }

  run(effect: Effect): void {
    this.#host.runThrottled(effect)
  }

  /* c8 ignore next 3 -- the context chart does not fail; if it does, the context is reloaded */
  #failed(error: unknown): void {
    this.onCommitFailed(error, CONTEXT_STOPPED, new Set(), 'a context actor failed')
  }

  onIdle(): void {
    this.owner.onIdle(this)
  }

  onCommitFailed(error: unknown, answer: unknown, taskIds: ReadonlySet<string>, what = 'a commit failed'): void {
    if (answer !== NOT_OWNER) this.#services.logger.error(what, { contextId: this.key.contextId, error })
    this.#services.metering.forget(this.key)
    this.stop(answer)
    this.owner.onCommitFailed(
      this,
      taskIds,
      answer === LOST_RACE ? 'race' : answer === NOT_OWNER ? 'not owner' : 'refused'
    )
  }

  noteFact(fact: ContextFact): void {
    const { turn } = this.pipeline
    switch (fact.type) {
      case 'task.opened':
        return this.#open(fact, turn)
      case 'request.answered': {
        const reply = agentMessage(fact.reply, this.key, this.#services.ids)
        turn.addEvent({ message: { ...fact.request.message, contextId: this.key.contextId } })
        turn.addEvent({ message: reply })
        return this.calls.settle(fact.request.callId, turn, { reply })
      }
      case 'request.refused':
        return this.calls.settle(fact.request.callId, turn, { error: requestRefused(fact) })
      case 'child.crashed': {
        /* c8 ignore next -- a negotiation ends with an outcome, whatever its author's code does */
        if (!this.tasks.has(fact.actorId)) return this.calls.settle(fact.actorId, turn, { error: noAnswer() })
        this.#host.noteTaskFact(fact.actorId, { type: 'status.changed', state: 'TASK_STATE_FAILED' })
        return this.#host.markChanged(fact.actorId)
      }
    }
  }

  #open({ request, terms }: Extract<ContextFact, { type: 'task.opened' }>, turn: Turn): void {
    const { taskId, callId, details, trace } = request
    const { contextId } = this.key
    const { work, input: schema } = this.#services.agent
    const message = Object.assign({}, request.message, { taskId, contextId })
    const opened = detailsFromRequest(request)
    const input =
      this.#hasTasks || schema ? undefined : firstWorkInput({ taskId, contextId, message, ...opened }, terms)
    this.#hasTasks = true
    this.tasks.open(taskId, { metadata: terms && { [NEGOTIATION_EXTENSION]: { terms } } })
    turn.markChanged(taskId)
    this.#host.logMessage({ message, taskId, generation: 0 }, details)
    storeOpened(taskId, opened, turn)
    if (trace) this.#host.traces?.open(taskId, trace, turn)
    // The initial transition of a chart runs the author's code, so it waits for the commit.
    if (input && typeof work === 'function') turn.worksToStart = appendItem(turn.worksToStart, input)
    else turn.afterCommit({ taskId, run: () => this.#host.startTask(taskId, input, opened) })
    this.calls.settle(callId, turn, { taskId })
  }

  #actorOf(taskId: string): AnyActorRef | undefined {
    return this.#root.getSnapshot().children[taskId]
  }

  commitOf(turn: Turn): Commit | undefined {
    for (const input of turn.worksToStart) this.#host.begin(input)
    for (const taskId of turn.changedTasks) this.#save(taskId, turn)
    const saved = savedContext(this.#root, this.#saved)
    const { rows, log, deduplicationRows: sends, journal, webhooks } = turn
    const isNew = this.commits === 0 && this.#root.getSnapshot().context.negotiations.length === 0
    if (
      (isNew || saved.snapshot === this.#saved?.snapshot) &&
      rows.length === 0 &&
      log.length === 0 &&
      sends.length === 0 &&
      journal.length === 0
    )
      return undefined
    this.#saved = saved
    turn.commit = {
      key: this.key,
      expected: this.commits++,
      atMs: this.#services.clock.now(),
      snapshot: saved.snapshot,
      tasks: rows,
      log,
      journal,
      sends,
      webhooks
    }
    return turn.commit
  }

  #save(taskId: string, turn: Turn): void {
    const row = this.tasks.row(taskId, this.#textOf(taskId), this.#wakeOf(taskId), turn)
    if (!this.tasks.has(taskId)) this.#host.ended(taskId)
    if (row) turn.rows = appendItem(turn.rows, row)
  }

  /** When a task must be in memory next: 0 while it works, or while logic runs in it during an interruption. */
  #wakeOf(taskId: string): number {
    const actor = this.tasks.isInterrupted(taskId) ? this.#actorOf(taskId) : undefined
    return actor && !hasRunningLogic(actor) ? this.timers.nextOf(taskId) : 0
  }

  /** A task's actor as text. If it cannot be serialized, the task fails and has no snapshot. */
  #textOf(taskId: string): TaskText | undefined {
    const actor = this.#actorOf(taskId)
    try {
      const made =
        actor &&
        taskTextOf(actor, this.timers.eventsOf(taskId), this.#services.agent.version, this.tasks.textOf(taskId))
      if (made) this.#host.checkSnapshot(taskId, made.text)
      return made
    } catch (error) {
      this.#host.failTask(taskId, error)
      return undefined
    }
  }

  publish(turn: Turn): void {
    const { subscriptions, metering, webhooks } = this.#services
    this.#host.traces?.addEvents(turn)
    metering.committed(this.key, turn)
    if (turn.commit) this.owner.committed(turn.commit, this)
    for (const { taskId, id } of turn.webhooks) void webhooks?.refresh(this.key, taskId, [id])
    this.tasks.releaseEnded(turn)
    for (const taskId of turn.changedTasks) {
      if (subscriptions.has(taskId)) subscriptions.publish(taskId, turn.eventsOf(taskId), turn.hasMessageTo(taskId))
      if (webhooks?.has(taskId)) webhooks.advance(taskId, turn.rowOf(taskId).generation)
    }
  }
}
