import { isDeepStrictEqual } from 'node:util'
import type { Actor, AnyActorRef, AnyMachineSnapshot, AnyStateMachine, EventObject } from 'xstate'
import { toJson } from '../../../machines/protocol/codec/json.ts'
import { createActor, openQuestion, replaceSchedule, startRestored, takeId } from '../../../runtime/work-port.ts'
import { type ActiveState, activeStates, keepDetails } from '../../../runtime/xstate/persisted-snapshot.ts'
import { takenName } from '../../../runtime/xstate/written-chart.ts'
import { CoverageLog } from '../coverage.ts'
import { PathError } from '../path-error.ts'
import { actorAt, actorsIn, endedIn, shownIn } from '../plan/actors-in.ts'
import { MOST_TURNS } from '../plan/model.ts'
import {
  describeMove,
  receivedEvent,
  type ChartMove,
  type OutsideMove,
  type InnerMove,
  type Timer,
  type WorkTurn
} from '../plan/moves.ts'
import type { Path } from '../plan/plan.ts'
import { endActor, ending, showSnapshot, withLeaves } from './stub-actors.ts'

/** The actor of a chart: live, or restored from JSON text before every step. */
export type Liveness = 'live' | 'restored'

/** Gets the number of each step of a path before its walk; 0 is the opening. */
export type AtStep = (step: number) => void

/** Walks one path with an actor of the chart alone. Throws PathError if it differs from the chart's pure functions. */
export function walkChart(
  { start, steps, input }: Pick<Path, 'start' | 'steps' | 'input'>,
  liveness: Liveness,
  log: CoverageLog,
  at: AtStep
): void {
  const run = new ChartRun(log, input)
  const check = (step: string, turn: WorkTurn) => {
    run.advance(0)
    log.noteStates(run.states)
    run.check(step, [...turn.passed, turn])
  }
  check(OPENING, start)
  for (const [i, { move, turn, refusal }] of steps.entries()) {
    at(i + 1)
    if (move.type === 'cancel') continue
    if (refusal !== undefined) run.refuse(move as OutsideMove)
    if (!turn) continue
    if (liveness === 'restored') run.restore()
    run.take(move)
    check(describeMove(move), turn)
  }
  run.stop()
}

/**
 * Makes moves with an actor of the chart alone. Throws PathError if it differs from these turns, and TypeError if it
 * cannot make one.
 */
export function takeMoves(
  machine: AnyStateMachine,
  input: unknown,
  start: WorkTurn,
  moves: readonly { readonly move: ChartMove; readonly turn: WorkTurn }[]
): void {
  const run = new ChartRun(new CoverageLog(machine), input)
  run.checkNext(OPENING, start)
  for (const { move, turn } of moves) {
    run.take(move)
    run.checkNext(describeMove(move), turn)
  }
  run.stop()
}

/** The name of a path's beginning in errors. */
export const OPENING = 'the opening'

/**
 * A step of a path: its move, the ids of the chart's states after it, outermost first, and the names of the transitions
 * that it took.
 */
export interface WalkedStep {
  readonly move: string
  readonly states: readonly string[]
  readonly transitions: readonly string[]
}

/** The steps of a path as its chart takes them, the opening first. */
export function walkedSteps({ steps, input }: Path, machine: AnyStateMachine): WalkedStep[] {
  const { run, transitionsSince } = recordedRun(machine, input)
  run.advance(0)
  const walked = (move: string): WalkedStep => ({ move, states: idsOf(run.states), transitions: transitionsSince() })
  const all = [walked(OPENING)]
  for (const { move, turn } of steps) {
    if (turn && move.type !== 'cancel') run.take(move)
    run.advance(0)
    all.push(walked(describeMove(move)))
  }
  run.stop()
  return all
}

/** The ids of states, outermost first. */
export function idsOf(states: readonly ActiveState[]): string[] {
  return states.toSorted((one, other) => one.order - other.order).map(({ id }) => id)
}

/**
 * A run of a chart. `transitionsSince` gives the names of the transitions that it took since the last call, each once.
 */
export function recordedRun(
  machine: AnyStateMachine,
  input: unknown
): { readonly run: ChartRun; readonly transitionsSince: () => string[] } {
  const names = new Set<string>()
  const run = new ChartRun({ watched: machine, noteTransition: name => void names.add(name) }, input)
  const transitionsSince = () => {
    const all = [...names]
    names.clear()
    return all
  }
  return { run, transitionsSince }
}

