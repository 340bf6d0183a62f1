import type { FieldViolation } from '../../machines/protocol/errors.ts'
import { ignoreRejection } from '../primitives/promises.ts'

/** What a schema makes of a value: the value as the schema gives it, or what is wrong with it. */
type SchemaResult<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] }
type SchemaIssue = { readonly message: string; readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined }

/** A schema of zod, valibot, arktype or any other library that keeps to Standard Schema (standardschema.dev). It has to validate without a promise. */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>
    /** What it takes, as JSON Schema, where the library tells that (Standard JSON Schema). */
    readonly jsonSchema?: { readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown> } | undefined
  }
}

/** How much of what is wrong is told. */
const REPORTED_VIOLATIONS = 20

/** The value as a schema gives it, or what is wrong with it, by the path below `field`. Throws TypeError for a schema that waits for a promise. */
export function validated<T>(schema: StandardSchema<T>, value: unknown, field: string): { readonly value: T } | { readonly violations: FieldViolation[] } {
  const result = schema['~standard'].validate(value)
  if ('then' in result) {
    // A check of zod that throws becomes a promise that rejects.
    void ignoreRejection(Promise.resolve(result))
    throw new TypeError(`The schema of ${field} has to validate at once: one that waits for a promise cannot be used.`)
  }
  if (!result.issues) return { value: result.value }
  return { violations: result.issues.slice(0, REPORTED_VIOLATIONS).map(({ message, path = [] }) => ({ field: [field, ...path.map(nameOf)].join('.'), description: message })) }
}

/** Whether a value is a schema that keeps to Standard Schema; some libraries' are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema<unknown> {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function') || !('~standard' in value)) return false
  const standard = value['~standard']
  return typeof standard === 'object' && standard !== null && 'validate' in standard && typeof standard.validate === 'function'
}

function nameOf(segment: PropertyKey | { readonly key: PropertyKey }): string {
  return String(typeof segment === 'object' ? segment.key : segment)
}
