import { isObject, type JsonValue } from '../../machines/protocol/codec/json.ts'
import type { Part } from '../../machines/protocol/objects.ts'

type Schema = Readonly<Record<string, unknown>>

/** The flat schema of a form elicitation. */
export interface FormSchema {
  readonly type: 'object'
  readonly properties: Readonly<Record<string, ElicitedField>>
  readonly required?: string[]
}

/** A field of a form: a string, a number, a boolean, one of several, or several of several. */
export type ElicitedField = { readonly type: 'string' | 'number' | 'integer' | 'boolean' | 'array' } & Schema

/** A question as a form. It is looser than the question's schema, and never stricter: that decides. */
export interface ElicitedForm {
  readonly schema: FormSchema
  /** The answer of a form that was accepted: the part for the agent's message. */
  readonly partOf: (content: Readonly<Record<string, unknown>>) => Part
}

/** Options of forms. */
export interface FormOptions {
  /** For hosts that show no numbers and no lists: these fields are strings. */
  readonly plain?: boolean | undefined
}

/** A field, with how its value becomes that of the question's schema. */
interface Field {
  readonly field: ElicitedField
  readonly parse: (value: unknown) => unknown
  /** Whether null is a value. Then the field is not required, and a missing one is null. */
  readonly isNullable: boolean
}

/** More fields become one of JSON. */
export const MOST_FIELDS = 24
/** Characters of a schema in the description of a field of JSON. */
const SHOWN_SCHEMA = 500
/** Schemas within schemas that are followed by `$ref`. */
const DEEPEST = 8
/** A reference into the definitions of the root. */
const REFERENCE = /^#\/(\$defs|definitions)\/([^/]+)$/
/** The formats of strings that forms have. */
const FORMATS: readonly unknown[] = ['email', 'uri', 'date', 'date-time']
/** Keywords that combine schemas. */
const COMBINED = ['anyOf', 'oneOf', 'allOf', 'not', 'if'] as const
/** The field of a question that is not an object. */
const ANSWER = 'answer'

/** The form of a question, from the JSON Schema of its answer. Without a schema it is a text. */
export function elicitedForm(schema: unknown, options: FormOptions = {}): ElicitedForm {
  if (!isObject(schema)) return textForm({ type: 'string', title: 'Answer' })
  const root = resolve(schema, schema)
  const properties = isPlainObject(root) ? Object.entries(root['properties'] as Schema) : undefined
  if (properties && properties.length <= MOST_FIELDS) return objectForm(root, properties, schema, options)
  const { field, parse, isNullable } = fieldOf(root, schema, options)
  return {
    schema: { type: 'object', properties: { [ANSWER]: field }, ...(!isNullable && { required: [ANSWER] }) },
    partOf: content => {
      const given = content[ANSWER]
      return { data: (given === undefined ? (isNullable ? null : '') : parse(given)) as JsonValue }
    }
  }
}