/** The records of a run. */
type RunLog = Pick<CoverageLog, 'watched' | 'noteTransition'>

/** A delayed event of the chart's actor. */
interface Delayed {
  readonly source: AnyActorRef
  readonly target: AnyActorRef
  readonly event: EventObject
  readonly id: string | undefined
  /** Whether `cancel` no longer finds it, since another one has its id now. */
  isFree: boolean
  /** Milliseconds since the start of the run. */
  readonly dueMs: number
  readonly fire: () => void
}

type Schedule = Parameters<typeof replaceSchedule>[1]

/** The snapshot and the words of the actor after one event. */
type Sight = Pick<AnyMachineSnapshot, 'status' | 'value'> & { readonly words: readonly unknown[] }

class ChartRun {
  readonly #machine: AnyStateMachine
  readonly #log: RunLog
  #actor: Actor<AnyStateMachine>
  #words: unknown[] = []
  #sights: Sight[] = []
  /** The key of the open question. */
  #asks: string | undefined
  /** The error of the chart. */
  #error: unknown
  /** The delayed events that are scheduled, in this order. */
  #delayed: Delayed[] = []
  #nowMs = 0

  constructor(log: RunLog, input: unknown) {
    const { watched } = log
    this.#log = log
    this.#machine = keepDetails(withLeaves(watched, ending))
    this.#actor = this.#begin({ input }).actor
  }

