import type { FieldViolation } from '../../machines/protocol/errors.ts'
import { ignoreRejection } from '../primitives/event-loop.ts'

/** Result of a schema: its output, or issues. */
type SchemaResult<T> = { readonly value: T; readonly issues?: undefined } | { readonly issues: readonly SchemaIssue[] }
type SchemaIssue = {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/**
 * A schema of zod, valibot, arktype or any other library that implements Standard Schema (standardschema.dev). It has
 * to validate synchronously.
 */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<T> | Promise<SchemaResult<T>>
    /** JSON Schema of its input, if the library provides it (Standard JSON Schema). */
    readonly jsonSchema?:
      | { readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown> }
      | undefined
  }
}

const REPORTED_VIOLATIONS = 20

/**
 * The output of a schema, or at most 20 violations with paths below `field`. Throws TypeError for an asynchronous
 * schema.
 */
export function validateValue<T>(
  schema: StandardSchema<T>,
  value: unknown,
  field: string
): { readonly value: T } | { readonly violations: FieldViolation[] } {
  const result = schema['~standard'].validate(value)
  if ('then' in result) {
    // If a check throws, zod gives a promise that rejects.
    void ignoreRejection(Promise.resolve(result))
    throw new TypeError(`The schema of ${field} has to validate synchronously. Remove its asynchronous checks.`)
  }
  if (!result.issues) return { value: result.value }
  return {
    violations: result.issues
      .slice(0, REPORTED_VIOLATIONS)
      .map(({ message, path = [] }) => ({ field: [field, ...path.map(nameOf)].join('.'), description: message }))
  }
}

/** Whether a value implements Standard Schema. Schemas of some libraries are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema<unknown> {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function') || !('~standard' in value))
    return false
  const standard = value['~standard']
  return (
    typeof standard === 'object' &&
    standard !== null &&
    'validate' in standard &&
    typeof standard.validate === 'function'
  )
}

function nameOf(segment: PropertyKey | { readonly key: PropertyKey }): string {
  return String(typeof segment === 'object' ? segment.key : segment)
}
