import * as z from 'zod'
import { A2AError, type FieldViolation } from '../errors.ts'
import { isForbiddenName, isObject, type JsonValue, pathText } from './json.ts'

/** Result of `tryDecode`: the canonical value, or violations, one per field. */
export type Decoded<T> =
  | { readonly value: T; readonly violations?: never }
  | { readonly value?: never; readonly violations: FieldViolation[] }

const REPORTED_VIOLATIONS = 20

/**
 * Decodes parsed JSON by a schema into canonical form, as ProtoJSON does (§5.7).
 *
 * Accepts snake_case names, enum numbers, either base64 alphabet, any UTC offset, int32 as text, int64 as a number and
 * null for absent.
 * Drops unknown members and default values of fields without presence. The contents of `metadata`, `data`, `params` and
 * `header` are neither copied nor checked, so call `checkJson` before. Throws InvalidParams with a violation for each
 * invalid field, at most 20, with paths below `root`.
 */
export function decode<T>(schema: Schema<T>, value: unknown, root = ''): T {
  const decoded = tryDecode(schema, value, root)
  if (decoded.violations === undefined) return decoded.value
  throw new A2AError('InvalidParams', summary(decoded.violations), { violations: decoded.violations })
}

/** Like `decode`, but returns violations instead of throwing. */
export function tryDecode<T>(schema: Schema<T>, value: unknown, root = ''): Decoded<T> {
  const result = compileSchema(schema).safeParse(value)
  if (result.success) return { value: result.data }
  const issues = result.error.issues.slice(0, REPORTED_VIOLATIONS)
  return {
    violations: issues.map(({ path, message }) => ({ field: pathText(root, path) || 'params', description: message }))
  }
}

function summary(violations: readonly FieldViolation[]): string {
  const [first] = violations
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : ''
  return `Invalid parameters: ${first?.field} ${first?.description}${more}`
}

const COMPILED = new WeakMap<Schema<unknown>, Schema<unknown>>()

/**
 * Compiles a schema on first use, which takes a few milliseconds and halves the time of a decode. If code generation
 * fails, the schema stays as it is. With zod's `jitless`, it is not tried, because browsers would report the attempt.
 */
export function compileSchema<T>(schema: Schema<T>): Schema<T>
export function compileSchema(schema: Schema<unknown>): Schema<unknown> {
  const known = COMPILED.get(schema)
  if (known !== undefined) return known
  const made = z.config().jitless ? schema : z.compile(schema)
  COMPILED.set(schema, made)
  return made
}

/** Maximum number of invalid elements reported for one list or map. Elements after them are not checked. */
const REPORTED_ISSUES = 20

/** Text of a violation: what is required, and whether the field was missing. */
export function requirementText(what: string): (issue: { readonly input?: unknown }) => string {
  return issue => (issue.input === undefined ? `is required and must be ${what}` : `must be ${what}`)
}

/** Adds a violation at `path` below the value that is being decoded. */
export function complain(context: z.core.ParsePayload, path: PropertyKey[], message: string): void {
  context.issues.push({ code: 'custom', path, message, input: context.value })
}

/**
 * Decodes one member of `context`'s value. If it is invalid, adds its violations below `step` and gives `undefined`.
 */
function decodeMember<T>(
  context: z.core.ParsePayload,
  step: PropertyKey,
  schema: Schema<T>,
  value: unknown
): T | undefined {
  const result = compileSchema(schema).safeParse(value)
  if (result.success) return result.data
  for (const issue of result.error.issues) complain(context, [step, ...issue.path], issue.message)
  return undefined
}

/** Validates one kind of value and gives its canonical form. Every type of the protocol is inferred from a schema. */
export type Schema<T> = z.ZodType<T>

const MAX_INT32 = 2 ** 31 - 1
const LONGEST_ID = 128
const BASE64_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const NOT_BASE64 = /[^A-Za-z0-9+/]/
const DECIMAL = /^-?(?:0|[1-9]\d{0,9})$/
const MAX_INT64 = '9223372036854775807'
const UNSIGNED = /^(?:0|[1-9]\d{0,18})$/

