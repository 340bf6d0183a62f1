import { isObject, type JsonValue } from '../../../machines/protocol/codec/json.ts'

/** An untrusted JSON Schema. */
type Schema = Readonly<Record<string, unknown>>

/** The field of a form for a JSON Schema. `json`, JSON text, is for everything else. */
export type Field =
  | { readonly kind: 'choice'; readonly options: readonly JsonValue[] }
  | { readonly kind: 'const'; readonly value: JsonValue }
  | {
      readonly kind: 'text'
      readonly input: TextInput
      readonly min?: number
      readonly max?: number
      readonly pattern?: string
    }
  | NumberField
  | { readonly kind: 'boolean' }
  | { readonly kind: 'list'; readonly item: Field }
  | ObjectField
  | { readonly kind: 'json' }

/** A number from `min` to `max`, above `above` and below `below`. */
export interface NumberField {
  readonly kind: 'number'
  readonly isWhole: boolean
  readonly min?: number
  readonly max?: number
  readonly above?: number
  readonly below?: number
  readonly step?: number
}

/** An object, member by member. */
export interface ObjectField {
  readonly kind: 'object'
  readonly members: readonly FieldMember[]
}

/** The type of a text input. */
export type TextInput = 'text' | 'date' | 'time' | 'datetime-local' | 'email' | 'url'

/** A member of an object. */
export interface FieldMember {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly isRequired: boolean
  /** Its schema, which is untrusted. */
  readonly schema: Schema
  readonly field: Field
  readonly start: FieldDraft
}

/** The current input of a form: text for typed values, else a structure. */
export type FieldDraft = string | boolean | FieldDraft[] | { readonly [name: string]: FieldDraft }

/** The depth from which an object is entered as JSON. */
const DEEPEST = 4

/** The depth from which anything is: a schema of an agent may nest lists and unions without end. */
const DEEPEST_SCHEMA = 2 * DEEPEST

const INPUTS: ReadonlyMap<unknown, TextInput> = new Map([
  ['date', 'date'],
  ['time', 'time'],
  ['date-time', 'datetime-local'],
  ['email', 'email'],
  ['uri', 'url']
])

/** The form field of a schema, which is untrusted. */
export function fieldOf(schema: unknown, depth = 0): Field {
  if (!isObject(schema) || depth > DEEPEST_SCHEMA) return { kind: 'json' }
  if ('const' in schema) return { kind: 'const', value: schema.const as JsonValue }
  const union = unionOf(schema)
  if (union?.every(one => 'const' in one)) return { kind: 'choice', options: union.map(one => one.const as JsonValue) }
  if (union) return fieldOfUnion(union, depth)
  if (Array.isArray(schema.enum)) return { kind: 'choice', options: schema.enum as JsonValue[] }
  switch (schema.type) {
    case 'string':
      return textField(schema)
    case 'number':
    case 'integer':
      return {
        kind: 'number',
        isWhole: schema.type === 'integer',
        ...bounds(schema, { min: 'minimum', max: 'maximum', above: 'exclusiveMinimum', below: 'exclusiveMaximum' }),
        ...(typeof schema.multipleOf === 'number' && { step: schema.multipleOf })
      }
    case 'boolean':
      return { kind: 'boolean' }
    case 'array': {
      const item = fieldOf(schema.items, depth + 1)
      return isSimple(item) ? { kind: 'list', item } : { kind: 'json' }
    }
    case 'object':
      return depth < DEEPEST && isObject(schema.properties)
        ? { kind: 'object', members: membersOf(schema, schema.properties, depth) }
        : { kind: 'json' }
    default:
      return { kind: 'json' }
  }
}

/** The initial input of a field: its default, or empty. */
export function startOf(field: Field, given?: unknown): FieldDraft {
  switch (field.kind) {
    case 'boolean':
      return given === true
    case 'list':
      return Array.isArray(given) ? given.map(item => startOf(field.item, item)) : [startOf(field.item)]
    case 'object':
      return Object.fromEntries(
        field.members.map(({ name, start, field }) => [
          name,
          isObject(given) && Object.hasOwn(given, name) ? startOf(field, given[name]) : start
        ])
      )
    case 'choice': {
      const index = field.options.findIndex(option => JSON.stringify(option) === JSON.stringify(given))
      return index < 0 ? '' : String(index)
    }
    case 'const':
      return ''
    case 'json':
      return given === undefined ? '' : JSON.stringify(given)
    case 'number':
    case 'text':
    default:
      return typeof given === 'string' || typeof given === 'number' ? String(given) : ''
  }
}

