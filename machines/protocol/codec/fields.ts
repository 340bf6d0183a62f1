import { list, map } from './collections.ts'
import { isObject } from './json.ts'
import { flag, identifier, text, type Schema } from './values.ts'

/**
 * One field of a message: the schema of its value, and what its presence means (ProtoJSON, §5.7).
 *
 * `isAbsent` says which values on the wire mean that the field is not there; `fill` gives the value of a
 * REQUIRED field that may be empty and was left out.
 */
export interface Field<T, Optional extends boolean = boolean> {
  readonly schema: Schema<T>
  readonly optional: Optional
  readonly isAbsent: (value: unknown) => boolean
  readonly fill?: () => T
}

/** A field that must be there. */
export function required<T>(schema: Schema<T>): Field<T, false> {
  return { schema, optional: false, isAbsent: isNull }
}

/** A required field for which null is a value. */
export function requiredOrNull<T>(schema: Schema<T>): Field<T, false> {
  return { schema, optional: false, isAbsent: value => value === undefined }
}

/** A REQUIRED field that may be empty: left out, it comes out as `fill()`, since a proto cannot tell these apart. */
export function filled<T>(schema: Schema<T>, fill: () => T): Field<T, false> {
  return { schema, optional: false, isAbsent: isNull, fill }
}

/** A field with explicit presence: left out or given, and kept even with its default value. */
export function present<T>(schema: Schema<T>): Field<T, true> {
  return { schema, optional: true, isAbsent: isNull }
}

/** A field without presence: its default value means that it is not there. */
export function optional<T>(schema: Schema<T>, isDefault: (value: unknown) => boolean): Field<T, true> {
  return { schema, optional: true, isAbsent: value => isNull(value) || isDefault(value) }
}

/** A string that may be left out; empty is left out. */
export const optionalText = optional(text, isEmptyText)

/** An id that may be left out; empty is left out. */
export const optionalId = optional(identifier, isEmptyText)

/** A boolean that may be left out; false is left out. */
export const optionalFlag = optional(flag, value => value === false)

/** A list that may be left out; empty is left out. */
export function optionalList<T>(element: Schema<T>): Field<T[], true> {
  return optional(list(element), value => Array.isArray(value) && value.length === 0)
}

/** A map that may be left out; empty is left out. */
export function optionalMap<T>(element: Schema<T>): Field<Record<string, T>, true> {
  return optional(map(element), value => isObject(value) && Object.keys(value).length === 0)
}

/** A REQUIRED string that may be empty. */
export const filledText = filled(text, () => '')

/** A REQUIRED list that may be empty. */
export function filledList<T>(element: Schema<T>): Field<T[], false> {
  return filled(list(element), () => [])
}

function isNull(value: unknown): boolean {
  return value === null || value === undefined
}

function isEmptyText(value: unknown): boolean {
  return value === ''
}