const NON_EMPTY = 'a non-empty string'
const ID = `an id of 1 to ${LONGEST_ID} characters without control characters`

/** Any string. */
export const anyString: Schema<string> = z.string({ error: requirementText('a string') })

/** A string of at least one character. */
export const nonEmptyText: Schema<string> = z
  .string({ error: requirementText(NON_EMPTY) })
  .check(z.minLength(1, { error: requirementText(NON_EMPTY) }))

/** An id: 1 to 128 characters, none of them a control character (C0 or DEL). */
export const identifier: Schema<string> = z
  .string({ error: requirementText(ID) })
  .check(z.refine(isIdentifier, { error: requirementText(ID) }))

/** A JSON boolean; no other spelling is accepted. */
export const flag: Schema<boolean> = z.boolean({ error: requirementText('true or false') })

/** Any JSON value, including null, unchanged. */
export const json: Schema<JsonValue> = z.custom<JsonValue>(isJson, { error: requirementText('a JSON value') })

/** A JSON object, unchanged: nothing inside is renamed, dropped or copied. */
export const struct: Schema<Record<string, unknown>> = z.custom<Record<string, unknown>>(isObject, {
  error: requirementText('an object')
})

/** Bytes as base64; decoded to the standard alphabet with padding. */
export const bytes: Schema<string> = canonical(canonicalBase64, 'base64')

/** An RFC 3339 timestamp; decoded to `YYYY-MM-DDTHH:mm:ss.sssZ` (§5.6.1). */
export const timestamp: Schema<string> = canonical(
  canonicalTimestamp,
  'an RFC 3339 timestamp in the years 0001 to 9999'
)

/** A whole number from `min` to `max`, both inclusive; decimal text is accepted (ProtoJSON's int32). */
export function int32(min = 0, max = MAX_INT32): Schema<number> {
  const error = requirementText(`a whole number from ${min} to ${max}`)
  const inRange = (value: number) => Number.isInteger(value) && value >= min && value <= max
  return z.pipe(z.transform(numberOf), z.number({ error }).check(z.refine(inRange, { error })))
}

const INT64 = requirementText(`a whole number from 0 to ${MAX_INT64}, as text above ${Number.MAX_SAFE_INTEGER}`)

/**
 * A whole number from 0 to 2^63 - 1, as decimal text (ProtoJSON's int64). A JSON number is accepted up to 2^53 - 1,
 * since JSON.parse rounds larger ones.
 */
export const int64: Schema<string> = z.pipe(
  z.transform((value: unknown) => (Number.isSafeInteger(value) ? String(value) : value)),
  z.string({ error: INT64 }).check(z.refine(isInt64, { error: INT64 }))
)

/** A name of an enum; its number in the proto is accepted. */
export function enumeration<Name extends string>(
  table: Readonly<Record<Name, { readonly number: number }>>
): Schema<Name> {
  const names = Object.keys(table).filter((name): name is Name => Object.hasOwn(table, name))
  const byNumber = new Map<unknown, string>(names.map(name => [table[name].number, name]))
  const nameOf = (value: unknown) => byNumber.get(value) ?? value
  return z.pipe(z.transform(nameOf), z.enum(names, { error: requirementText(`one of ${names.join(', ')}`) }))
}

function canonical(canonicalise: (value: string) => string | undefined, what: string): Schema<string> {
  const error = requirementText(what)
  return z.pipe(
    z.string({ error }),
    z.transform((value: string, context) => {
      const result = canonicalise(value)
      if (result === undefined) complain(context, [], error({ input: value }))
      return result ?? value
    })
  )
}

function isIdentifier(value: string): boolean {
  if (value.length === 0 || value.length > LONGEST_ID) return false
  for (let index = 0; index < value.length; index += 1) {
    const unit = value.charCodeAt(index)
    if (unit < 0x20 || unit === 0x7f) return false
  }
  return true
}

