import type { AnyStateMachine } from 'xstate'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { statesOf, transitionsOf } from '../../../runtime/xstate/transition-names.ts'

/** Numbers on both sides of a border: 17 and 18 for `age >= 18`. */
export interface Border {
  /** The name that is compared; none if that is not known. */
  readonly name?: string
  readonly sides: readonly number[]
}

/** The borders of numbers that a chart's guards have, read from their text and from their parameters. */
export function guardBorders({ root, implementations }: AnyStateMachine): Border[] {
  const guards = statesOf(root).flatMap(node => transitionsOf(node).map(({ guard }): unknown => guard))
  return [...guards, ...Object.values(implementations.guards as object)].flatMap(bordersOf)
}

const NUMBER = String.raw`-?\d[\d_]*(?:\.\d+)?\b`
// The end of an arrow is no comparison.
const COMPARES = String.raw`(?<!=)(?:[<>]=?|[=!]==?)`
const AFTER = new RegExp(
  String.raw`(?<name>[\p{L}_$][\p{L}\d_$]*)?[\s)\]]*(?<sign>${COMPARES})\s*(?<number>${NUMBER})`,
  'gu'
)
const BEFORE = new RegExp(
  String.raw`(?<number>${NUMBER})\s*(?<sign>${COMPARES})\s*(?:[\p{L}\d_$]+\??\.)*(?<name>[\p{L}_$][\p{L}\d_$]*)?`,
  'gu'
)

function bordersOf(guard: unknown): Border[] {
  if (typeof guard === 'function') {
    if ('guards' in guard) return (guard.guards as readonly unknown[]).flatMap(bordersOf)
    const text = String(guard)
    return [...bordersBy(text, AFTER, ['>=', '<']), ...bordersBy(text, BEFORE, ['<=', '>'])]
  }
  const params = isObject(guard) ? guard['params'] : undefined
  const numbers = (isObject(params) ? Object.values(params) : [params]).filter(value => typeof value === 'number')
  return numbers.map(number => ({ sides: [number - 1, number, number + 1] }))
}

/** The borders that a pattern finds. `first`: the signs for which the number is the first of the upper side. */
function bordersBy(text: string, pattern: RegExp, first: readonly string[]): Border[] {
  return Array.from(text.matchAll(pattern), ({ groups = {} }) => {
    const { name, sign = '', number = '' } = groups
    const at = Number(number.replaceAll('_', ''))
    return { ...(name !== undefined && { name }), sides: first.includes(sign) ? [at - 1, at] : [at, at + 1] }
  })
}
