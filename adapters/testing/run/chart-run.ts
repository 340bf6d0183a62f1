import { isDeepStrictEqual } from 'node:util'
import { createActor, type Actor, type AnyMachineSnapshot, type AnyStateMachine, type AnyStateNode } from 'xstate'
import { toJson } from '../../../machines/protocol/codec/json.ts'
import { activeStates } from '../../../runtime/xstate/persisted-snapshot.ts'
import { transitionName } from '../../../runtime/xstate/transition-names.ts'
import type { CoverageLog } from '../coverage.ts'
import { PathError } from '../path-error.ts'
import type { Turn } from '../plan/model.ts'
import { describeMove, heardBy, type InnerMove } from '../plan/moves.ts'
import type { Path } from '../plan/plan.ts'
import { endless, withActors } from './stub-actors.ts'

/** The actor of a chart: live, or restored from JSON text before every step. */
export type Liveness = 'live' | 'restored'

/** Told the number of each step of a path before it is walked; 0 is the opening. */
export type AtStep = (step: number) => void

/** Walks one path with an actor of the chart alone. Rejects with PathError if it differs from the chart's pure functions. */
export function walkChart({ start, steps, input }: Pick<Path, 'start' | 'steps' | 'input'>, liveness: Liveness, log: CoverageLog, at: AtStep = () => {}): void {
  const run = new ChartRun(log, input)
  const check = (step: string, turn: Turn) => {
    log.noteStates(run.states)
    run.check(step, turn)
  }
  check(OPENING, start)
  for (const [i, { move, turn, refusal }] of steps.entries()) {
    at(i + 1)
    if (move.type === 'cancel') continue
    if (refusal !== undefined) run.refuse(move)
    if (!turn) continue
    if (liveness === 'restored') run.restore()
    run.take(move)
    check(describeMove(move), turn)
  }
  run.stop()
}

/** The name of a path's beginning in errors. */
export const OPENING = 'the opening'

/** A step of a path: its move, the ids of the chart's states after it, outermost first, and the names of the transitions that it took. */
export interface WalkedStep {
  readonly move: string
  readonly states: readonly string[]
  readonly transitions: readonly string[]
}

/** The steps of a path as its chart takes them, the opening first. */
export function walkedSteps({ steps, input }: Path, machine: AnyStateMachine): WalkedStep[] {
  const { run, transitionsSince } = recordedRun(machine, input)
  const walked = (move: string): WalkedStep => ({ move, states: idsOf(run.states), transitions: transitionsSince() })
  const all = [walked(OPENING)]
  for (const { move, turn } of steps) {
    if (turn && move.type !== 'cancel') run.take(move)
    all.push(walked(describeMove(move)))
  }
  run.stop()
  return all
}

/** The ids of states, outermost first. */
export function idsOf(states: readonly AnyStateNode[]): string[] {
  return states.toSorted((one, other) => one.order - other.order).map(({ id }) => id)
}

/** A run of a chart. `transitionsSince` gives the names of the transitions that it took since the last call. */
export function recordedRun(machine: AnyStateMachine, input: unknown): { readonly run: ChartRun; readonly transitionsSince: () => string[] } {
  const taken: string[] = []
  const run = new ChartRun({ watched: machine, noteTransition: transition => void taken.push(transitionName(transition)) }, input)
  return { run, transitionsSince: () => taken.splice(0) }
}

/** The records of a run. */
type RunLog = Pick<CoverageLog, 'watched' | 'noteTransition'>

class ChartRun {
  readonly #machine: AnyStateMachine
  readonly #log: RunLog
  #actor: Actor<AnyStateMachine>
  #words: unknown[] = []

  constructor(log: RunLog, input: unknown) {
    const { watched } = log
    this.#log = log
    this.#machine = withActors(watched, endless)
    this.#actor = this.#begin({ input })
  }

  restore(): void {
    const text = JSON.stringify(this.#actor.getPersistedSnapshot())
    this.#actor.stop()
    this.#actor = this.#begin({ snapshot: JSON.parse(text), input: undefined })
  }

  take(move: InnerMove): void {
    const heard = heardBy(this.#actor.getSnapshot(), move)
    /* c8 ignore next -- a path has only legal moves */
    if ('violations' in heard) return
    this.#actor.send(heard.event)
  }

  /** Evaluates the guards for a refused move. The drivers with a runtime test the refusal itself. */
  refuse(move: InnerMove): void {
    const snapshot = this.#actor.getSnapshot()
    const heard = heardBy(snapshot, move)
    if (snapshot.status === 'active' && 'event' in heard) snapshot.can(heard.event)
  }

  /** The active states. */
  get states(): readonly AnyStateNode[] {
    return activeStates(this.#actor.getSnapshot())
  }

  check(step: string, { status, chart, words }: Turn): void {
    const snapshot = this.#actor.getSnapshot() as AnyMachineSnapshot
    const found = { status: snapshot.status, value: snapshot.value, words: this.#words }
    const wanted = { status, value: chart.value, words }
    this.#words = []
    if (!isDeepStrictEqual(toJson(found), toJson(wanted))) throw new PathError(step, 'the chart has to be', wanted, found)
  }

  stop(): void {
    this.#actor.stop()
  }

  #begin(options: { readonly input: unknown; readonly snapshot?: AnyMachineSnapshot }): Actor<AnyStateMachine> {
    const actor = createActor(this.#machine, {
      ...options,
      clock: STILL,
      inspect: seen => {
        if (seen.type === '@xstate.microstep') seen._transitions.forEach(taken => this.#log.noteTransition(taken))
      }
    })
    actor.on('*', words => this.#words.push(words))
    // A turn contains the error; without an observer XState would end the process.
    actor.subscribe({ error: () => {} })
    return actor.start()
  }
}

/** Only moves advance the time. */
const STILL = { setTimeout: () => 0, clearTimeout: () => {} }
