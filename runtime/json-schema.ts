import { isObject } from '../machines/protocol/json.ts'
import type { StandardSchema } from './standard-schema.ts'

/**
 * The JSON Schema (draft 2020-12) of what a schema takes, where its library gives one (Standard JSON Schema: zod 4.2,
 * arktype 2.1.28). `undefined` if it gives none, or cannot say in JSON Schema what it takes.
 */
export function jsonSchemaOf(schema: StandardSchema<unknown>): Record<string, unknown> | undefined {
  try {
    const made: unknown = JSON.parse(JSON.stringify(schema['~standard'].jsonSchema?.input({ target: 'draft-2020-12' }) ?? null))
    return isObject(made) ? made : undefined
  } catch {
    return undefined
  }
}