/** The schemas of a union of at least one, or of the types of a schema that has several. */
function unionOf(schema: Schema): readonly Schema[] | undefined {
  const { anyOf, oneOf, type } = schema
  if (Array.isArray(type) && type.length > 0) return type.map(one => ({ ...schema, type: one as unknown }))
  const union: unknown = Array.isArray(anyOf) ? anyOf : oneOf
  return Array.isArray(union) && union.length > 0 && union.every(one => isObject(one)) ? union : undefined
}

/** A union has the field of its one schema besides null, or is text if that is one of its schemas. */
function fieldOfUnion(union: readonly Schema[], depth: number): Field {
  const others = union.filter(({ type }) => type !== 'null')
  const one = others.length === 1 ? others[0] : others.find(({ type }) => type === 'string')
  return one ? fieldOf(one, depth + 1) : { kind: 'json' }
}

function textField(schema: Schema): Field {
  const input = INPUTS.get(schema.format) ?? 'text'
  const pattern = input === 'text' && typeof schema.pattern === 'string' ? { pattern: schema.pattern } : {}
  return { kind: 'text', input, ...bounds(schema, { min: 'minLength', max: 'maxLength' }), ...pattern }
}

/** The bounds that a schema has, by the names of its keywords. Libraries add ±MAX_SAFE_INTEGER, which is left out. */
function bounds<Name extends string>(
  schema: Schema,
  keywords: Readonly<Record<Name, string>>
): { [Bound in Name]?: number } {
  const found = Object.entries<string>(keywords).map(([name, keyword]) => [name, schema[keyword]] as const)
  return Object.fromEntries(
    found.filter(([, value]) => typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER)
  ) as { [Bound in Name]?: number }
}

function isSimple({ kind }: Field): boolean {
  return kind === 'text' || kind === 'number' || kind === 'choice' || kind === 'boolean'
}

function membersOf({ required }: Schema, properties: Readonly<Record<string, unknown>>, depth: number): FieldMember[] {
  return Object.entries(properties).map(([name, given]) => {
    const schema = isObject(given) ? given : {}
    const { title, description } = schema
    const field = fieldOf(schema, depth + 1)
    return {
      name,
      title: typeof title === 'string' && title !== '' ? title : name,
      description: typeof description === 'string' ? description : '',
      isRequired: Array.isArray(required) && required.includes(name),
      schema,
      field,
      start: startOf(field, schema.default)
    }
  })
}

/** A form for terms like these: each value can be changed to another one of its type. */
export function termsField(terms: Readonly<Record<string, unknown>>): ObjectField {
  const properties = Object.entries(terms).map(([name, value]) => {
    const isSimple = value !== null && typeof value !== 'object'
    return [name, { ...(isSimple && { type: typeof value }), default: value }] as const
  })
  return {
    kind: 'object',
    members: membersOf({ required: Object.keys(terms) }, Object.fromEntries(properties), 0)
  }
}

/** A choice as text: a name, or JSON. */
export function optionText(option: JsonValue): string {
  return typeof option === 'string' ? option : JSON.stringify(option)
}

const INPUT_WORDS: Readonly<Record<TextInput, string>> = {
  text: 'text',
  date: 'a date',
  time: 'a time',
  'datetime-local': 'a date and time',
  email: 'an email address',
  url: 'a URL'
}

/** The most names in a text. */
const MOST_NAMES = 6

/** The values of a field, in words: `small or large`, `a whole number from 1`, `day and payment`. */
export function fieldWords(field: Field): string {
  switch (field.kind) {
    case 'const':
      return optionText(field.value)
    case 'choice':
      return namesText(field.options.map(optionText), 'or')
    case 'text':
      return INPUT_WORDS[field.input]
    case 'number':
      return numberWords(field)
    case 'boolean':
      return 'yes or no'
    case 'list':
      return 'a list'
    case 'object':
      return namesText(
        field.members.map(({ title }) => title),
        'and'
      )
    case 'json':
    default:
      return 'JSON'
  }
}

