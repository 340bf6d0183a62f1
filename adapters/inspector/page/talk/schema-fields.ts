import { isObject, type JsonValue } from '../../../../machines/protocol/codec/json.ts'

/** The form field of a JSON Schema. `json`, a box for JSON text, is for everything else. */
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
  | {
      readonly kind: 'number'
      readonly isWhole: boolean
      readonly min?: number
      readonly max?: number
      readonly step?: number
    }
  | { readonly kind: 'boolean' }
  | { readonly kind: 'list'; readonly item: Field }
  | { readonly kind: 'object'; readonly members: readonly Member[] }
  | { readonly kind: 'json' }

/** The type of a text input. */
export type TextInput = 'text' | 'date' | 'time' | 'datetime-local' | 'email' | 'url'

/** A member of an object. */
export interface Member {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly isRequired: boolean
  readonly field: Field
  readonly start: Draft
}

/** The current input of a form: text for typed values, else a structure. */
export type Draft = string | boolean | Draft[] | { readonly [name: string]: Draft }

/** The depth from which a value is entered as JSON. */
const DEEPEST = 4

const INPUTS: ReadonlyMap<unknown, TextInput> = new Map([
  ['date', 'date'],
  ['time', 'time'],
  ['date-time', 'datetime-local'],
  ['email', 'email'],
  ['uri', 'url']
])

/** The form field of a schema, which is untrusted. */
export function fieldOf(schema: unknown, depth = 0): Field {
  if (!isObject(schema)) return { kind: 'json' }
  if ('const' in schema) return { kind: 'const', value: schema.const as JsonValue }
  const options = optionsOf(schema)
  if (options) return { kind: 'choice', options }
  switch (schema.type) {
    case 'string':
      return textField(schema)
    case 'number':
    case 'integer':
      return {
        kind: 'number',
        isWhole: schema.type === 'integer',
        ...bounds(schema, 'minimum', 'maximum'),
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
export function startOf(field: Field, given?: unknown): Draft {
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

/** The choices of an enumeration, or of a union of constants. */
function optionsOf(schema: Readonly<Record<string, unknown>>): readonly JsonValue[] | undefined {
  if (Array.isArray(schema.enum)) return schema.enum as JsonValue[]
  const union = Array.isArray(schema.anyOf) ? schema.anyOf : schema.oneOf
  if (!Array.isArray(union) || !union.every((one): one is { const: JsonValue } => isObject(one) && 'const' in one))
    return undefined
  return union.map(one => one.const)
}

function textField(schema: Readonly<Record<string, unknown>>): Field {
  const input = INPUTS.get(schema.format) ?? 'text'
  const pattern = input === 'text' && typeof schema.pattern === 'string' ? { pattern: schema.pattern } : {}
  return { kind: 'text', input, ...bounds(schema, 'minLength', 'maxLength'), ...pattern }
}

/** Numeric bounds. Libraries add ±MAX_SAFE_INTEGER to integers, which is left out. */
function bounds(
  schema: Readonly<Record<string, unknown>>,
  least: string,
  most: string
): { min?: number; max?: number } {
  const isSet = (value: unknown): value is number =>
    typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER
  return { ...(isSet(schema[least]) && { min: schema[least] }), ...(isSet(schema[most]) && { max: schema[most] }) }
}

function isSimple({ kind }: Field): boolean {
  return kind === 'text' || kind === 'number' || kind === 'choice' || kind === 'boolean'
}

function membersOf(
  { required }: Readonly<Record<string, unknown>>,
  properties: Readonly<Record<string, unknown>>,
  depth: number
): Member[] {
  return Object.entries(properties).map(([name, schema]) => {
    const { title, description, default: given } = isObject(schema) ? schema : {}
    const field = fieldOf(schema, depth + 1)
    return {
      name,
      title: typeof title === 'string' ? title : name,
      description: typeof description === 'string' ? description : '',
      isRequired: Array.isArray(required) && required.includes(name),
      field,
      start: startOf(field, given)
    }
  })
}
