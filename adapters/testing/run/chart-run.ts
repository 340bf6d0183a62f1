import { isDeepStrictEqual } from 'node:util'
import { createActor, type Actor, type AnyMachineSnapshot, type AnyStateMachine } from 'xstate'
import { toJson } from '../../../machines/protocol/codec/json.ts'
import { activeStates } from '../../../runtime/xstate/persisted-snapshot.ts'
import type { CoverageLog } from '../coverage.ts'
import { PathError } from '../path-error.ts'
import type { Turn } from '../plan/model.ts'
import { describeMove, heardBy, type InnerMove } from '../plan/moves.ts'
import type { Path } from '../plan/plan.ts'
import { endless, withActors } from './stub-actors.ts'

/** The actor of a chart: live, or restored from JSON text before every step. */
export type Liveness = 'live' | 'restored'

/** Walks one path with an actor of the chart alone. Rejects with PathError if it differs from the chart's pure functions. */
export function walkChart({ start, steps, input }: Path, liveness: Liveness, log: CoverageLog): void {
  const run = new ChartRun(log, input)
  run.check('the opening', start)
  for (const { move, turn, refusal } of steps) {
    if (move.type === 'cancel') continue
    if (refusal !== undefined) run.refuse(move)
    if (!turn) continue
    if (liveness === 'restored') run.restore()
    run.take(move)
    run.check(describeMove(move), turn)
  }
  run.stop()
}

class ChartRun {
  readonly #machine: AnyStateMachine
  readonly #log: CoverageLog
  #actor: Actor<AnyStateMachine>
  #words: unknown[] = []

  constructor(log: CoverageLog, input: unknown) {
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

  check(step: string, { status, chart, words }: Turn): void {
    const snapshot = this.#actor.getSnapshot() as AnyMachineSnapshot
    this.#log.noteStates(activeStates(snapshot))
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