function textForm(field: ElicitedField): ElicitedForm {
  return {
    schema: { type: 'object', properties: { [ANSWER]: field }, required: [ANSWER] },
    partOf: content => ({ text: textOf(content[ANSWER]) })
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}

/** Whether a schema is an object of named properties and nothing else. */
function isPlainObject(schema: Schema): boolean {
  return schema['type'] === 'object' && isObject(schema['properties']) && COMBINED.every(name => !(name in schema))
}

function objectForm(
  { required = [] }: Schema,
  properties: readonly (readonly [string, unknown])[],
  root: Schema,
  options: FormOptions
): ElicitedForm {
  const fields = new Map(
    properties.map(([name, schema]) => [name, fieldOf(resolve(isObject(schema) ? schema : {}, root), root, options)])
  )
  const needed = (Array.isArray(required) ? required : []).filter(
    (name): name is string => typeof name === 'string' && fields.get(name)?.isNullable === false
  )
  return {
    schema: {
      type: 'object',
      properties: Object.fromEntries(Array.from(fields, ([name, { field }]) => [name, field])),
      ...(needed.length > 0 && { required: needed })
    },
    partOf: content => {
      const data: Record<string, unknown> = Object.fromEntries(
        Object.entries(content).map(([name, value]) => {
          const field = fields.get(name)
          return [name, field ? field.parse(value) : value]
        })
      )
      for (const [name, { isNullable }] of fields) if (isNullable && data[name] === undefined) data[name] = null
      return { data: data as JsonValue }
    }
  }
}

/** Follows `$ref` into the root's definitions, and takes a combination of one apart. */
function resolve(schema: Schema, root: Schema, depth = 0): Schema {
  const { $ref, ...own } = schema
  const [, place = '', name = ''] = typeof $ref === 'string' ? (REFERENCE.exec($ref) ?? []) : []
  if (place !== '' && depth < DEEPEST) {
    const named = root[place]
    const found = isObject(named) ? named[name] : undefined
    return isObject(found) ? resolve({ ...found, ...own }, root, depth + 1) : schema
  }
  for (const name of COMBINED) {
    const { [name]: combined, ...rest } = schema
    const [only] = Array.isArray(combined) && combined.length === 1 ? combined : []
    if (name !== 'not' && name !== 'if' && isObject(only)) return resolve({ ...only, ...rest }, root, depth + 1)
  }
  return schema
}

/** A field for any schema: of its kind, or of JSON. */
function fieldOf(given: Schema, root: Schema, options: FormOptions): Field {
  const { schema, isNullable } = withoutNull(given, root)
  const kind = choiceOf(schema) ?? numberOf(schema, options) ?? stringOf(schema) ?? listOf(schema, root, options)
  return { ...(kind ?? jsonOf(schema)), isNullable }
}

/** A schema without null among its types. */
function withoutNull(schema: Schema, root: Schema): { readonly schema: Schema; readonly isNullable: boolean } {
  const { type, nullable, ...rest } = schema
  if (Array.isArray(type) && type.includes('null')) {
    const types = type.filter(name => name !== 'null')
    return { schema: { ...rest, type: types.length === 1 ? types[0] : types }, isNullable: true }
  }
  for (const name of ['anyOf', 'oneOf'] as const) {
    const { [name]: kinds, ...others } = schema
    if (!Array.isArray(kinds)) continue
    const left = kinds.filter(kind => !(isObject(kind) && kind['type'] === 'null'))
    if (left.length === kinds.length) continue
    return { schema: resolve({ ...others, [name]: left }, root), isNullable: true }
  }
  return { schema, isNullable: nullable === true }
}

type Kind = Omit<Field, 'isNullable'>

/** The labels and the default of a field. `notes`: rules of its schema that a form cannot express. */
function labelsOf({ title, description, default: preset }: Schema, notes: readonly string[] = []): Schema {
  const words = [typeof description === 'string' ? description : '', ...notes].filter(words => words !== '').join(' ')
  return {
    ...(typeof title === 'string' && { title }),
    ...(words !== '' && { description: words }),
    ...(['string', 'number', 'boolean'].includes(typeof preset) && { default: preset })
  }
}

/** One of several values: strings. Other values are turned back. */
function choiceOf(schema: Schema): Kind | undefined {
  const values = valuesOf(schema)
  if (!values) return undefined
  const texts = values.map(value => textOf(value))
  const { default: preset, ...labels } = labelsOf(schema)
  return {
    field: { type: 'string', ...labels, ...(preset !== undefined && { default: textOf(preset) }), enum: texts },
    parse: value => (typeof value === 'string' && texts.includes(value) ? values[texts.indexOf(value)] : value)
  }
}

/** The values that a schema allows: of `enum`, of `const`, or of alternatives that are constants. */
function valuesOf(schema: Schema): readonly unknown[] | undefined {
  if ('const' in schema) return [schema['const']]
  if (Array.isArray(schema['enum'])) return schema['enum'].length > 0 ? schema['enum'] : undefined
  const kinds: unknown = schema['anyOf'] ?? schema['oneOf']
  if (!Array.isArray(kinds) || kinds.length === 0) return undefined
  const values = kinds.map(kind => (isObject(kind) ? valuesOf(kind) : undefined))
  return values.every(value => value !== undefined) ? values.flat() : undefined
}

function numberOf(schema: Schema, { plain }: FormOptions): Kind | undefined {
  const { type, minimum, maximum, exclusiveMinimum: above, exclusiveMaximum: below, multipleOf } = schema
  if (type === 'boolean') return { field: { type, ...labelsOf(schema) }, parse: unchanged }
  if (type !== 'number' && type !== 'integer') return undefined
  const isWhole = type === 'integer'
  const least = boundOf(minimum) ?? boundOf(isWhole && typeof above === 'number' ? Math.floor(above) + 1 : undefined)
  const most = boundOf(maximum) ?? boundOf(isWhole && typeof below === 'number' ? Math.ceil(below) - 1 : undefined)
  const notes = [
    ...(!isWhole && typeof above === 'number' ? [`More than ${above}.`] : []),
    ...(!isWhole && typeof below === 'number' ? [`Less than ${below}.`] : []),
    ...(typeof multipleOf === 'number' ? [`A multiple of ${multipleOf}.`] : [])
  ]
  if (plain) {
    const range = [least === undefined ? '' : `At least ${least}.`, most === undefined ? '' : `At most ${most}.`]
    const { default: preset, ...labels } = labelsOf(schema, ['A number.', ...range, ...notes])
    return {
      field: { type: 'string', ...labels, ...(preset !== undefined && { default: textOf(preset) }) },
      parse: parseJson
    }
  }
  return {
    field: {
      type,
      ...labelsOf(schema, notes),
      ...(least !== undefined && { minimum: least }),
      ...(most !== undefined && { maximum: most })
    },
    parse: unchanged
  }
}

/** A bound that says something: libraries add those of safe integers. */
function boundOf(bound: unknown): number | undefined {
  return typeof bound === 'number' && Math.abs(bound) < Number.MAX_SAFE_INTEGER ? bound : undefined
}

function stringOf(schema: Schema): Kind | undefined {
  const { type, minLength, maxLength, pattern, format } = schema
  if (type !== 'string') return undefined
  const isFormat = FORMATS.includes(format)
  const notes = [
    // Libraries add a pattern to the formats that they check.
    ...(typeof pattern === 'string' && !isFormat ? [`Matches ${pattern}.`] : []),
    ...(typeof format === 'string' && !isFormat ? [`Format: ${format}.`] : [])
  ]
  return {
    field: {
      type,
      ...labelsOf(schema, notes),
      ...(typeof minLength === 'number' && { minLength }),
      ...(typeof maxLength === 'number' && { maxLength }),
      ...(isFormat && { format })
    },
    parse: unchanged
  }
}

/** Several of several strings. */
function listOf(schema: Schema, root: Schema, { plain }: FormOptions): Kind | undefined {
  const { type, items, minItems, maxItems } = schema
  const values = type === 'array' && isObject(items) && !plain ? valuesOf(resolve(items, root)) : undefined
  if (!values?.every(value => typeof value === 'string')) return undefined
  return {
    field: {
      type: 'array',
      ...labelsOf(schema),
      items: { type: 'string', enum: values },
      ...(typeof minItems === 'number' && { minItems }),
      ...(typeof maxItems === 'number' && { maxItems })
    },
    parse: unchanged
  }
}

/** A field for what no other can say: a string with JSON. */
function jsonOf(schema: Schema): Kind {
  const { title, description, default: _, ...rest } = schema
  const shown = JSON.stringify(rest)
  const short = shown.length > SHOWN_SCHEMA ? `${shown.slice(0, SHOWN_SCHEMA)}…` : shown
  return {
    field: { type: 'string', ...labelsOf({ title, description }, [`As JSON: ${short}`]) },
    parse: parseJson
  }
}

/** The value of JSON text. Other text stays: the question's schema refuses it, or accepts it. */
function unchanged(value: unknown): unknown {
  return value
}

function parseJson(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}
