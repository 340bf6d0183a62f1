import type { Actor, AnyActorLogic, AnyActorRef } from 'xstate'
import { type ContextFact, type ContextInput, contextMachine } from '../../machines/context.machine.ts'
import type { ContextRequest } from '../../machines/negotiation-events.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { TaskFact } from '../../machines/task-events.ts'
import { taskMachine } from '../../machines/task.machine.ts'
import type { Agent } from '../agent/define-agent.ts'
import { type ActorHost, hasRunningLogic, hostActors, hostOf, withScope } from '../commits/actor-host.ts'
import { answerToFailed, CommitPipeline, LOST_RACE, type Turn } from '../commits/commit-pipeline.ts'
import { TaskLedger, type TaskText } from '../commits/task-ledger.ts'
import { EventClock, TaskTimers } from '../commits/task-timers.ts'
import { negotiationChart } from '../negotiation/bargaining.ts'
import { isNegotiation } from '../negotiation/negotiation.ts'
import { negotiationFunction } from '../negotiation/per-message.ts'
import { appendItem } from '../primitives/collections.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { restoredTask } from '../snapshots/restored-task.ts'
import {
  restoredContext,
  type RestoredTask,
  savedContext,
  taskActorOf,
  type SavedContext,
  taskTextOf
} from '../snapshots/snapshot-text.ts'
import type { SendRow } from '../store/rows.ts'
import { type Commit, type ContextKey, contextName, NOT_OWNER, type StoredContext } from '../store/store.ts'
import { workChart } from '../work/chart-work.ts'
import { isGenerator, runOf, workFunction, workGenerator } from '../work/function-work.ts'
import { countInspectors, keepSpawnIdsApart, type ScopeChanges } from '../xstate/actor-system.ts'
import { compileMachine } from '../xstate/compiled-machine.ts'
import { createActor } from '../xstate/library.ts'
import type { TransitionCounter } from '../xstate/transition-counter.ts'
import type { ContextEvents, ContextLogic, ContextServices, Residency } from './dependencies.ts'
import { CONTEXT_STOPPED } from './errors.ts'
import { acceptEvent, type AcceptRules, type EventOptions, type OutsideEvent, type Refusal } from './external-events.ts'
import { Facts, type CallOutcome, PendingCalls, type StoredEventOptions } from './facts.ts'
import type { NewerTasks } from './newer-tasks.ts'
import type { LiveActors } from './observers.ts'
import { resumeTasks } from './resume-tasks.ts'
import { WorkHost } from './work-host.ts'
import type { WorkSpans } from './work-spans.ts'

/**
 * One context in memory, with its actors. It is the single writer of its tasks: each event for them is part of a turn
 * of the {@link CommitPipeline}. A failed commit ends the live context: its actors stop, and waiting calls get the
 * error. The store still has the state before that commit.
 */
export class LiveContext implements LiveActors {
  readonly key: ContextKey
  /** Its key as a string. */
  readonly name: string
  readonly #services: ContextServices
  readonly #root: Actor<ContextLogic>
  readonly pipeline: CommitPipeline
  readonly tasks: TaskLedger
  readonly #calls = new PendingCalls()
  readonly #timers: TaskTimers
  readonly #facts: Facts
  readonly #host: WorkHost
  #saved: SavedContext | undefined
  readonly #events: ContextEvents<LiveContext>
  readonly residency: Residency
  /** Tasks that stay in the store, with the newer version that opened them. */
  readonly #newer: ReadonlyMap<string, string> | undefined

