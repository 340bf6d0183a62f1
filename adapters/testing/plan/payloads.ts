import * as fc from 'fast-check'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { checkPackages } from '../../peers/installed-packages.ts'
import type { Border } from './cases.ts'

checkPackages(['fast-check'])

type JsonSchema = Readonly<Record<string, unknown>>

/** The position in a schema: its root, for references, and the depth. */
interface Place {
  readonly root: JsonSchema
  readonly depth: number
}

/** The number of generated candidates. */
const TRIES = 200

/** The maximum depth of values, for recursive schemas. */
const DEEPEST = 5

/**
 * Generates values that match a JSON Schema (draft 2020-12). `takes` validates them, also against keywords that are
 * unsupported here. Returns the shortest `count` different values, or fewer if no more are found. Deterministic.
 */
export function payloadsFor(schema: JsonSchema, count: number, takes: (value: unknown) => boolean): unknown[] {
  const valid = new Map(
    candidates(schema)
      .filter(takes)
      .map(value => [JSON.stringify(value), value])
  )
  return [...valid]
    .toSorted(([one], [other]) => one.length - other.length)
    .slice(0, count)
    .map(([, value]) => value)
}

/**
 * Values that match a JSON Schema with numbers on both sides of borders: of those that compare the name of a member in
 * this member, of others in every number.
 */
export function payloadsAt(
  schema: JsonSchema,
  borders: readonly Border[],
  takes: (value: unknown) => boolean
): unknown[] {
  const valid = borders.length === 0 ? [] : candidates(schema).filter(takes)
  const placed = valid
    .map(value => ({ value, places: numbersIn(value) }))
    .toSorted((one, other) => other.places.length - one.places.length)
  const { value, places = [] } = { ...placed[0] }
  const names = new Set(places.map(place => place.at(-1)))
  const sidesAt = (place: readonly string[]) =>
    borders
      .filter(({ name }) => name === place.at(-1) || name === undefined || !names.has(name))
      .flatMap(({ sides }) => sides)
  return places
    .flatMap(place => [...new Set(sidesAt(place))].map(side => withValueAt(value, place, side)))
    .filter(takes)
}

/** The places of the numbers in a value, as the names that lead there. */
function numbersIn(value: unknown): string[][] {
  if (typeof value === 'number') return [[]]
  return isObject(value)
    ? Object.entries(value).flatMap(([name, member]) => numbersIn(member).map(place => [name, ...place]))
    : []
}

function withValueAt(value: unknown, [name, ...rest]: readonly string[], set: number): unknown {
  return name === undefined ? set : { ...(value as object), [name]: withValueAt(Object(value)[name], rest, set) }
}

/** Empty for a contradictory schema, or an unsupported pattern. */
function candidates(root: JsonSchema): unknown[] {
  try {
    return fc.sample(valueOf(root, { root, depth: 0 }), { seed: 1, numRuns: TRIES })
  } catch {
    return []
  }
}

function valueOf(schema: unknown, { root, depth }: Place): fc.Arbitrary<unknown> {
  if (!isObject(schema) || depth > DEEPEST) return fc.jsonValue()
  const inside = { root, depth: depth + 1 }
  if ('const' in schema) return fc.constant(schema['const'])
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as unknown[]))
  const choices = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(choices)) return fc.oneof(...choices.map(choice => valueOf(choice, inside)))
  if (Array.isArray(schema['allOf']))
    return valueOf(
      Object.assign({}, schema, { allOf: undefined }, ...schema['allOf'].map(part => resolved(part, root))),
      inside
    )
  if ('$ref' in schema) return valueOf(resolved(schema, root), inside)
  const { type } = schema
  if (Array.isArray(type)) return fc.oneof(...type.map(one => valueOf({ ...schema, type: one }, inside)))
  return typeof type === 'string' && Object.hasOwn(TYPES, type)
    ? TYPES[type as keyof typeof TYPES](schema, inside)
    : fc.jsonValue()
}

const TYPES = {
  string: stringOf,
  integer: integerOf,
  number: (schema: JsonSchema) =>
    fc.oneof(integerOf(schema), fc.double({ ...rangeOf(schema, Number.MIN_VALUE), noNaN: true })),
  boolean: () => fc.boolean(),
  null: () => fc.constant(null),
  array: (schema: JsonSchema, inside: Place) => fc.array(valueOf(schema['items'], inside), lengths(schema, 'Items')),
  object: objectOf
} as const

const moments = fc
  .date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true })
  .map(date => date.toISOString())

const FORMATS: ReadonlyMap<unknown, () => fc.Arbitrary<string>> = new Map([
  ['date-time', () => moments],
  ['date', () => moments.map(text => text.slice(0, 10))],
  ['time', () => moments.map(text => text.slice(11, 19))],
  ['email', () => fc.emailAddress()],
  ['uri', () => fc.webUrl()],
  ['uuid', () => fc.uuid()]
])

function stringOf(schema: JsonSchema): fc.Arbitrary<string> {
  const { format, pattern } = schema
  const made = FORMATS.get(format)
  if (made) return made()
  return typeof pattern === 'string'
    ? fc.stringMatching(new RegExp(pattern, 'u'))
    : fc.string({ minLength: 1, ...lengths(schema, 'Length') })
}

function objectOf(schema: JsonSchema, inside: Place): fc.Arbitrary<unknown> {
  const { properties, required } = schema
  const members = isObject(properties) ? properties : {}
  const made = Object.fromEntries(Object.entries(members).map(([name, member]) => [name, valueOf(member, inside)]))
  return fc.record(made, {
    requiredKeys: Array.isArray(required) ? required.filter((name: string) => Object.hasOwn(made, name)) : [],
    noNullPrototype: true
  })
}

/** Resolves a reference (`#/$defs/…`); returns any other schema unchanged. */
function resolved(schema: unknown, root: JsonSchema): unknown {
  const reference = isObject(schema) ? schema['$ref'] : undefined
  if (typeof reference !== 'string') return schema
  return reference
    .split('/')
    .slice(1)
    .reduce<unknown>(
      (at, name) => (isObject(at) ? at[name.replaceAll('~1', '/').replaceAll('~0', '~')] : undefined),
      root
    )
}

function lengths(schema: JsonSchema, of: 'Items' | 'Length'): { minLength?: number; maxLength?: number } {
  const [min, max] = [schema[`min${of}`], schema[`max${of}`]]
  return { ...(typeof min === 'number' && { minLength: min }), ...(typeof max === 'number' && { maxLength: max }) }
}

function integerOf(schema: JsonSchema): fc.Arbitrary<number> {
  const { min, max } = rangeOf(schema, 1)
  return fc.integer({ min: Math.ceil(min), max: Math.floor(max) })
}

/** The range of a number; an open side extends 1,000 from the other. */
function rangeOf(
  { minimum, exclusiveMinimum, maximum, exclusiveMaximum }: JsonSchema,
  step: number
): { min: number; max: number } {
  const min = typeof exclusiveMinimum === 'number' ? exclusiveMinimum + step : minimum
  const max = typeof exclusiveMaximum === 'number' ? exclusiveMaximum - step : maximum
  if (typeof min === 'number') return { min, max: typeof max === 'number' ? max : min + 1000 }
  return typeof max === 'number' ? { min: max - 1000, max } : { min: -1000, max: 1000 }
}
