import { isObject, toJson } from '../../machines/protocol/codec/json.ts'
import { isStandardSchema, type StandardSchema } from '../ports/standard-schema.ts'

/**
 * JSON Schema (draft 2020-12) of a schema's input, if its library provides it (Standard JSON Schema: zod 4.2, arktype 2.1.28).
 * `undefined` if it does not, or if JSON Schema cannot express the schema.
 */
export function jsonSchemaOf(schema: StandardSchema<unknown>): Record<string, unknown> | undefined {
  try {
    const made = toJson(schema['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }) ?? null)
    return isObject(made) ? made : undefined
  } catch {
    return undefined
  }
}

/** Maximum size of a JSON Schema for clients, in bytes of its JSON text. */
const MOST_BYTES = 16 * 1024

const RULE = 'has to implement Standard Schema (standardschema.dev), as schemas of zod, valibot and arktype do'

/** Cache of the JSON Schemas that libraries made. */
const made = new WeakMap<object, Record<string, unknown> | undefined>()

/**
 * The JSON Schema that clients see: the author's, else the library's, if there is one. `names` has the names for errors. Throws
 * TypeError for an invalid schema, RangeError for a JSON Schema of more than 16 KiB.
 */
export function publishedSchema(
  given: {
    readonly schema?: StandardSchema<unknown> | undefined
    readonly jsonSchema?: Record<string, unknown> | undefined
  },
  names = { schema: 'schema', jsonSchema: 'jsonSchema' }
): Record<string, unknown> | undefined {
  const { schema, jsonSchema } = given
  if (schema === undefined) {
    if (jsonSchema !== undefined)
      throw new TypeError(`${names.jsonSchema} is only shown to clients. Add ${names.schema}, which validates.`)
    return undefined
  }
  if (!isStandardSchema(schema)) throw new TypeError(`${names.schema} ${RULE}.`)
  if (jsonSchema !== undefined) return bounded(plain(jsonSchema, names.jsonSchema), names)
  if (!made.has(schema)) made.set(schema, bounded(jsonSchemaOf(schema), names))
  return made.get(schema)
}

function bounded<T>(shown: T, names: { readonly schema: string; readonly jsonSchema: string }): T {
  const bytes = Buffer.byteLength(JSON.stringify(shown) ?? '')
  if (bytes <= MOST_BYTES) return shown
  throw new RangeError(
    `The JSON Schema of ${names.schema} has ${bytes} bytes, more than ${MOST_BYTES}. Give a shorter one, such as ${names.jsonSchema}: { type: 'object' }. The schema itself still validates everything.`
  )
}

function plain(jsonSchema: unknown, name: string): Record<string, unknown> {
  const wrong = new TypeError(`${name} has to be a JSON Schema, such as { type: 'string' }.`)
  if (!isObject(jsonSchema)) throw wrong
  try {
    return toJson(jsonSchema) as Record<string, unknown>
  } catch {
    throw wrong
  }
}
