import { isObject, toJson } from '../../machines/protocol/codec/json.ts'
import { isStandardSchema, type StandardSchema } from '../ports/standard-schema.ts'

/**
 * The JSON Schema (draft 2020-12) of what a schema takes, where its library gives one (Standard JSON Schema: zod 4.2,
 * arktype 2.1.28). `undefined` if it gives none, or cannot say in JSON Schema what it takes.
 */
export function jsonSchemaOf(schema: StandardSchema<unknown>): Record<string, unknown> | undefined {
  try {
    const made = toJson(schema['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }) ?? null)
    return isObject(made) ? made : undefined
  } catch {
    return undefined
  }
}

/** How large a JSON Schema may be that is shown to clients, in bytes of its JSON text. */
const MOST_BYTES = 16 * 1024

const RULE = 'has to be a schema of Standard Schema (standardschema.dev), as those of zod, valibot and arktype are'

/** What libraries gave for their schemas, so that they are asked once. */
const made = new WeakMap<object, Record<string, unknown> | undefined>()

/**
 * The JSON Schema by which clients see what a schema takes: the author's, else the library's, if it has one. `schema` and
 * `jsonSchema` are what they are called in errors. Throws TypeError for what is no schema, RangeError for a JSON Schema of
 * more than 16 KiB.
 */
export function publishedSchema(
  given: { readonly schema?: StandardSchema<unknown> | undefined; readonly jsonSchema?: Record<string, unknown> | undefined },
  names = { schema: 'schema', jsonSchema: 'jsonSchema' }
): Record<string, unknown> | undefined {
  const { schema, jsonSchema } = given
  if (schema === undefined) {
    if (jsonSchema !== undefined) throw new TypeError(`${names.jsonSchema} only shows what is wanted: give the ${names.schema} that checks it, too.`)
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
  throw new RangeError(`The JSON Schema of ${names.schema} has ${bytes} bytes, of ${MOST_BYTES} at the most. Say it shorter, as ${names.jsonSchema}: { type: 'object' }, say; what it leaves out is checked all the same.`)
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
