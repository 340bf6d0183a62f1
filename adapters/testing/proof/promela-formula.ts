import type { Property } from '../../../machines/properties/properties.ts'
import { occurs, type Moment, type Term } from '../../../machines/properties/terms.ts'

/** A property in linear temporal logic: its formula for SPIN, and what the names in it mean. */
export interface Formula {
  readonly text: string
  /** Whether each name holds at a moment. */
  readonly names: Readonly<Record<string, (moment: Moment) => boolean>>
}

/**
 * Writes a property as a formula whose names begin with `id`. It stands on the sentence that the property's word means, and not on its automaton.
 * No name holds between two moments, so that a moment that repeats counts twice without `X`.
 */
export function formulaOf(
  {
    claim: {
      word,
      terms: [first, second = first],
      after
    },
    fairness
  }: Property,
  id: string
): Formula {
  const [a, b, c] = [`${id}_a`, `${id}_b`, `${id}_after`]
  const later = (violation: string) => (after ? `!<> (${c} && <> (!${c} && <> (${violation})))` : `!<> (${violation})`)
  const named = (one: Term['holds'], other?: Term['holds']) => ({
    [a]: one,
    ...(other && { [b]: other }),
    ...(after && { [c]: (moment: Moment) => occurs(after, moment) })
  })
  const premise = fairness === 'choice' ? '(<> settled)' : '([] <> round)'
  switch (word) {
    case 'never':
      return { names: named(first.holds), text: later(a) }
    case 'always':
      return { names: named(first.holds), text: later(`rests && !${a}`) }
    case 'atMostOnce': {
      const left = first.isLasting ? `(rests && !${a})` : 'between'
      const once = `${a} && <> (${left} && <> ${a})`
      const since = `${a} && !${c} && (!${c} U (${left} && !${c} && (!${c} U ${a})))`
      return { names: named(moment => occurs(first, moment)), text: later(after ? since : once) }
    }
    case 'precedes': {
      const unheralded = `!${a} U (${b} && !${a})`
      return {
        names: named(first.holds, moment => occurs(second, moment)),
        text: after ? `!<> (${c} && (${c} U (between && (${unheralded}))))` : `!(${unheralded})`
      }
    }
    case 'leadsTo': {
      const owes = `${a} && [] !${b}`
      const names = named(
        moment => occurs(first, moment),
        moment => second.holds(moment) && !(second.isLasting && moment.kind === 'event')
      )
      // A state that is entered with its effect demands no other, so nothing of its step may have it.
      return {
        names,
        text: `${premise} -> (!<> (${first.isLasting ? `still && ((!${b} && !rests) U (${owes}))` : owes}))`
      }
    }
    case 'eventually':
    default:
      return { names: named(first.holds), text: `${premise} -> (<> ${a})` }
  }
}
