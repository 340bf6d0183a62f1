import * as z from 'zod'
import { complain, requirementText, type Schema } from './decode.ts'
import { isObject, type JsonValue } from './json.ts'

/** A `google.protobuf.Struct`: a JSON object with free names, which are never changed (§4.6). */
export type Metadata = Record<string, unknown>

const MAX_INT32 = 2 ** 31 - 1
const LONGEST_ID = 128
const BASE64_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
const NOT_BASE64 = /[^A-Za-z0-9+/]/
const DECIMAL = /^-?(?:0|[1-9]\d{0,9})$/

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
export const struct: Schema<Metadata> = z.custom<Metadata>(isObject, { error: requirementText('an object') })

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
