import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { statesOf, transitionName, transitionsOf } from '../../runtime/xstate/written-chart.ts'

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

  constructor(machine: AnyStateMachine) {
    this.#machine = machine
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

  noteStates(nodes: readonly AnyStateNode[]): void {
    for (const { id } of nodes) this.#states.add(id)
  }

  /** Also records the source and target states: transient ones never appear in a snapshot. */
  noteTransition(transition: AnyTransitionDefinition): void {
    this.noteStates([transition.source, ...(transition.target ?? [])])
    this.#transitions.add(transitionName(transition))
  }

  get reached(): ReachedParts {
    const states = this.#nodes
      .filter(({ id }) => !this.#states.has(id))
      .map(({ id }) => ({ name: id, why: 'it is never entered' }))
    const transitions = this.#named.filter(({ name }) => !this.#transitions.has(name))
    return {
      reached: { states: [...this.#states].toSorted(), transitions: [...this.#transitions].toSorted() },
      missing: [...states, ...transitions]
    }
  }

  get coverage(): Coverage {
    const nodes = this.#nodes
    const isMissing = (state: string) => !this.#states.has(state)
    const transitions = this.#named
    const tags = [...new Set(nodes.flatMap(node => node.tags))]
    const hasNoState = (tag: string) => nodes.every(node => !node.tags.includes(tag) || isMissing(node.id))
    const outcomes = [...this.#guards].flatMap(([name, seen]) =>
      [true, false].map(outcome => ({ name: `${name} is ${outcome}`, isSeen: seen.has(outcome) }))
    )
    return {
      states: shareOf(
        nodes.map(({ id }) => id),
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

  get #nodes(): AnyStateNode[] {
    return statesOf(this.#machine.root)
  }

  /** The transitions by name, with the reason why each may be uncovered. */
  get #named(): { name: string; why: string }[] {
    return this.#nodes.flatMap(node =>
      transitionsOf(node).map(one => ({
        name: transitionName(one),
        why: this.#states.has(node.id) ? reasonOf(one) : 'its state is never entered'
      }))
    )
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

function reasonOf({ eventType }: AnyTransitionDefinition): string {
  if (eventType === 'message.received') return 'no message in the cases is accepted here'
  if (eventType.startsWith('xstate.done.actor.')) return 'no result in the cases leads there'
  if (eventType.startsWith('xstate.error.actor.')) return 'the results in the cases include no error'
  if (eventType.startsWith('xstate.after.')) return 'another timer, or an end, always occurs first'
  return eventType === '' ? 'its guard never holds first' : `no event in the cases is a ${eventType} that it accepts`
}