/** Texts of the same length are in the order of their numbers. */
function isInt64(value: string): boolean {
  return UNSIGNED.test(value) && (value.length < MAX_INT64.length || value <= MAX_INT64)
}

function isJson(value: unknown): boolean {
  return value === null || ['string', 'number', 'boolean', 'object'].includes(typeof value)
}

/** Adding zero turns -0, which JSON can express, into 0. */
function numberOf(value: unknown): unknown {
  if (typeof value === 'number') return value + 0
  return typeof value === 'string' && DECIMAL.test(value) ? Number(value) + 0 : value
}

/**
 * Converts base64 to its canonical form: the standard alphabet, padded, unused bits zero (RFC 4648 §4).
 *
 * Accepts the standard or the URL-safe alphabet, with or without padding, as ProtoJSON does for `bytes`. Equal bytes
 * give equal text. Anything else, including white space, gives `undefined`.
 */
function canonicalBase64(text: string): string | undefined {
  const body = withoutPadding(text)
  const standard = NOT_BASE64.test(body) ? body.replaceAll('-', '+').replaceAll('_', '/') : body
  if (standard.length % 4 === 1 || NOT_BASE64.test(standard)) return undefined
  const padding = (4 - (standard.length % 4)) % 4
  const written = text.length - body.length
  if (written !== 0 && written !== padding) return undefined
  return padding === 0 ? standard : withoutUnusedBits(standard, padding) + '='.repeat(padding)
}

function withoutPadding(text: string): string {
  if (text.endsWith('==')) return text.slice(0, -2)
  return text.endsWith('=') ? text.slice(0, -1) : text
}

/** Zeroes the unused bits of the last character: two with one `=`, four with two. */
function withoutUnusedBits(text: string, padding: number): string {
  const last = BASE64_ALPHABET.indexOf(text.slice(-1))
  return text.slice(0, -1) + BASE64_ALPHABET.charAt(last - (last % 4 ** padding))
}