  constructor(
    key: ContextKey,
    stored: StoredContext | undefined,
    services: ContextServices,
    events: ContextEvents<LiveContext>,
    residency: Residency,
    traces?: WorkSpans
  ) {
    this.key = key
    this.name = contextName(key)
    this.#services = services
    this.#events = events
    this.residency = residency
    this.tasks = new TaskLedger(key.contextId, services, residency.bytes)
    this.pipeline = new CommitPipeline(stored?.commit ?? 0, turn => this.#commit(turn))
    this.#facts = new Facts(key, services, this.pipeline, this.tasks, this.#calls)
    const parts = { pipeline: this.pipeline, tasks: this.tasks, facts: this.#facts, calls: this.#calls }
    this.#host = new WorkHost(key, services, parts, traces)
    const { logic, agent, limits } = services
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
    const rows = stored?.tasks ?? []
    this.#newer = services.newerTasks?.among(rows)
    const restored = rows.filter(({ taskId }) => !this.#newer?.has(taskId)).map(row => restoredTask(row, agent))
    const { inspect } = services.observers
    this.#root = createActor(logic, {
      id: 'context',
      ...(inspect && { inspect }),
      clock: eventClock,
      input,
      ...(stored && { snapshot: restoredContext(stored.snapshot, restored, input) })
    })
    countInspectors(this.#root.system, inspect ? 1 : 0)
    if (stored)
      keepSpawnIdsApart(
        this.#root.system,
        restored.map(({ saved }) => saved)
      )
    this.#timers = new TaskTimers(this.#root, eventClock, this.#host, agent.deadlineMs)
    this.#host.attach({ root: this.#root, timers: this.#timers })
    const { context, status, error } = this.#root.getSnapshot()
    if (status === 'error') throw new A2AError('InternalError', 'The context could not be restored.', { cause: error })
    if (stored) this.#saved = { context, snapshot: stored.snapshot }
    this.#start(restored)
  }

  /** Whether nothing runs and nothing is due, so that the context may leave memory. */
  get isAtRest(): boolean {
    if (this.isOver || !this.pipeline.isSettled || this.#root.getSnapshot().context.negotiations.length > 0)
      return false
    return this.nextWakeMs > this.#services.clock.now()
  }

  /** When the context must be in memory next: 0 while work runs, Infinity if only a message needs it. */
  get nextWakeMs(): number {
    let nextMs = Infinity
    for (const taskId of this.tasks.ids()) nextMs = Math.min(nextMs, this.#wakeOf(taskId))
    return nextMs
  }

  /** Whether its actors have stopped, and nothing more is decided here. */
  get isOver(): boolean {
    return this.pipeline.isOver
  }

  get root(): AnyActorRef {
    return this.#root
  }

  /** The version of the agent whose work a task runs. */
  versionOf(taskId: string): string {
    return this.#host.versionOf(taskId)
  }

  /** Sends a request to the context: a message that addresses no task. Resolves when the outcome is committed. */
  receive(request: ContextRequest, options: StoredEventOptions): Promise<CallOutcome> {
    if (this.pipeline.isOver) return Promise.reject(this.pipeline.error)
    const outcome = this.#calls.add(request.callId, options)
    this.#root.send({ type: 'request.received', request })
    return outcome
  }

  /**
   * Sends an event to a task. Gives the turn that handles it, or a refusal, which changes nothing. Either way it
   * resolves when everything decided so far is committed.
   */
  send(event: OutsideEvent, options: EventOptions): Promise<Turn | Refusal> {
    const newer = this.#newer?.get(event.taskId)
    if (newer !== undefined)
      return Promise.reject((this.#services.newerTasks as NewerTasks).refusal(event.taskId, newer))
    return new Promise((resolve, reject) => {
      const { turn } = this.pipeline
      let refusal: Refusal | undefined
      turn.onCommit({ onPublished: () => resolve(refusal ?? turn), onFailed: reject })
      refusal = this.#trySend(event, options, turn)
    })
  }

  /** Sends an event to its task, or gives the refusal. */
  #trySend(event: OutsideEvent, options: EventOptions, turn: Turn): Refusal | undefined {
    const { taskId } = event
    const generation = this.tasks.generationOf(taskId)
    const actor = this.#actorOf(taskId)
    if (actor) this.#host.noteRun(taskId)
    const task = { actor, generation, question: this.tasks.questionOf(taskId) }
    const accepted = acceptEvent(task, event, this.#rules, options)
    if ('reason' in accepted) return accepted
    if ('message' in event && !this.#facts.addMessage(taskId, event.message, event.request)) return { reason: 'bytes' }
    const { send, webhook, trace } = options
    if (send) turn.sends = appendItem(turn.sends, { ...send, taskId })
    if (webhook)
      turn.webhooks = appendItem(turn.webhooks, { ...webhook, taskId, told: this.tasks.generationOf(taskId) })
    if (trace) this.#host.traces?.link(taskId, trace, turn)
    this.#root.send(accepted)
    this.#host.stopThrottling(taskId)
    return undefined
  }

  /** Writes a row to the index of messages by key, beside the tasks. Resolves when it is committed. */
  write(row: SendRow): Promise<void> {
    return new Promise((resolve, reject) => {
      const { turn } = this.pipeline
      turn.sends = appendItem(turn.sends, row)
      turn.onCommit({ onPublished: () => resolve(), onFailed: reject })
    })
  }

  get #rules(): AcceptRules {
    const { agent, limits } = this.#services
    return { messages: agent.messages, queuedMessages: limits.queuedMessages }
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

  /** Stops the actors; for good if `isFinal`. Calls that wait for a commit get `error`. May be called twice. */
  stop(error: unknown = CONTEXT_STOPPED, isFinal = false): void {
    this.pipeline.end(error, isFinal)
    this.#calls.failAll(error)
    this.#timers.clearAll()
    this.#host.leave()
    if (this.#root.getSnapshot().status === 'stopped') return
    this.#root.stop()
    this.#services.observers.active?.left(this)
  }

  /** Stops the actors for good, as if their tasks were canceled. Waiting calls get `error`. */
  erase(error: unknown): void {
    this.stop(error, true)
  }

  #start(tasks: readonly RestoredTask[]): void {
    hostActors(this.#root.system, this.#host)
    this.#services.observers.active?.entered(this)
    this.#root.subscribe({
      /* c8 ignore next -- the context chart does not fail; if it does, the context is reloaded */
      error: error => this.#fail(error, CONTEXT_STOPPED, 'a context actor failed')
    })
    if (tasks.length === 0) return void this.#root.start()
    resumeTasks(tasks, {
      root: this.#root,
      host: this.#host,
      ledger: this.tasks,
      timers: this.#timers,
      services: this.#services,
      wasHere: this.residency.broken !== undefined
    })
  }

  #actorOf(taskId: string): AnyActorRef | undefined {
    return this.#root.getSnapshot().children[taskId]
  }

  /** Closes a turn and commits it, then publishes it and the turns that waited for it. */
  #commit(turn: Turn): void {
    const commit = this.#commitOf(turn)
    this.pipeline.closeTurn()
    if (!commit) return this.#settle(turn, true)
    this.#services.store.commit(commit).then(
      isWritten => this.#settle(turn, isWritten),
      error => this.#fail(error)
    )
  }

  #settle(settled: Turn, isWritten: boolean): void {
    const { pipeline } = this
    settled.isWritten = isWritten
    for (let turn = pipeline.takeWritten(); turn; turn = pipeline.takeWritten()) {
      this.#publish(turn)
      killPoint('streams told')
      for (const waiting of turn.waiting) waiting.onPublished(turn)
      for (const effect of turn.effects) this.#host.runThrottled(effect)
      if (pipeline.isSettled && !pipeline.isOver) this.#events.onIdle(this)
    }
    if (pipeline.hasLostRace) this.#fail(LOST_RACE)
  }

  /** Ends the context after a failed commit. */
  #fail(error: unknown, answer: unknown = answerToFailed(error), what = 'a commit failed'): void {
    if (this.pipeline.isOver) return
    const taskIds = this.pipeline.end(answer)
    if (answer !== NOT_OWNER) this.#services.logger.error(what, { contextId: this.key.contextId, error })
    this.#services.metering.forget(this.key)
    this.stop(answer)
    const reason = answer === LOST_RACE ? 'race' : answer === NOT_OWNER ? 'not owner' : 'refused'
    this.#events.onCommitFailed(this, taskIds, reason)
  }

  #commitOf(turn: Turn): Commit | undefined {
    for (const taskId of turn.changedTasks) this.#save(taskId, turn)
    const saved = savedContext(this.#root, this.#saved)
    const { rows, log, sends, journal, webhooks } = turn
    const isNew = this.pipeline.commits === 0 && this.#root.getSnapshot().context.negotiations.length === 0
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
      expected: this.pipeline.commits++,
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
    return actor && !hasRunningLogic(actor) ? this.#timers.nextOf(taskId) : 0
  }

  /** A task's actor as text. If it cannot be serialized, the task fails and has no snapshot. */
  #textOf(taskId: string): TaskText | undefined {
    const actor = this.#actorOf(taskId)
    try {
      const made =
        actor &&
        taskTextOf(
          actor,
          this.#timers.eventsOf(taskId),
          this.#services.stamps.stampOf(this.#host.versionOf(taskId)),
          this.tasks.textOf(taskId)
        )
      if (made) this.#facts.checkSnapshot(taskId, made.bytes)
      return made
    } catch (error) {
      this.#host.failTask(taskId, error)
      return undefined
    }
  }

