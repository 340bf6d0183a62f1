import { isObject, type JsonValue } from '../../../machines/protocol/codec/json.ts'
import type { Part } from '../../../machines/protocol/objects.ts'
import { expectedText } from '../text/format.ts'
import { oneLine } from '../text/terminal.ts'
import { expectsLine } from './results.ts'

type Schema = Readonly<Record<string, unknown>>

/** One value in a form. */
export interface FormField {
  readonly name: string
  /** An untrusted JSON Schema. */
  readonly schema: Schema
  readonly isRequired: boolean
}

/** The user of a form. */
export interface FormUser {
  /** Resolves with a line. A rejection ends the form. */
  readonly ask: (prompt: string) => Promise<string>
  readonly print: (line: string) => void
  /** The width of the terminal. */
  readonly columns: number
}

/** The most fields of a form. An answer with more is read as JSON in one line. */
const MOST_FIELDS = 50

/** Requests an answer that fits a JSON Schema: an object field by field, any other value in one line. */
export async function askAnswer(schema: Schema, user: FormUser): Promise<Part> {
  const fields = formFieldsOf(schema)
  if (fields) return { data: await askFields(fields, user) }
  user.print(expectsLine(schema, user.columns))
  const value = await askValue(schema, '> ', user)
  return typeof value === 'string' ? { text: value } : { data: value }
}

/** The fields of a form for an object. `undefined` if the schema describes no object, or too large a one. */
export function formFieldsOf({ type, properties, required }: Schema): FormField[] | undefined {
  if (type !== 'object' || !isObject(properties)) return undefined
  const fields = Object.entries(properties)
  if (fields.length === 0 || fields.length > MOST_FIELDS) return undefined
  return fields.map(([name, schema]) => ({
    name,
    schema: isObject(schema) ? schema : {},
    isRequired: Array.isArray(required) && required.includes(name)
  }))
}

/** The fields of a form for terms: each value can be changed to another of its type. */
export function fieldsOfTerms(terms: Readonly<Record<string, unknown>>): FormField[] {
  return Object.entries(terms).map(([name, value]) => ({
    name,
    schema: { ...(typeof value !== 'object' && { type: typeof value }), default: value },
    isRequired: true
  }))
}

/** Requests each field. An empty line is the default, or omits a field that is not required. */
export async function askFields(fields: readonly FormField[], user: FormUser): Promise<{ [name: string]: JsonValue }> {
  const values: [string, JsonValue][] = []
  for (const { name, schema, isRequired } of fields) {
    user.print(fieldText(name, schema, isRequired, user.columns))
    const value = await askField(name, schema, isRequired, user)
    if (value !== undefined) values.push([name, value])
  }
  return Object.fromEntries(values)
}

async function askField(
  name: string,
  schema: Schema,
  isRequired: boolean,
  user: FormUser
): Promise<JsonValue | undefined> {
  for (;;) {
    const text = await user.ask(`${oneLine(name)}> `)
    if (text.trim() !== '') {
      const value = checked(text, schema, user)
      if (value !== undefined) return value
    } else if (schema['default'] !== undefined || !isRequired) {
      return schema['default'] as JsonValue | undefined
    } else {
      user.print('This field is required.')
    }
  }
}

async function askValue(schema: Schema, prompt: string, user: FormUser): Promise<JsonValue> {
  for (;;) {
    const value = checked(await user.ask(prompt), schema, user)
    if (value !== undefined) return value
  }
}

/** The parsed value of a line. If it does not fit, prints what is expected, and returns `undefined`. */
function checked(text: string, schema: Schema, { print, columns }: FormUser): JsonValue | undefined {
  const value = readValue(text.trim(), schema)
  if (value === undefined) print(`That is not ${wantedText(schema, columns - 'That is not .'.length)}.`)
  return value
}

/** A field in one line: `size: one of small, large (optional)`. */
function fieldText(name: string, schema: Schema, isRequired: boolean, columns: number): string {
  const { title, description, default: usual } = schema
  const about = [title, description].filter(text => typeof text === 'string' && text !== '').join(', ')
  const note = usual !== undefined ? ` (default ${JSON.stringify(usual)})` : isRequired ? '' : ' (optional)'
  const begins = oneLine(`${name}${about === '' ? '' : ` (${about})`}: `)
  return oneLine(`${begins} ${wantedText(schema, columns - begins.length - note.length - 1)}${note}`)
}

/** The values that a schema expects, without its descriptions. */
function wantedText(schema: Schema, columns: number): string {
  const wanted = Object.entries(schema).filter(([name]) => !['title', 'description', 'default'].includes(name))
  return wanted.length === 0 ? 'text, or a value as JSON' : expectedText(Object.fromEntries(wanted), columns)
}

/** Parses a line by the schema. `undefined` if that is impossible; the agent checks the rest. */
export function readValue(text: string, schema: Schema): JsonValue | undefined {
  const { type, enum: choices } = schema
  if (Array.isArray(choices))
    return (choices as JsonValue[]).find(
      choice => (typeof choice === 'string' ? choice : JSON.stringify(choice)) === text
    )
  if (type === 'string') return text
  if (type === 'number' || type === 'integer') return readNumber(text, schema)
  if (type === 'boolean')
    return /^(?:true|yes|y)$/i.test(text) ? true : /^(?:false|no|n)$/i.test(text) ? false : undefined
  return readJson(text) ?? (type === undefined ? text : undefined)
}

function readNumber(
  text: string,
  { type, minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below }: Schema
): number | undefined {
  const value = text === '' ? Number.NaN : Number(text)
  const isInside =
    value >= limit(minimum, -Infinity) &&
    value <= limit(maximum, Infinity) &&
    value > limit(above, -Infinity) &&
    value < limit(below, Infinity)
  return isInside && (type !== 'integer' || Number.isInteger(value)) ? value : undefined
}

/** A bound of an untrusted schema, or the one that bounds nothing. */
function limit(bound: unknown, none: number): number {
  return typeof bound === 'number' ? bound : none
}

function readJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}
