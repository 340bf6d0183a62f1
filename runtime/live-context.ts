import { createActor, type Actor, type AnyActorRef } from 'xstate'
import type { ContextFact, ContextRequest } from '../machines/context.machine.ts'
import { A2AError } from '../machines/protocol/errors.ts'
import type { Message } from '../machines/protocol/parts.ts'
import { NEGOTIATION_EXTENSION } from '../machines/protocol/uris.ts'
import { reasonOf, type TaskFact } from '../machines/task.machine.ts'
import { agentMessage } from './agent-message.ts'
import { hostActors, type ActorHost } from './actor-host.ts'
import type { Clock } from './clock.ts'
import { CommitPipeline } from './commit-pipeline.ts'
import type { ContextLogic } from './context-logic.ts'
import type { Feeds } from './feeds.ts'
import type { Ids } from './ids.ts'
import type { Limits } from './limits.ts'
import type { Logger } from './logger.ts'
import { persistContext, persistTask, restoredContext, restoreFault } from './persistence.ts'
import { takes, type OutsideEvent, type OutsideTerms, type Reception } from './outside-event.ts'
import { PendingCalls, type Call } from './pending-calls.ts'
import type { Commit, ContextKey, Store, StoredContext } from './store.ts'
import { TaskLedger } from './task-ledger.ts'
import type { Effect, Turn, Waiting } from './turn.ts'
import { loadWorkInput, type WorkInput } from './work-input.ts'

const DEFAULT_HISTORY = 50

const SHUT_DOWN = new A2AError('Overloaded', 'The conversation is not available now. Send the request again later.')

/** What every context of a runtime works with. */
export interface ContextServices {
  readonly store: Store
  readonly clock: Clock
  readonly ids: Ids
  readonly logger: Logger
  readonly limits: Limits
  readonly feeds: Feeds
  readonly logic: ContextLogic
  readonly negotiates: boolean
}

interface SavedContext {
  readonly context: unknown
  readonly value: unknown
  readonly snapshot: string
}

/**
 * One context in memory: its actors, and what they need of the world. It is the single writer of its tasks: every
 * event that reaches them does so in a turn of the {@link CommitPipeline}. When a commit fails the context is over:
 * its actors stop, whoever waits hears of it, and the store still holds what was before.
 */
export class LiveContext implements ActorHost {
  readonly key: ContextKey
  readonly #services: ContextServices
  readonly #root: Actor<ContextLogic>
  readonly #pipeline: CommitPipeline
  readonly #tasks: TaskLedger
  readonly #calls = new PendingCalls()
  #commit: number
  #saved: SavedContext | undefined
  readonly #onBroken: (taskIds: ReadonlySet<string>) => void

