import { isObject } from '../machines/protocol/json.ts'
import { checkNames } from './known-names.ts'

/** What an option may be: the test of its value, and what to write, as an error says it. */
export type Kind = readonly [isRight: (value: unknown) => boolean, wanted: string]

/** The names of a type's members; of a union those of all its types. */
type NameOf<Options> = Options extends unknown ? keyof Options : never

/**
 * Every option of a type with its kind, or `true` for one that is checked elsewhere. The compiler refuses a table that lacks
 * an option or has one too many.
 */
export type OptionKinds<Options> = Readonly<Record<NameOf<Options>, Kind | true>>

/**
 * Checks the options that a function is given. Throws TypeError for what is not an object, with an example of what to write,
 * for an option that there is not, with the name that is probably meant, and for a value of another kind. An option that is
 * `undefined` counts as left out.
 */
export function checkOptions(given: unknown, kinds: Readonly<Record<string, Kind | true>>, taker: string, example: string): void {
  if (!isObject(given)) throw new TypeError(`${taker} takes options as an object, not ${kindOf(given)}: ${example}.`)
  // One pass: `artifact` calls this for each chunk.
  for (const name of Object.keys(given)) {
    const value = given[name]
    if (value === undefined) continue
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined
    if (kind === undefined) return checkNames({ [name]: value }, Object.keys(kinds), taker)
    if (kind !== true && !kind[0](value)) throw new TypeError(`${name} has to be ${kind[1]}, not ${kindOf(value)}.`)
  }
}

/** What kind of value was given, as errors say it. */
export function kindOf(given: unknown): string {
  if (given === null || given === undefined) return String(given)
  if (Array.isArray(given)) return 'a list'
  return typeof given === 'object' ? 'an object' : `a ${typeof given}`
}

/** The kind of an option that is an object with these methods. */
export function withMethods(names: readonly string[], wanted: string): Kind {
  return [value => isObject(value) && names.every(name => typeof value[name] === 'function'), wanted]
}

/** The kind of an option that is a function. */
export function functionFor(wanted: string): Kind {
  return [value => typeof value === 'function', wanted]
}

/** The kind of an option that is an object; its members are checked where it is used. */
export function objectSuchAs(example: string): Kind {
  return [isObject, `an object such as ${example}`]
}

/** The kind of an option that is a list of texts. */
export function textsSuchAs(example: string): Kind {
  return [value => Array.isArray(value) && value.every(each => typeof each === 'string'), `a list of texts such as ${example}`]
}

/** The kind of an option that is a text. */
export function textSuchAs(example: string): Kind {
  return [value => typeof value === 'string', `a text such as ${example}`]
}

export const TRUE_OR_FALSE: Kind = [value => typeof value === 'boolean', 'true or false']

export const A_CLOCK: Kind = withMethods(['now', 'setTimeout', 'clearTimeout'], 'a clock: { now, setTimeout, clearTimeout }')

export const A_LOGGER: Kind = withMethods(['warn', 'error'], 'a logger: { warn, error }')