const RFC_3339 = /^(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/
const FIRST = Date.parse('0001-01-01T00:00:00.000Z')
const LAST = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Converts an RFC 3339 timestamp to A2A's form: `YYYY-MM-DDTHH:mm:ss.sssZ`, UTC (§5.6.1).
 *
 * Accepts any offset and up to nine fractional digits; those after the third are dropped. A date or time that does not
 * exist, a leap second, or a moment outside the years 0001 to 9999 gives `undefined`.
 */
export function canonicalTimestamp(text: string): string | undefined {
  const match = RFC_3339.exec(text)
  if (match === null) return undefined
  const [, date, time, fraction = '', sign, hours = '0', minutes = '0'] = match
  const local = `${date}T${time}.${fraction.slice(0, 3).padEnd(3, '0')}Z`
  const moment = Date.parse(local)
  if (Number.isNaN(moment) || new Date(moment).toISOString() !== local) return undefined
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000
  const utc = sign === '-' ? moment + offset : moment - offset
  return utc < FIRST || utc > LAST ? undefined : new Date(utc).toISOString()
}

/**
 * One field of a message: the schema of its value, and its presence (ProtoJSON, §5.7).
 *
 * `isAbsent` says which wire values count as absent; `fill` gives the value of a REQUIRED field that may be empty and
 * is absent.
 */
export interface FieldDefinition<T, Optional extends boolean = boolean> {
  readonly schema: Schema<T>
  readonly optional: Optional
  readonly isAbsent: (value: unknown) => boolean
  readonly fill?: () => T
}

/** A required field. */
export function requiredField<T>(schema: Schema<T>): FieldDefinition<T, false> {
  return { schema, optional: false, isAbsent: isNull }
}

/** A required field for which null is a value. */
export function nullableField<T>(schema: Schema<T>): FieldDefinition<T, false> {
  return { schema, optional: false, isAbsent: value => value === undefined }
}

/**
 * A REQUIRED field that may be empty. If absent, it decodes to `fill()`, because a proto cannot distinguish absent from
 * empty.
 */
export function defaultField<T>(schema: Schema<T>, fill: () => T): FieldDefinition<T, false> {
  return { schema, optional: false, isAbsent: isNull, fill }
}

/** A field with explicit presence: a default value that is given is kept. */
export function presenceField<T>(schema: Schema<T>): FieldDefinition<T, true> {
  return { schema, optional: true, isAbsent: isNull }
}

/** A field without presence: its default value counts as absent. */
export function optionalField<T>(schema: Schema<T>, isDefault: (value: unknown) => boolean): FieldDefinition<T, true> {
  return { schema, optional: true, isAbsent: value => isNull(value) || isDefault(value) }
}

/** An optional string; empty counts as absent. */
export const optionalText = optionalField(anyString, isEmptyText)

/** An optional id; empty counts as absent. */
export const optionalId = optionalField(identifier, isEmptyText)

/** An optional boolean; false counts as absent. */
export const optionalFlag = optionalField(flag, value => value === false)

/** An optional list; empty counts as absent. */
export function optionalList<T>(element: Schema<T>): FieldDefinition<T[], true> {
  return optionalField(list(element), value => Array.isArray(value) && value.length === 0)
}

/** An optional map; empty counts as absent. */
export function optionalMap<T>(element: Schema<T>): FieldDefinition<Record<string, T>, true> {
  return optionalField(map(element), value => isObject(value) && Object.keys(value).length === 0)
}

/** A REQUIRED string that may be empty. */
export const defaultText = defaultField(anyString, () => '')

/** A REQUIRED list that may be empty. */
export function defaultList<T>(element: Schema<T>): FieldDefinition<T[], false> {
  return defaultField(list(element), () => [])
}

function isNull(value: unknown): boolean {
  return value === null || value === undefined
}

function isEmptyText(value: unknown): boolean {
  return value === ''
}

/** `simple` is a fast path: it gives `undefined` for elements that need the schema. */
interface ListTerms<T> {
  readonly min?: 0 | 1
  readonly simple?: (element: unknown) => T | undefined
}

/**
 * A list of at least `min` elements (default 0) that follow one schema.
 *
 * It stops after 20 invalid elements. zod's own loop would report a million errors for a million invalid elements.
 */
export function list<T>(element: Schema<T>, { min = 0, simple }: ListTerms<T> = {}): Schema<T[]> {
  const error = requirementText(min === 0 ? 'a list' : 'a list of at least one')
  const array = z.array(z.unknown(), { error }).check(z.minLength(min, { error }))
  return z.pipe(
    array,
    z.transform((values: unknown[], context) => {
      // A copy has the exact capacity. The first `push` onto an empty list reserves 17 elements, and most lists have
      // one.
      const decoded = values.slice() as T[]
      for (let index = 0; index < values.length && context.issues.length < REPORTED_ISSUES; index += 1) {
        const value = simple?.(values[index]) ?? decodeMember(context, index, element, values[index])
        if (value !== undefined) decoded[index] = value
      }
      return decoded
    })
  )
}

/** A proto map: an object with arbitrary keys, whose values follow one schema. */
export function map<T>(element: Schema<T>): Schema<Record<string, T>> {
  return z.pipe(
    struct,
    z.transform((members: Record<string, unknown>, context) => {
      const decoded: Record<string, T> = {}
      for (const [name, member] of Object.entries(members)) {
        if (context.issues.length >= REPORTED_ISSUES) break
        if (isForbiddenName(name)) complain(context, [name], 'must not have this name')
        else {
          const value = decodeMember(context, name, element, member)
          if (value !== undefined) decoded[name] = value
        }
      }
      return decoded
    })
  )
}

type Fields = Readonly<Record<string, FieldDefinition<unknown>>>
type Value<F> = F extends FieldDefinition<infer T> ? T : never
type Flat<T> = { [K in keyof T]: T[K] }

/** The type of a message with these fields. */
type MessageOf<F extends Fields> = Flat<
  { [K in keyof F as F[K]['optional'] extends false ? K : never]: Value<F[K]> } & {
    [K in keyof F as F[K]['optional'] extends true ? K : never]?: Value<F[K]>
  }
>

/** The type of a oneof: exactly one of the choices, with the common fields. */
type OneOf<Choices extends Fields, Common extends Fields> = {
  [K in keyof Choices]: Flat<{ [P in K]: Value<Choices[K]> } & MessageOf<Common>>
}[keyof Choices]

interface Entry {
  readonly name: string
  readonly field: FieldDefinition<unknown>
}

/**
 * Describes a proto message by its fields, named in camelCase.
 *
 * Its schema accepts camelCase and snake_case names, but not both for one field. It drops unknown names and absent
 * values, fills in REQUIRED fields that may be empty, and checks each field. Inherited members are ignored.
 */
export function message<F extends Fields>(fields: F): Schema<MessageOf<F>>
export function message(fields: Fields): Schema<unknown> {
  return z.pipe(z.transform(canonicaliser(fields)), objectOf(fields))
}

/** Describes a proto message that is a oneof: exactly one of `choices`, and any of the `common` fields. */
export function oneOf<Choices extends Fields, Common extends Fields>(
  choices: Choices,
  common: Common
): Schema<OneOf<Choices, Common>>
export function oneOf(choices: Fields, common: Fields): Schema<unknown> {
  const canonicalise = canonicaliser({ ...choices, ...common })
  const names = Object.keys(choices)
  const chooseOne = (input: unknown, context: z.core.ParsePayload) => {
    const value = canonicalise(input, context)
    const chosen = isObject(value) ? names.filter(name => Object.hasOwn(value, name)) : []
    if (isObject(value) && chosen.length !== 1)
      complain(context, [], `must have exactly one of ${names.join(', ')}${has(chosen)}`)
    return value
  }
  return z.pipe(z.transform(chooseOne), objectOf({ ...madeOptional(choices), ...common }))
}

function objectOf(fields: Fields): z.ZodType {
  const shape = Object.entries(fields).map(
    ([name, { schema, optional }]) => [name, optional ? z.optional(schema) : schema] as const
  )
  return z.object(Object.fromEntries(shape), { error: requirementText('an object') })
}

function canonicaliser(fields: Fields): (input: unknown, context: z.core.ParsePayload) => unknown {
  const entries = new Map<string, Entry>()
  for (const [name, field] of Object.entries(fields)) {
    entries.set(name, { name, field })
    entries.set(snakeCase(name), { name, field })
  }
  const fillers = Object.entries(fields).flatMap(([name, { fill }]) => (fill === undefined ? [] : [{ name, fill }]))
  return (input, context) => {
    if (!isObject(input)) return input
    const output = known(entries, input, context)
    for (const { name, fill } of fillers) if (!Object.hasOwn(output, name)) output[name] = fill()
    return output
  }
}

function known(
  entries: ReadonlyMap<string, Entry>,
  input: Record<string, unknown>,
  context: z.core.ParsePayload
): Record<string, unknown> {
  const output: Record<string, unknown> = {}
  for (const key of Object.keys(input)) {
    const entry = entries.get(key)
    const value = input[key]
    if (entry === undefined || entry.field.isAbsent(value)) continue
    if (Object.hasOwn(output, entry.name))
      complain(context, [entry.name], `must not also be given as ${snakeCase(entry.name)}`)
    output[entry.name] = value
  }
  return output
}

function madeOptional(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, { ...field, optional: true }]))
}

function has(chosen: readonly string[]): string {
  return chosen.length === 0 ? '' : `, not ${chosen.join(' and ')}`
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, letter => `_${letter.toLowerCase()}`)
}