  restore(): void {
    const [had, delayed] = [this.#actor, this.#delayed]
    const text = JSON.stringify(had.getPersistedSnapshot())
    const placed = new Map(actorsIn(had.getSnapshot()).map(({ actor, path }) => [actor, path]))
    had.stop()
    this.#delayed = []
    const { actor, schedule } = this.#begin({ snapshot: JSON.parse(text), input: undefined })
    this.#actor = actor
    this.#sights = []
    this.#words = []
    // Plain XState forgets them. The runtime stores them.
    const again = (one: AnyActorRef) => (one === had ? actor : actorAt(actor.getSnapshot(), placed.get(one) ?? ''))
    for (const { source, target, event, id, dueMs, isFree } of delayed) {
      const [from, to] = [again(source), again(target)]
      if (!from || !to) continue
      schedule(from, to, event, dueMs - this.#nowMs, id)
      if (isFree && id !== undefined) takeId(schedule, from, id)
    }
  }

  take(move: InnerMove | ChartMove): void {
    // The chart received this event at once.
    if (move.type === 'own') return
    if (move.type === 'timer') return this.#fire(move.timer)
    if (move.type === 'time') return this.advance(move.delayMs)
    const received = receivedEvent(this.#actor.getSnapshot(), move, this.#asks)
    /* c8 ignore next -- a path has only legal moves */
    if ('violations' in received) return
    const [ended, shown] = [move.type === 'end' ? move.actor : endedIn(received.event), shownIn(received.event)]
    const path = ended ?? shown
    if (path === undefined) return (received.question?.actor ?? this.#actor).send(received.event)
    const actor = actorAt(this.#actor.getSnapshot(), path)
    if (!actor) throw new TypeError(`the chart has no actor ${path}`)
    if (ended === undefined) showSnapshot(actor, received.event)
    else endActor(actor, received.event)
  }

  /** Lets time pass, and the delayed events happen that are due then. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms
    const next = () =>
      this.#delayed.filter(({ dueMs }) => dueMs <= endMs).toSorted((one, other) => one.dueMs - other.dueMs)[0]
    for (let delayed = next(); delayed; delayed = next()) {
      this.#nowMs = delayed.dueMs
      delayed.fire()
    }
  }

  /** Evaluates the guards for a refused move. The drivers with a runtime test the refusal itself. */
  refuse(move: OutsideMove): void {
    const snapshot = this.#actor.getSnapshot()
    const received = receivedEvent(snapshot, move, this.#asks)
    if (snapshot.status === 'active' && 'event' in received) (received.question?.chart ?? snapshot).can(received.event)
  }

  /** The active states. */
  get states(): readonly ActiveState[] {
    return activeStates(this.#actor.getSnapshot())
  }

  /** Compares all that the actor has shown since the last time with the turns of a move. */
  check(step: string, turns: readonly WorkTurn[]): void {
    this.#compare(step, turns, this.#sights.splice(0))
  }

  /** Compares what the actor has shown next with a turn. It may have gone on by itself. */
  checkNext(step: string, turn: WorkTurn): void {
    this.#compare(step, [turn], this.#sights.splice(0, turn.hasMoved ? 1 : 0))
  }

  #compare(step: string, turns: readonly WorkTurn[], found: readonly Sight[]): void {
    const wanted = turns
      .filter(({ hasMoved }) => hasMoved)
      .map(({ status, chart, words }): Sight => ({ status, value: chart.value, words }))
    const isFound = (from: number, to?: number) =>
      isDeepStrictEqual(toJson(found.slice(from, to)), toJson(wanted.slice(from, to)))
    if (isFound(0)) return
    const at = wanted.findIndex((_, i) => !isFound(i, i + 1))
    throw new PathError(step, 'the chart has to be', wanted.at(at), found.at(at), this.#error)
  }

  stop(): void {
    this.#actor.stop()
  }

  /** Lets a delayed event happen that the actor has scheduled. */
  #fire({ event, sendId, isSent, route }: Timer): void {
    const isAt = (actor: AnyActorRef, path: string | undefined) =>
      path === undefined || (actor === this.#actor ? path === '' : actorAt(this.#actor.getSnapshot(), path) === actor)
    const delayed = this.#delayed.find(
      one =>
        one.id === sendId &&
        isDeepStrictEqual(one.event, event) &&
        (one.target !== this.#actor) === isSent &&
        isAt(one.source, route?.from) &&
        isAt(one.target, route?.to)
    )
    if (!delayed) throw new TypeError(`the chart has not scheduled ${event.type}`)
    delayed.fire()
  }

  #begin(options: { readonly input: unknown; readonly snapshot?: AnyMachineSnapshot }): {
    readonly actor: Actor<AnyStateMachine>
    readonly schedule: Schedule
  } {
    let about: Pick<Delayed, 'source' | 'target' | 'event' | 'id'>
    const free = ({ source, id }: Pick<Delayed, 'source' | 'id'>) =>
      this.#delayed
        .filter(one => id !== undefined && one.id === id && one.source === source)
        .forEach(one => (one.isFree = true))
    const drop = (dropped: Delayed) => {
      this.#delayed = this.#delayed.filter(one => one !== dropped)
      free(dropped)
    }
    const actor = createActor(this.#machine, {
      ...options,
      clock: {
        setTimeout: (callback, delayMs) => {
          const delayed: Delayed = {
            ...about,
            isFree: false,
            dueMs: this.#nowMs + (delayMs > 0 ? delayMs : 0),
            fire: () => {
              drop(delayed)
              callback()
            }
          }
          free(about)
          this.#delayed.push(delayed)
          return delayed
        },
        clearTimeout: drop
      },
      inspect: seen => {
        if (seen.type === '@xstate.microstep' && (seen.actorRef as AnyActorRef)._parent === undefined)
          seen._transitions.forEach(transition => this.#log.noteTransition(takenName(transition)))
        // Charts below have questions too. A chart that is stopped is restored with its question.
        if (seen.type === '@xstate.snapshot' && actor.getSnapshot().status === 'active')
          this.#asks = openQuestion(actor.getSnapshot(), this.#asks)?.key
      }
    })
    const schedule: Schedule = (source, target, event, delayMs, id) => {
      about = { source, target, event, id }
      scheduled(source, target, event, delayMs, id)
    }
    const scheduled = replaceSchedule(actor.system, schedule)
    actor.on('*', words => this.#words.push(words))
    const see = () => {
      const { status, value, error } = actor.getSnapshot() as AnyMachineSnapshot
      this.#error = error
      // A chart may send itself events for ever.
      if (this.#sights.push({ status, value, words: this.#words.splice(0) }) === MOST_TURNS) actor.stop()
    }
    // A turn contains the error; without an observer XState would end the process.
    actor.subscribe({ next: see, error: see })
    if (options.snapshot) startRestored(actor)
    else actor.start()
    return { actor, schedule }
  }
}
