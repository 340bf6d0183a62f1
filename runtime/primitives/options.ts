import leven from 'leven'
import { isObject } from '../../machines/protocol/codec/json.ts'

/**
 * Throws TypeError for an unknown member, with the closest known name, else with all of them. A member that is
 * `undefined` counts as missing.
 */
export function rejectUnknown(given: object, names: readonly string[], what: string): void {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || names.includes(name)) continue
    const near = closestName(name, names)
    throw new TypeError(
      `${what} has no ${shortened(name)}. ${near === undefined ? `There are ${names.join(', ')}.` : `Is ${near} meant?`}`
    )
  }
}

/** Maximum characters of a name in an error. */
const SHOWN = 80

function shortened(name: string): string {
  return name.length > SHOWN ? `${name.slice(0, SHOWN)}…` : name
}

/**
 * The closest known name of a misspelled one, if any: equal except for case and separators, except for one letter in
 * six, except for two letters that have changed places, or except for an ending.
 */
export function closestName(word: string, names: readonly string[]): string | undefined {
  const letters = lettersOf(word)
  return names.find(name => isNear(letters, lettersOf(name)))
}

function isNear(word: string, name: string): boolean {
  if (word[0] !== name[0]) return false
  const [short = '', long = ''] = [word, name].toSorted((one, other) => one.length - other.length)
  if (long.startsWith(short) && short.length >= 4 && long.length - short.length <= 2) return true
  if (isSwapped(word, name)) return true
  const most = Math.max(1, Math.floor(name.length / 6))
  return leven(word, name, { maxDistance: most + 1 }) <= most
}

/** Whether two neighbouring letters have changed places, the commonest mistake in typing. */
export function isSwapped(word: string, name: string): boolean {
  const at = Array.from(word).findIndex((letter, i) => letter !== name[i])
  return at >= 0 && `${word.slice(0, at)}${word[at + 1] ?? ''}${word[at]}${word.slice(at + 2)}` === name
}

function lettersOf(name: string): string {
  return name
    .replace(/^TASK_STATE_/, '')
    .replace(/[^\p{L}\d]/gu, '')
    .toLowerCase()
}

/** Kind of an option: a test of its value, and the words for an error. */
export type Kind = readonly [isRight: (value: unknown) => boolean, wanted: string]

/** Member names of a type; of a union, those of all its types. */
type NameOf<Options> = Options extends unknown ? keyof Options : never

/**
 * The kinds of all options of a type; `true` for an option that is checked elsewhere. The compiler refuses a table with
 * a missing or an extra option.
 */
export type OptionKinds<Options> = Readonly<Record<NameOf<Options>, Kind | true>>

/**
 * Validates the options of a function. Throws TypeError for a value that is no object, for an unknown option and for a
 * value of another kind, each with what to write instead. An option that is `undefined` counts as missing.
 */
export function checkOptions(
  given: unknown,
  kinds: Readonly<Record<string, Kind | true>>,
  taker: string,
  example: string
): void {
  if (!isObject(given)) throw new TypeError(`${taker} takes options as an object, not ${kindOf(given)}: ${example}.`)
  // One pass: `artifact` calls this for each chunk.
  for (const name of Object.keys(given)) {
    const value = given[name]
    if (value === undefined) continue
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined
    if (kind === undefined) return rejectUnknown({ [name]: value }, Object.keys(kinds), taker)
    if (kind !== true && !kind[0](value))
      throw new TypeError(`${name} has to be ${kind[1]}, not ${typeof value === 'number' ? value : kindOf(value)}.`)
  }
}

/**
 * Validates an argument of a function. `call` is an example. Throws TypeError that says what the function takes and
 * what it got.
 */
export function checkArgument(given: unknown, [isRight, wanted]: Kind, call: string): void {
  if (!isRight(given))
    throw new TypeError(`${call.slice(0, call.indexOf('('))} takes ${wanted}, not ${kindOf(given)}: ${call}.`)
}

/** The kind of an argument that is an object with these members. */
export function withMembers(names: readonly string[], wanted: string): Kind {
  return [value => isObject(value) && names.every(name => value[name] !== undefined), wanted]
}

/** The kind of an argument that is a list. */
export function listOf(wanted: string): Kind {
  return [Array.isArray, `a list of ${wanted}`]
}

/** The kind of a value, in words for an error. */
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

/** The kind of an option that is an object, whose members are checked elsewhere. */
export function objectSuchAs(example: string): Kind {
  return [isObject, `an object such as ${example}`]
}

/** The kind of an option that is a list of texts. */
export function textsSuchAs(example: string): Kind {
  return [
    value => Array.isArray(value) && value.every(each => typeof each === 'string'),
    `a list of texts such as ${example}`
  ]
}

/** The kind of an option that is a text. */
export function textSuchAs(example: string): Kind {
  return [value => typeof value === 'string', `a text such as ${example}`]
}

export const TRUE_OR_FALSE: Kind = [value => typeof value === 'boolean', 'true or false']

export const A_CLOCK: Kind = withMethods(
  ['now', 'setTimeout', 'clearTimeout'],
  'a clock: { now, setTimeout, clearTimeout }'
)

export const A_LOGGER: Kind = withMethods(['warn', 'error'], 'a logger: { warn, error }')

/** The kind of the option `telemetry`. */
export const A_TELEMETRY: Kind = withMethods(['begin'], 'openTelemetry() of taskchart/opentelemetry')
