import leven from 'leven'
import { isObject } from '../../machines/protocol/codec/json.ts'

/**
 * Throws TypeError for a member that is none of these names, with the name that is probably meant, or else all of them. A
 * member that is `undefined` counts as left out.
 */
export function rejectUnknown(given: object, names: readonly string[], what: string): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || names.includes(name)) continue
    const near = closestName(name, names)
    throw new TypeError(`${what} has no ${shortened(name)}. ${near === undefined ? `There are ${names.join(', ')}.` : `Is ${near} meant?`}`)
  }
}

/** So much of a name is shown in an error. */
const SHOWN = 80

function shortened(name: string): string {
  return name.length > SHOWN ? `${name.slice(0, SHOWN)}…` : name
}

/**
 * The name that a misspelled one is likely to mean, if any: that with the same letters but for case and separators, a letter in
 * six at the most apart, or an ending.
 */
export function closestName(word: string, names: readonly string[]): string | undefined {
  const letters = lettersOf(word)
  return names.find(name => isNear(letters, lettersOf(name)))
}

function isNear(word: string, name: string): boolean {
  if (word[0] !== name[0]) return false
  const [short = '', long = ''] = [word, name].toSorted((one, other) => one.length - other.length)
  if (long.startsWith(short) && short.length >= 4 && long.length - short.length <= 2) return true
  const most = Math.max(1, Math.floor(name.length / 6))
  return leven(word, name, { maxDistance: most + 1 }) <= most
}

function lettersOf(name: string): string {
  return name.replace(/^TASK_STATE_/, '').replace(/[^\p{L}\d]/gu, '').toLowerCase()
}

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
    if (kind === undefined) return rejectUnknown({ [name]: value }, Object.keys(kinds), taker)
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
