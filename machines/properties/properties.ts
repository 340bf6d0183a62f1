import { anyTerm, type Moment, occurs, type Term, updateTerm } from './terms.ts'

/**
 * Where a property stands on a walk. `waits`: it demands nothing now. `watches`: something may violate it. `seen` and
 * `within`: its event has happened, and for a state, it still lasts. `owes`: something has to happen yet. `met`: it has
 * just happened. `violated`: for good.
 */
export type Mode = 'waits' | 'watches' | 'seen' | 'within' | 'owes' | 'met' | 'violated'

/**
 * Which endless walks count. `progress`: whatever waits goes on, so actors end, timers fire and clients answer, but
 * each may do the same every time. `choice`: also, everything that is possible again and again happens in the end.
 */
export type Fairness = 'progress' | 'choice'

/** The words of a property. */
export interface Claim {
  readonly word: 'never' | 'always' | 'atMostOnce' | 'precedes' | 'leadsTo' | 'eventually'
  /** In the order in which they are written. */
  readonly terms: readonly [Term, ...Term[]]
  readonly after?: Term | undefined
}

/**
 * A claim about every walk through a chart, as a small automaton over its moments. Made by the words of `propertiesOf`.
 */
export interface Property {
  readonly claim: Claim
  readonly start: Mode
  readonly next: (mode: Mode, moment: Moment) => Mode
  /**
   * For a claim that something happens in the end: which endless walks count. A claim that something never happens has
   * none.
   */
  readonly fairness?: Fairness
  /** Whether unknown data may change its verdict, since it reads more than states, tags and events. */
  readonly readsContext: boolean
}

/** `never`: the term holds at no moment; with `after`, at none that follows it. */
export function never(term: Term, after?: Term): Property {
  return safety({ word: 'never', terms: [term], after }, (mode, moment) =>
    mode === 'watches' && term.holds(moment) ? 'violated' : mode
  )
}

/** `always`: the term holds whenever the chart rests; with `after`, from then on. */
export function always(term: Term, after?: Term): Property {
  return safety({ word: 'always', terms: [term], after }, (mode, moment) =>
    mode === 'watches' && moment.kind === 'state' && !term.holds(moment) ? 'violated' : mode
  )
}

/**
 * `atMostOnce`: the term happens once, or not at all; with `after`, since the last of those. A state happens when it is
 * entered.
 */
export function atMostOnce(term: Term, after?: Term): Property {
  return safety({ word: 'atMostOnce', terms: [term], after }, (mode, moment) => {
    if (mode === 'waits') return mode
    if (term.isLasting && moment.kind !== 'state') return mode
    if (!term.holds(moment)) return mode === 'within' ? 'seen' : mode
    if (mode === 'watches') return term.isLasting ? 'within' : 'seen'
    return mode === 'within' ? mode : 'violated'
  })
}

/** `precedes`: `first` happens before `then`; with `after`, between each of those and the next `then`. */
export function precedes(first: Term, then: Term, after?: Term): Property {
  return safety({ word: 'precedes', terms: [first, then], after }, (mode, moment) => {
    if (mode !== 'watches') return mode
    if (first.holds(moment)) return 'waits'
    return occurs(then, moment) ? 'violated' : mode
  })
}

/** `leadsTo`: whenever `cause` holds, `effect` holds later, or in the same step. */
export function leadsTo(cause: Term, effect: Term, fairness: Fairness): Property {
  const next = (mode: Mode, moment: Moment): Mode => {
    const now = moment.kind === 'event' && mode === 'met' ? 'watches' : mode
    // The moment of an event still has the state before it.
    if (effect.holds(moment) && !(effect.isLasting && moment.kind === 'event'))
      return moment.kind === 'state' ? 'watches' : 'met'
    // A state that is entered with its effect demands no other.
    if (occurs(cause, moment)) return now === 'met' && cause.isLasting ? 'watches' : 'owes'
    return now
  }
  return {
    claim: { word: 'leadsTo', terms: [cause, effect] },
    start: 'watches',
    next,
    fairness,
    readsContext: cause.readsContext || effect.readsContext
  }
}

/** `eventually`: the term holds on every walk. */
export function eventually(term: Term, fairness: Fairness): Property {
  return {
    claim: { word: 'eventually', terms: [term] },
    start: 'owes',
    next: (mode, moment) => (term.holds(moment) ? 'waits' : mode),
    fairness,
    readsContext: term.readsContext
  }
}

/** The mode after the moments of a step. */
export function modeAfter({ next }: Property, mode: Mode, moments: readonly Moment[]): Mode {
  return moments.reduce<Mode>((now, moment) => (now === 'violated' ? now : next(now, moment)), mode)
}

/** A claim that a finite walk can violate. It starts again at each `after`. */
function safety(claim: Claim, step: Property['next']): Property {
  const { terms, after } = claim
  const next: Property['next'] = (mode, moment) => {
    const now = step(mode, moment)
    return now !== 'violated' && after && occurs(after, moment) ? 'watches' : now
  }
  return {
    claim,
    start: after ? 'waits' : 'watches',
    next,
    readsContext: [...terms, after].some(term => term?.readsContext)
  }
}

/** The rules of A2A for the updates of a task, whatever its agent does. */
export const UPDATE_RULES: Readonly<Record<string, Property>> = {
  'a task begins as SUBMITTED (§4.1.3)': precedes(
    updateTerm('SUBMITTED'),
    anyTerm(['WORKING', 'interrupted', 'terminal', 'artifact'].map(name => updateTerm(name)))
  ),
  'it is SUBMITTED once (§4.1.3)': atMostOnce(updateTerm('SUBMITTED')),
  'it is WORKING before it asks, produces or completes (§4.1.3)': precedes(
    updateTerm('WORKING'),
    anyTerm(['interrupted', 'artifact', 'COMPLETED'].map(name => updateTerm(name)))
  ),
  'nothing is told after a terminal status (§3.1.2, §4.1.3)': never(updateTerm(), updateTerm('terminal'))
}