function namesText(names: readonly string[], last: 'and' | 'or'): string {
  const [end = '', ...before] = names.slice(0, MOST_NAMES).toReversed()
  if (names.length > MOST_NAMES) return `${names.slice(0, MOST_NAMES).join(', ')} …`
  return before.length === 0 ? end : `${before.toReversed().join(', ')} ${last} ${end}`
}

function numberWords({ isWhole, min, max, above, below }: NumberField): string {
  const parts = Object.entries({ from: min, above, to: max, below })
  const limits = parts.map(([word, limit]) => (limit === undefined ? '' : ` ${word} ${limit}`))
  return `${isWhole ? 'a whole number' : 'a number'}${limits.join('')}`
}

/** The result of a form: a value, nothing, or an error. */
export type FormValue = { readonly value: JsonValue } | { readonly nothing: true } | { readonly wrong: string }

const NOTHING = { nothing: true } as const

/** The value of a field's input. `name` is the field's name in errors. */
export function formValue(field: Field, draft: FieldDraft, name: string): FormValue {
  switch (field.kind) {
    case 'const':
      return { value: field.value }
    case 'boolean':
      return { value: draft === true }
    case 'choice': {
      const option = draft === '' ? undefined : field.options[Number(draft)]
      return option === undefined ? NOTHING : { value: option }
    }
    case 'number':
      return numberValue(draftText(draft), field, name)
    case 'text':
      return draftText(draft) === '' ? NOTHING : { value: written(field.input, draftText(draft)) }
    case 'list':
      return listValue(field.item, Array.isArray(draft) ? draft : [], name)
    case 'object':
      return objectValue(field, isObject(draft) ? draft : {}, name)
    case 'json':
    default:
      return jsonValue(draftText(draft), name)
  }
}

/** The input of a member, whose name the agent has chosen; `undefined` before there is one. */
export function draftIn(drafts: Readonly<Record<string, FieldDraft>>, name: string): FieldDraft | undefined {
  return Object.hasOwn(drafts, name) ? drafts[name] : undefined
}

function draftText(draft: FieldDraft): string {
  return typeof draft === 'string' ? draft : ''
}

/** The number in a text, if the field takes it. */
export function numberIn(text: string, { isWhole, min, max, above, below }: NumberField): number | undefined {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  const isInside =
    Number.isFinite(value) &&
    value >= (min ?? -Infinity) &&
    value <= (max ?? Infinity) &&
    value > (above ?? -Infinity) &&
    value < (below ?? Infinity)
  return isInside && (!isWhole || Number.isInteger(value)) ? value : undefined
}

function numberValue(text: string, field: NumberField, name: string): FormValue {
  if (text.trim() === '') return NOTHING
  const value = numberIn(text, field)
  return value === undefined ? { wrong: `${name} has to be ${numberWords(field)}` } : { value }
}

/** Dates and times as in RFC 3339: browsers omit seconds and time zone. */
function written(input: string, text: string): string {
  if (input === 'datetime-local') return new Date(text).toISOString()
  return input === 'time' && text.length === 5 ? `${text}:00` : text
}

function listValue(item: Field, drafts: readonly FieldDraft[], name: string): FormValue {
  const values: JsonValue[] = []
  for (const [i, draft] of drafts.entries()) {
    const one = formValue(item, draft, `${name} ${i + 1}`)
    if ('wrong' in one) return one
    if ('value' in one) values.push(one.value)
  }
  return { value: values }
}

function objectValue({ members }: ObjectField, drafts: Readonly<Record<string, FieldDraft>>, name: string): FormValue {
  const values: [string, JsonValue][] = []
  for (const { name: member, title, field, isRequired } of members) {
    const one = formValue(field, draftIn(drafts, member) ?? '', title)
    if ('wrong' in one) return one
    if ('value' in one) values.push([member, one.value])
    else if (isRequired) return { wrong: `${title} is missing${name === '' ? '' : ` in ${name}`}` }
  }
  return { value: Object.fromEntries(values) }
}

function jsonValue(text: string, name: string): FormValue {
  if (text.trim() === '') return NOTHING
  try {
    return { value: JSON.parse(text) as JsonValue }
  } catch {
    return { wrong: `${name} has to be JSON, such as {"colour": "red"}` }
  }
}
