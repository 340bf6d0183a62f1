import { createHash } from 'node:crypto'
import type { AnyActorRef, AnyActorScope, AnyStateMachine, AnyTransitionDefinition } from 'xstate'
import { PrivateProperty } from '../primitives/collections.ts'
import { statesOf, transitionsOf, transitionName } from './state-nodes.ts'

/** The count of a transition of a chart after another one. */
export interface TransitionCount {
  /** The version of the chart: a hash of its states and transitions. */
  readonly chart: string
  /** The transition before it: its name, an empty text for the start, or `?` if it is not known. */
  readonly previous: string
  /** Its name, as in `transitionName`. */
  readonly taken: string
  readonly count: number
  /**
   * How many of them left a state that this process has seen entered, and the sum of the times in it, in whole
   * milliseconds.
   */
  readonly timed: number
  readonly ms: number
}

/** Stands for the transition before the first one of an actor. */
export const FROM_START = ''

/** Stands for the transition before the first one of a restored actor, which is not known. */
export const UNKNOWN = '?'

/** The version of a chart: a hash over its states and transitions. Charts of the same structure have the same. */
export function chartVersion({ root }: AnyStateMachine): string {
  const states = statesOf(root)
  const names = [states.map(({ id, type }) => `${id} ${type}`), states.flatMap(transitionsOf).map(transitionName)]
  return createHash('sha256').update(JSON.stringify(names)).digest('base64url').slice(0, 22)
}

/** The count of one transition directly after another one. */
class Pair {
  count = 0
  timed = 0
  ms = 0
}

/** A transition that is counted. */
export class Counted {
  readonly counter: TransitionCounter
  readonly chart: string
  readonly name: string
  /** Whether it leaves its state, perhaps to enter it again. */
  readonly leaves: boolean
  /** The pairs by the transition before, or its name. */
  readonly after = new Map<Counted | string, Pair>()

  constructor(counter: TransitionCounter, chart: string, transition: AnyTransitionDefinition) {
    this.counter = counter
    this.chart = chart
    this.name = transitionName(transition)
    this.leaves = transition.target !== undefined
  }

  /** Counts that an actor takes it now: about 100 ns (Node 24). Allocates nothing, but for a new pair. */
  take(actor: AnyActorRef): void {
    this.counter.add(actor, this)
  }
}

/** The last transition of an actor, and when it entered its state; `undefined` if it was restored there. */
interface Last {
  transition: Counted | string
  atMs: number | undefined
}

const counted = new PrivateProperty<AnyTransitionDefinition, Counted>()

/** The last transitions of actors. */
const lasts = new PrivateProperty<AnyActorRef, Last>()

/** The counts of a transition; `undefined` if its chart is not watched. */
export function countedOf(transition: AnyTransitionDefinition): Counted | undefined {
  return counted.get(transition)
}

/** Has a machine that is not compiled count its transitions: XState reports them to inspectors. */
export function countMicrosteps(machine: AnyStateMachine): AnyStateMachine {
  const counting = <Snapshot>({ self, system }: AnyActorScope, step: () => Snapshot): Snapshot => {
    const inspection = system.inspect(seen => {
      if (seen.type !== '@xstate.microstep' || seen.actorRef !== self) return
      for (const transition of seen._transitions) countedOf(transition)?.take(self)
    })
    try {
      return step()
    } finally {
      inspection.unsubscribe()
    }
  }
  const begin = machine.getInitialSnapshot.bind(machine)
  const take = machine.transition.bind(machine)
  const replaced: Pick<AnyStateMachine, 'getInitialSnapshot' | 'transition'> = {
    getInitialSnapshot: (scope, input) => counting(scope, () => begin(scope, input)),
    transition: (snapshot, event, scope) => counting(scope, () => take(snapshot, event, scope))
  }
  return Object.assign(machine, replaced)
}

/** Counts the transitions of charts in memory. Allocates once for each actor, and once for each pair of transitions. */
export class TransitionCounter {
  readonly #now: () => number
  readonly #counting: () => void
  readonly #transitions: Counted[] = []
  #isCounting = false

  /** `counting` is called for the first transition, and for the first after each `take`. */
  constructor(now: () => number, counting: () => void) {
    this.#now = now
    this.#counting = counting
  }

  /** Counts the transitions of a chart's actors. The chart must not be shared with another runtime. */
  watch(machine: AnyStateMachine): void {
    const chart = chartVersion(machine)
    for (const transition of statesOf(machine.root).flatMap(transitionsOf)) {
      const one = new Counted(this, chart, transition)
      counted.set(transition, one)
      this.#transitions.push(one)
    }
  }

  /** Notes that an actor of a watched chart starts now. */
  started(actor: AnyActorRef): void {
    lasts.set(actor, { transition: FROM_START, atMs: this.#now() })
  }

  /** See {@link Counted.take}. */
  add(actor: AnyActorRef, transition: Counted): void {
    let before = lasts.get(actor)
    if (!before) lasts.set(actor, (before = { transition: UNKNOWN, atMs: undefined }))
    let pair = transition.after.get(before.transition)
    if (!pair) transition.after.set(before.transition, (pair = new Pair()))
    pair.count += 1
    before.transition = transition
    if (transition.leaves) {
      const atMs = this.#now()
      if (before.atMs !== undefined) {
        pair.timed += 1
        pair.ms += Math.max(0, Math.round(atMs - before.atMs))
      }
      before.atMs = atMs
    }
    if (this.#isCounting) return
    this.#isCounting = true
    this.#counting()
  }

  /** Takes the counts since the last call. */
  take(): TransitionCount[] {
    this.#isCounting = false
    const counts: TransitionCount[] = []
    for (const { chart, name, after } of this.#transitions) {
      for (const [previous, pair] of after) {
        if (pair.count === 0) continue
        const { count, timed, ms } = pair
        counts.push({
          chart,
          previous: typeof previous === 'string' ? previous : previous.name,
          taken: name,
          count,
          timed,
          ms
        })
        Object.assign(pair, new Pair())
      }
    }
    return counts
  }
}
