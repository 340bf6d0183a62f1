import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { ExpectedStream, Search, Sought } from './corpus.ts'

/** What is missing, each as a text that says where; nothing if all is as expected. */
type Faults = readonly string[]

interface Operator {
  /** Whether a member of this name is the operator, and not one of the value: its argument has the operator's type. */
  readonly takes: (argument: unknown) => boolean
  readonly check: (argument: never, found: unknown, at: string) => Faults
}

const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number'

/** An operator that says whether a value holds. */
function operator<Argument>(
  takes: (argument: unknown) => argument is Argument,
  holds: (found: unknown, argument: Argument) => boolean,
  says: string
): Operator {
  const check = (argument: Argument, found: unknown, at: string) =>
    holds(found, argument) ? [] : [`${at} has to be ${says} ${JSON.stringify(argument)}, and is ${brief(found)}`]
  return { takes, check }
}

const textOperator = (holds: (found: string, argument: string) => boolean, says: string) =>
  operator(isText, (found, argument) => isText(found) && holds(found, argument), says)
const numberOperator = (holds: (found: number, argument: number) => boolean, says: string) =>
  operator(isNumber, (found, argument) => isNumber(found) && holds(found, argument), says)
const countOperator = (holds: (count: number, argument: number) => boolean, says: string) =>
  operator(isNumber, (found, argument) => Array.isArray(found) && holds(found.length, argument), says)

const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'] as const
const isType = (value: unknown): value is (typeof TYPES)[number] => TYPES.some(type => type === value)
const isTrue = (value: unknown): value is true => value === true

function isOfType(found: unknown, type: (typeof TYPES)[number]): boolean {
  if (type === 'null') return found === null
  if (type === 'array') return Array.isArray(found)
  if (type === 'object') return isObject(found)
  return type === 'integer' ? Number.isInteger(found) : typeof found === type
}

/** Any of several expectations: the faults are those of each. */
const anyOf: Operator = {
  takes: Array.isArray,
  check: (options: readonly unknown[], found, at) => {
    const faults = options.map(option => faultsOf(option, found, at))
    return faults.some(({ length }) => length === 0) ? [] : [faults.flat().join(', or ')]
  }
}

const OPERATORS: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['type', operator(isType, isOfType, 'of the type')],
  ['exists', operator(isTrue, found => found !== undefined, 'there:')],
  ['absent', operator(isTrue, found => found === undefined, 'absent:')],
  ['contains', textOperator((found, part) => found.includes(part), 'a text with')],
  ['matches', textOperator((found, pattern) => new RegExp(pattern, 's').test(found), 'a text like')],
  ['starts_with', textOperator((found, part) => found.startsWith(part), 'a text that begins with')],
  ['ends_with', textOperator((found, part) => found.endsWith(part), 'a text that ends with')],
  ['gte', numberOperator((found, least) => found >= least, 'at least')],
  ['lte', numberOperator((found, most) => found <= most, 'at most')],
  ['gt', numberOperator((found, less) => found > less, 'more than')],
  ['lt', numberOperator((found, more) => found < more, 'less than')],
  ['count', countOperator((count, wanted) => count === wanted, 'a list of the length')],
  ['count_gte', countOperator((count, least) => count >= least, 'a list of at least')],
  ['count_lte', countOperator((count, most) => count <= most, 'a list of at most')],
  ['one_of', anyOf],
  ['any_of', anyOf],
  [
    'all_of',
    {
      takes: Array.isArray,
      check: (all: readonly unknown[], found, at) => all.flatMap(each => faultsOf(each, found, at))
    }
  ],
  [
    'not',
    {
      takes: isObject,
      check: (unwanted: unknown, found, at) =>
        faultsOf(unwanted, found, at).length > 0 ? [] : [`${at} must not be ${brief(found)}`]
    }
  ],
  ['items', { takes: argument => isObject(argument) || Array.isArray(argument), check: itemFaults }]
])