  #publish(turn: Turn): void {
    const { subscriptions, metering, webhooks, earlierTasks } = this.#services
    this.#host.traces?.addEvents(turn)
    metering.committed(this.key, turn)
    if (turn.commit) this.#events.onCommitted(turn.commit, this)
    for (const { taskId, id } of turn.webhooks) void webhooks?.refresh(this.key, taskId, [id])
    if (earlierTasks)
      for (const { taskId, state } of turn.rows) if (isTerminal(state)) earlierTasks.onEnd(this.versionOf(taskId))
    this.tasks.releaseEnded(turn)
    for (const taskId of turn.changedTasks) {
      const hooks = webhooks?.has(taskId) ? webhooks : undefined
      if (!hooks && !subscriptions.has(taskId)) continue
      const entries = turn.entriesOf(taskId)
      subscriptions.publish(taskId, entries)
      if (!hooks) continue
      const newest = entries.findLast(({ update }) => update)
      if (newest) hooks.advance(taskId, newest.generation)
    }
  }
}

/** Provides an agent's work and negotiation to the charts. Made once per runtime and shared by its contexts. */
export function contextLogic({ work, negotiate, input, earlier }: Agent, counter?: TransitionCounter): ContextLogic {
  // An agent without work may have stored tasks, which then end with a reason.
  const actors: Record<string, AnyActorLogic> = { [taskActorOf()]: taskLogic(workLogic(work ?? (() => {}), counter)) }
  for (const [version, { work: workThen }] of Object.entries(earlier ?? {}))
    actors[taskActorOf(version)] = taskLogic(workLogic(workThen))
  if (typeof negotiate === 'function') actors.negotiation = negotiationFunction({ negotiate, work, input })
  else if (negotiate) actors.bargaining = negotiationChart(negotiate)
  return withScope(
    compileMachine(contextMachine.provide({ actors })),
    emitting((host, _, fact: ContextFact) => host.noteContextFact(fact))
  ) as ContextLogic
}

/** An agent's work as the actor that its tasks invoke. */
function workLogic(work: Exclude<Agent['work'], undefined>, counter?: TransitionCounter): AnyActorLogic {
  if (typeof work !== 'function') return workChart(work, counter)
  return isGenerator(work) ? workGenerator(work) : workFunction(work)
}

/** The task chart with work, whose emitted events go into the turn. */
function taskLogic(work: AnyActorLogic): AnyActorLogic {
  const machine = compileMachine(taskMachine.provide({ actors: { work } }))
  return withScope(
    machine,
    emitting((host, taskId, fact: TaskFact) => host.noteTaskFact(taskId, fact))
  )
}

/** Makes emitted events go to the host first. */
function emitting(note: (host: ActorHost, id: string, fact: never) => void): ScopeChanges {
  return {
    emit: (scope, fact) => {
      note(hostOf(scope.system), scope.id, fact as never)
      scope.emit(fact)
    }
  }
}
