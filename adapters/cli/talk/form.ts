import type { JsonValue } from '../../../machines/protocol/codec/json.ts'
import type { Part } from '../../../machines/protocol/objects.ts'
import { type FieldMember, fieldOf, numberIn, optionText, termsField } from '../../client/state/answer-form.ts'
import { expectedText } from '../text/format.ts'
import { oneLine } from '../text/terminal.ts'
import { expectsLine } from './results.ts'

type Schema = Readonly<Record<string, unknown>>

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
export function formFieldsOf(schema: Schema): readonly FieldMember[] | undefined {
  const field = fieldOf(schema)
  if (field.kind !== 'object' || field.members.length === 0 || field.members.length > MOST_FIELDS) return undefined
  return field.members
}

/** Requests terms in place of others: each value can be changed to another of its type. */
export async function askTerms(terms: Readonly<Record<string, unknown>>, user: FormUser): Promise<FormAnswer> {
  return askFields(termsField(terms).members, user)
}

interface FormAnswer {
  [name: string]: JsonValue
}

/** Requests each field. An empty line is the default, or omits a field that is not required. */
async function askFields(fields: readonly FieldMember[], user: FormUser): Promise<FormAnswer> {
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
  const field = fieldOf(schema)
  switch (field.kind) {
    case 'const':
      return optionText(field.value) === text ? field.value : undefined
    case 'choice':
      return field.options.find(option => optionText(option) === text)
    case 'text':
      return text
    case 'number':
      return numberIn(text, field)
    case 'boolean':
      return /^(?:true|yes|y)$/i.test(text) ? true : /^(?:false|no|n)$/i.test(text) ? false : undefined
    case 'list':
    case 'object':
    case 'json':
    default:
      return readJson(text) ?? (schema['type'] === undefined ? text : undefined)
  }
}

function readJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue
  } catch {
    return undefined
  }
}