  /** `onBroken` hears when the context has come to an end by itself, because a commit failed, and of which tasks. */
  constructor(key: ContextKey, stored: StoredContext | undefined, services: ContextServices, onBroken: (taskIds: ReadonlySet<string>) => void) {
    this.key = key
    this.#services = services
    this.#onBroken = onBroken
    this.#commit = stored?.commit ?? 0
    this.#tasks = new TaskLedger(key.contextId, services)
    this.#pipeline = new CommitPipeline(services.store, {
      commitOf: turn => this.#commitOf(turn),
      tell: turn => this.#tell(turn),
      run: effect => this.#run(effect),
      broke: (error, answer, taskIds) => this.#break(error, 'a commit failed', answer, taskIds)
    })
    const { logic, clock, negotiates, limits } = services
    const input = { contextId: key.contextId, negotiates, taskLimit: limits.tasksPerContext }
    this.#root = createActor(logic, { id: 'context', clock, input, ...(stored && { snapshot: restoredContext(stored) }) })
    const { context, value, status, error } = this.#root.getSnapshot()
    if (status === 'error') throw new A2AError('InternalError', 'This conversation could not be restored.', { cause: error })
    if (stored) this.#saved = { context, value, snapshot: stored.snapshot }
    this.#start(stored?.tasks ?? [])
  }

  get logger(): Logger {
    return this.#services.logger
  }

  /** True while nothing is under way, so that the context may leave memory without a loss. */
  get isIdle(): boolean {
    return this.#pipeline.isSettled && this.#root.getSnapshot().value === 'idle'
  }

  /** Has the context decide upon a request: a message that addresses no task. */
  receive(request: ContextRequest, call: Call): void {
    if (this.#pipeline.isOver) return call.failed(this.#pipeline.error)
    this.#calls.add(request.callId, call)
    this.#root.send({ type: 'request.received', request })
  }

  /**
   * Has a task decide upon an event. If it does not take it, nothing changes. Either way `waiting` hears when everything
   * that was decided until now is committed.
   */
  send(event: OutsideEvent, { ifGeneration, send }: OutsideTerms, waiting: Waiting): Reception {
    if (this.#pipeline.isOver) {
      waiting.failed(this.#pipeline.error)
      return 'refused'
    }
    const { turn } = this.#pipeline
    turn.waiting.push(waiting)
    const { taskId } = event
    const task = this.#actorOf(taskId)
    const generation = this.#tasks.generationOf(taskId)
    if (!task) return 'refused'
    if (ifGeneration !== undefined && ifGeneration !== generation) return 'stale'
    if (!takes(task, event)) return 'refused'
    if ('message' in event) turn.log.push({ message: event.message, taskId, generation })
    if (send) turn.sends.push({ ...send, taskId })
    this.#root.send(event)
    return 'taken'
  }

  noteTaskFact(taskId: string, fact: TaskFact): void {
    const event = this.#tasks.stamp(taskId, fact)
    if (event) this.#pipeline.turn.log.push(event)
  }

  noteMove(taskId: string): void {
    if (this.#tasks.has(taskId) && !this.#pipeline.isOver) this.#pipeline.turn.moved.add(taskId)
  }

  afterCommit(effect: Effect): void {
    if (this.#pipeline.isOver) this.#run(effect)
    else this.#pipeline.turn.effects.push(effect)
  }

  workInput(taskId: string): Promise<WorkInput> {
    return loadWorkInput(this.#services.store, this.key, taskId)
  }

  async readMessages(limit = DEFAULT_HISTORY): Promise<Message[]> {
    const rows = await this.#services.store.readMessages(this.key, limit)
    return rows.map(({ message }) => message)
  }

  failTask(taskId: string, error: unknown): void {
    this.logger.error('the work of a task failed', { taskId, error })
    this.#root.send({ type: 'task.fail', taskId, message: { parts: [{ text: reasonOf(error) }] } })
  }

  /** Stops the actors. What is committed stays; whoever waits for what is not gets `error`. May be called twice. */
  stop(error: unknown = SHUT_DOWN): void {
    this.#pipeline.end(error)
    this.#calls.failAll(error)
    this.#root.stop()
  }

  #start(rows: StoredContext['tasks']): void {
    hostActors(this.#root.system, this)
    this.#root.on('*', fact => this.#noteFact(fact))
    /* c8 ignore next -- our chart does not break; should it, the context is loaded again */
    this.#root.subscribe({ error: error => this.#break(error, 'a context actor failed', SHUT_DOWN, new Set()) })
    for (const { taskId, generation, state } of rows) {
      this.#tasks.open(taskId, { generation, state })
      if (state === 'TASK_STATE_SUBMITTED') this.afterCommit({ taskId, run: () => this.#startTask(taskId) })
    }
    this.#root.start()
    for (const { taskId, snapshot } of rows) this.#failUnrestored(taskId, snapshot)
  }

  #break(error: unknown, what: string, answer: unknown, taskIds: ReadonlySet<string>): void {
    this.logger.error(what, { contextId: this.key.contextId, error })
    this.stop(answer)
    this.#onBroken(taskIds)
  }

  /** Ends the tasks as failed whose actors, or whose work, could not be restored from what was stored. */
  #failUnrestored(taskId: string, stored: string): void {
    const task = this.#actorOf(taskId)
    const error = task && restoreFault(task, stored)
    if (!error) return
    this.failTask(taskId, error)
    // A task whose own actor is broken hears nothing: the context lets go of it, as of every child that breaks.
    if (task.getSnapshot().status === 'error') this.#root.send({ type: `xstate.error.actor.${taskId}`, actorId: taskId, error })
  }

  #noteFact(fact: ContextFact): void {
    const { turn } = this.#pipeline
    switch (fact.type) {
      case 'task.opened':
        return this.#open(fact, turn)
      case 'request.answered': {
        const { contextId } = this.key
        const reply = agentMessage(fact.reply, this.key, this.#services.ids)
        turn.log.push({ message: { ...fact.request.message, contextId } }, { message: reply })
        return this.#calls.settle(fact.request.callId, turn, { reply })
      }
      case 'request.refused':
        return this.#calls.settle(fact.request.callId, turn, { error: fact.reason === 'full' ? full() : noAnswer() })
      case 'child.crashed': {
        /* c8 ignore next -- our negotiation ends with an outcome, whatever its author's code does */
        if (!this.#tasks.has(fact.actorId)) return this.#calls.settle(fact.actorId, turn, { error: noAnswer() })
        this.noteTaskFact(fact.actorId, { type: 'status.changed', state: 'TASK_STATE_FAILED' })
        return this.noteMove(fact.actorId)
      }
    }
  }

  #open({ request, terms }: Extract<ContextFact, { type: 'task.opened' }>, turn: Turn): void {
    const { taskId, callId } = request
    const { contextId } = this.key
    const metadata = terms && { [NEGOTIATION_EXTENSION]: { terms } }
    this.#tasks.open(taskId, { metadata })
    turn.moved.add(taskId)
    turn.log.push({ message: { ...request.message, taskId, contextId }, taskId, generation: 0 })
    turn.effects.push({ taskId, run: () => this.#startTask(taskId) })
    this.#calls.settle(callId, turn, { taskId })
  }

  #actorOf(taskId: string): AnyActorRef | undefined {
    return this.#root.getSnapshot().children[taskId]
  }

  #startTask(taskId: string): void {
    this.workInput(taskId).then(
      input => this.#root.send({ type: 'task.start', taskId, input }),
      error => this.failTask(taskId, error)
    )
  }

  #commitOf(turn: Turn): Commit | undefined {
    for (const taskId of turn.moved) this.#save(taskId, turn)
    const saved = this.#saveContext()
    if (saved === this.#saved && turn.rows.size === 0 && turn.log.length === 0 && turn.sends.length === 0) return undefined
    this.#saved = saved
    return { key: this.key, expected: this.#commit++, snapshot: saved.snapshot, tasks: [...turn.rows.values()], log: turn.log, sends: turn.sends }
  }

  /** The context actor's snapshot as text, made anew only when the actor changed. */
  #saveContext(): SavedContext {
    const { context, value } = this.#root.getSnapshot()
    const saved = this.#saved
    if (saved && saved.context === context && saved.value === value) return saved
    return { context, value, snapshot: persistContext(this.#root) }
  }

  #save(taskId: string, turn: Turn): void {
    const row = this.#tasks.row(taskId, this.#snapshotOf(taskId))
    if (row) turn.rows.set(taskId, row)
  }

  /** A task's actor as text; if it cannot be saved the task has failed, and there is nothing to save any more. */
  #snapshotOf(taskId: string): string | undefined {
    const actor = this.#actorOf(taskId)
    try {
      return actor && persistTask(actor)
    } catch (error) {
      this.failTask(taskId, error)
      return undefined
    }
  }

  #tell(turn: Turn): void {
    for (const [taskId, events] of turn.eventsByTask()) this.#services.feeds.publish(taskId, events)
  }

  #run(effect: Effect): void {
    try {
      effect.run()
    } catch (error) {
      this.failTask(effect.taskId, error)
    }
  }
}

function full(): A2AError {
  return new A2AError('RateLimited', 'Too many tasks of this context have not ended. Wait for one to end, or start another context.')
}

function noAnswer(): A2AError {
  return new A2AError('InternalError', 'The agent could not answer this message.')
}
