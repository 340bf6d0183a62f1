import type { AnyStateMachine } from 'xstate'
import { endedActor, isErrorType } from '../../machines/xstate-names.ts'
import { type WrittenChart, writtenChart, type WrittenTransition } from '../../runtime/xstate/written-chart.ts'

/** The coverage of a chart by its paths. */
export interface Coverage {
  readonly states: CoverageCount
  readonly transitions: CoverageCount
  /** Each tag counts once, in any state that has it. */
  readonly tags: CoverageCount
  /** Both outcomes of each named guard. */
  readonly guards: CoverageCount
}

/** The covered and uncovered parts of a chart, by ids and names. */
export interface ReachedParts {
  readonly reached: { readonly states: readonly string[]; readonly transitions: readonly string[] }
  readonly missing: readonly { readonly name: string; readonly why: string }[]
}

/** The number of parts and of covered ones, and the uncovered ones with reasons, as far as known. */
export interface CoverageCount {
  readonly total: number
  readonly reached: number
  readonly missing: readonly string[]
}

/** Records what the paths of a chart cover. */
export class CoverageLog {
  readonly #states = new Set<string>()
  readonly #transitions = new Set<string>()
  readonly #guards = new Map<string, Set<boolean>>()
  readonly #machine: AnyStateMachine
  readonly #chart: WrittenChart
  readonly #byName: ReadonlyMap<string, WrittenTransition>

  constructor(machine: AnyStateMachine) {
    this.#machine = machine
    this.#chart = writtenChart(machine)
    this.#byName = new Map(this.#chart.transitions.map(one => [one.name, one]))
    for (const [name] of namedGuards(machine)) this.#guards.set(name, new Set())
  }

  /** The chart with guards that record their outcomes. */
  get watched(): AnyStateMachine {
    const guards = namedGuards(this.#machine).map(([name, guard]) => {
      const noted = (...given: unknown[]) => {
        const outcome = Boolean(guard(...given))
        this.#guards.get(name)?.add(outcome)
        return outcome
      }
      return [name, noted]
    })
    return this.#machine.provide({ guards: Object.fromEntries(guards) })
  }

  noteStates(states: readonly { readonly id: string }[]): void {
    for (const { id } of states) this.#states.add(id)
  }

  /** Also records the source and target states: transient ones never appear in a snapshot. */
  noteTransition(name: string): void {
    this.#transitions.add(name)
    const { source, targets } = this.#byName.get(name) as WrittenTransition
    this.noteStates([source, ...targets])
  }

  get reached(): ReachedParts {
    const states = this.#chart.states
      .filter(({ id }) => !this.#states.has(id))
      .map(({ id }) => ({ name: id, why: 'it is never entered' }))
    const transitions = this.#named.filter(({ name }) => !this.#transitions.has(name))
    return {
      reached: { states: [...this.#states].toSorted(), transitions: [...this.#transitions].toSorted() },
      missing: [...states, ...transitions]
    }
  }

  get coverage(): Coverage {
    const { states } = this.#chart
    const isMissing = (state: string) => !this.#states.has(state)
    const transitions = this.#named
    const tags = [...new Set(states.flatMap(state => state.tags))]
    const hasNoState = (tag: string) => states.every(state => !state.tags.includes(tag) || isMissing(state.id))
    const outcomes = [...this.#guards].flatMap(([name, seen]) =>
      [true, false].map(outcome => ({ name: `${name} is ${outcome}`, isSeen: seen.has(outcome) }))
    )
    return {
      states: shareOf(
        states.map(({ id }) => id),
        isMissing,
        state => state
      ),
      transitions: shareOf(
        transitions,
        ({ name }) => !this.#transitions.has(name),
        ({ name, why }) => `${name}: ${why}`
      ),
      tags: shareOf(tags, hasNoState, tag => `${tag}: no state with this tag is entered`),
      guards: shareOf(
        outcomes,
        ({ isSeen }) => !isSeen,
        ({ name }) => `${name}: no case makes it so`
      )
    }
  }

  /** The transitions by name, with the reason why each may be uncovered. */
  get #named(): { name: string; why: string }[] {
    return this.#chart.transitions.map(one => ({
      name: one.name,
      why: this.#states.has(one.source.id) ? reasonOf(one) : 'its state is never entered'
    }))
  }
}

type Guard = (...given: unknown[]) => unknown

function shareOf<T>(all: readonly T[], isMissing: (one: T) => boolean, name: (one: T) => string): CoverageCount {
  const missing = all.filter(isMissing)
  return { total: all.length, reached: all.length - missing.length, missing: missing.map(name) }
}

/** The author's own guards. Guards that XState combines (`and`, `not`) have a `check`; their parts are recorded. */
function namedGuards({ implementations }: AnyStateMachine): [string, Guard][] {
  const all = Object.entries(implementations.guards as Record<string, Guard>)
  return all.filter(([, guard]) => !('check' in guard))
}

function reasonOf({ event, delay }: WrittenTransition): string {
  if (event === 'message.received') return 'no message in the cases is accepted here'
  if (delay !== undefined) return 'another timer, or an end, always occurs first'
  if (endedActor(event) !== undefined)
    return isErrorType(event) ? 'the results in the cases include no error' : 'no result in the cases leads there'
  return event === '' ? 'its guard never holds first' : `no event in the cases is a ${event} that it accepts`
}
