import * as z from 'zod'
import { REPORTED_ISSUES, complain, decodeMember, requirementText, type Schema } from './decode.ts'
import { isObject, isForbiddenName } from './json.ts'
import { flag, identifier, anyString, struct, type Metadata } from './values.ts'

/**
 * One field of a message: the schema of its value, and its presence (ProtoJSON, §5.7).
 *
 * `isAbsent` says which wire values count as absent; `fill` gives the value of a REQUIRED field that may be empty and
 * is absent.
 */
export interface FieldDefinition<T, Optional extends boolean = boolean> {
  readonly schema: Schema<T>
  readonly optional: Optional
  readonly isAbsent: (value: unknown) => boolean
  readonly fill?: () => T
}

/** A required field. */
export function requiredField<T>(schema: Schema<T>): FieldDefinition<T, false> {
  return { schema, optional: false, isAbsent: isNull }
}

/** A required field for which null is a value. */
export function nullableField<T>(schema: Schema<T>): FieldDefinition<T, false> {
  return { schema, optional: false, isAbsent: value => value === undefined }
}

/**
 * A REQUIRED field that may be empty. If absent, it decodes to `fill()`, because a proto cannot distinguish absent from
 * empty.
 */
export function defaultField<T>(schema: Schema<T>, fill: () => T): FieldDefinition<T, false> {
  return { schema, optional: false, isAbsent: isNull, fill }
}

/** A field with explicit presence: a default value that is given is kept. */
export function presenceField<T>(schema: Schema<T>): FieldDefinition<T, true> {
  return { schema, optional: true, isAbsent: isNull }
}

/** A field without presence: its default value counts as absent. */
export function optionalField<T>(schema: Schema<T>, isDefault: (value: unknown) => boolean): FieldDefinition<T, true> {
  return { schema, optional: true, isAbsent: value => isNull(value) || isDefault(value) }
}

/** An optional string; empty counts as absent. */
export const optionalText = optionalField(anyString, isEmptyText)

/** An optional id; empty counts as absent. */
export const optionalId = optionalField(identifier, isEmptyText)

/** An optional boolean; false counts as absent. */
export const optionalFlag = optionalField(flag, value => value === false)

/** An optional list; empty counts as absent. */
export function optionalList<T>(element: Schema<T>): FieldDefinition<T[], true> {
  return optionalField(list(element), value => Array.isArray(value) && value.length === 0)
}

/** An optional map; empty counts as absent. */
export function optionalMap<T>(element: Schema<T>): FieldDefinition<Record<string, T>, true> {
  return optionalField(map(element), value => isObject(value) && Object.keys(value).length === 0)
}

/** A REQUIRED string that may be empty. */
export const defaultText = defaultField(anyString, () => '')

/** A REQUIRED list that may be empty. */
export function defaultList<T>(element: Schema<T>): FieldDefinition<T[], false> {
  return defaultField(list(element), () => [])
}

function isNull(value: unknown): boolean {
  return value === null || value === undefined
}

function isEmptyText(value: unknown): boolean {
  return value === ''
}

/** `simple` is a fast path: it gives `undefined` for elements that need the schema. */
interface ListTerms<T> {
  readonly min?: 0 | 1
  readonly simple?: (element: unknown) => T | undefined
}

/**
 * A list of at least `min` elements (default 0) that follow one schema.
 *
 * It stops after 20 invalid elements. zod's own loop would report a million errors for a million invalid elements.
 */
export function list<T>(element: Schema<T>, { min = 0, simple }: ListTerms<T> = {}): Schema<T[]> {
  const error = requirementText(min === 0 ? 'a list' : 'a list of at least one')
  const array = z.array(z.unknown(), { error }).check(z.minLength(min, { error }))
  return z.pipe(
    array,
    z.transform((values: unknown[], context) => {
      // A copy has the exact capacity. The first `push` onto an empty list reserves 17 elements, and most lists have
      // one.
      const decoded = values.slice() as T[]
      for (let index = 0; index < values.length && context.issues.length < REPORTED_ISSUES; index += 1) {
        const value = simple?.(values[index]) ?? decodeMember(context, index, element, values[index])
        if (value !== undefined) decoded[index] = value
      }
      return decoded
    })
  )
}

/** A proto map: an object with arbitrary keys, whose values follow one schema. */
export function map<T>(element: Schema<T>): Schema<Record<string, T>> {
  return z.pipe(
    struct,
    z.transform((members: Metadata, context) => {
      const decoded: Record<string, T> = {}
      for (const [name, member] of Object.entries(members)) {
        if (context.issues.length >= REPORTED_ISSUES) break
        if (isForbiddenName(name)) complain(context, [name], 'must not have this name')
        else {
          const value = decodeMember(context, name, element, member)
          if (value !== undefined) decoded[name] = value
        }
      }
      return decoded
    })
  )
}