/** `items`: an object that every element matches, or a list whose entries are each matched by some element. */
function itemFaults(wanted: unknown, found: unknown, at: string): Faults {
  if (!Array.isArray(found)) return [`${at} has to be a list, and is ${brief(found)}`]
  if (!Array.isArray(wanted)) return found.flatMap((item, i) => faultsOf(wanted, item, `${at}[${i}]`))
  return wanted.flatMap(entry =>
    found.some(item => faultsOf(entry, item, at).length === 0)
      ? []
      : [`${at} has to have an entry like ${brief(entry)}, and is ${brief(found)}`]
  )
}

/** Compares a value with what a test expects of it: members that the test does not name are not compared. */
export function faultsOf(expected: unknown, found: unknown, at: string): Faults {
  if (!isObject(expected))
    return isDeepStrictEqual(found, expected) ? [] : [`${at} has to be ${brief(expected)}, and is ${brief(found)}`]
  return Object.entries(expected).flatMap(([name, argument]) => {
    const known = OPERATORS.get(name)
    if (known?.takes(argument)) return known.check(argument as never, found, at)
    return faultsOf(argument, isObject(found) ? found[name] : undefined, `${at}.${name}`)
  })
}

/** What a search does not find, or finds and should not. */
export function searchFaults({ source, any, all, none }: Search): Faults {
  const matches = ({ path, match }: Sought) =>
    valuesAt(source, path).map(value => faultsOf(match, value, path).length === 0)
  return [
    ...(any && !matches(any).includes(true) ? [`nothing at ${any.path} is like ${brief(any.match)}`] : []),
    ...(all && matches(all).includes(false) ? [`not all at ${all.path} is like ${brief(all.match)}`] : []),
    ...(none && matches(none).includes(true) ? [`something at ${none.path} is like ${brief(none.match)}`] : [])
  ]
}

/** How far a task is: a stream never goes back. */
const RANKS: readonly RegExp[] = [/SUBMITTED/, /WORKING|REQUIRED/, /COMPLETED|FAILED|CANCELED|REJECTED/]

/** Compares the events of a stream with what a test expects of them. */
export function streamFaults(expected: ExpectedStream, events: readonly unknown[]): Faults {
  const { min_count: least = 1, ordering, each_event: each, final_event: last, events: some = [] } = expected
  const flat = events.map(unwrapped)
  const ranks = flat.flatMap(({ status }) => {
    const rank = RANKS.findIndex(states => isObject(status) && states.test(String(status.state)))
    return rank < 0 ? [] : [rank]
  })
  return [
    ...(events.length < least ? [`the stream has ${events.length} events, and needs ${least}`] : []),
    ...(ordering && ranks.some((rank, i) => rank < (ranks[i - 1] ?? 0)) ? ['the state of the task goes back'] : []),
    ...(each ? flat.flatMap((event, i) => faultsOf(each, event, `event ${i}`)) : []),
    ...(last ? faultsOf(last, flat.at(-1), 'the last event') : []),
    ...some.flatMap(entry => {
      const { description, match, index, ...wanted } = camelCased(entry) as Record<string, unknown>
      if (match === 'exact') throw new Error('Events of an exact order are not compared: no test has any.')
      if (typeof index === 'number') return faultsOf(wanted, flat[index], `event ${index}`)
      return flat.some(event => faultsOf(wanted, event, 'event').length === 0)
        ? []
        : [`no event: ${String(description)}`]
    })
  ]
}

/** An event with the members of its one member beside it: a test names either. */
function unwrapped(event: unknown): Record<string, unknown> {
  if (!isObject(event)) return {}
  const [inner] = Object.values(event)
  return { ...(isObject(inner) && inner), ...event }
}

/** The corpus writes some names of events as the proto does: `status_update`. */
function camelCased(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(camelCased)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      OPERATORS.has(name) ? name : name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
      camelCased(member)
    ])
  )
}

/** The values at a path, such as `task.artifacts[*].parts[0].text`. */
export function valuesAt(root: unknown, path: string): unknown[] {
  const keys = path.replaceAll(/\[(\*|\d+)\]/g, '.$1').split('.')
  return keys.reduce<unknown[]>(
    (values, key) =>
      values.flatMap(value => {
        if (key === '*') return Array.isArray(value) ? value : []
        const member = Array.isArray(value) ? value[Number(key)] : isObject(value) ? value[key] : undefined
        return member === undefined ? [] : [member]
      }),
    [root]
  )
}

function brief(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 200) ?? 'absent'
}
