import * as z from 'zod'
import { REPORTED_ISSUES, complain, decodeMember, wanted } from './issues.ts'
import { isObject, isForbiddenName } from './json.ts'
import { flag, identifier, text, struct, type Schema, type Metadata } from './values.ts'

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

/** `simple` gives elements that need no more than a look, and `undefined` for all others. */
interface ListTerms<T> {
  readonly min?: 0 | 1
  readonly simple?: (element: unknown) => T | undefined
}

/**
 * A list whose elements follow one schema, of at least `min` elements (default 0).
 *
 * Our own loop, because the library's goes on after a bad element, and a list of a million bad ones would cost
 * a million reports; this one stops after 20.
 */
export function list<T>(element: Schema<T>, { min = 0, simple }: ListTerms<T> = {}): Schema<T[]> {
  const error = wanted(min === 0 ? 'a list' : 'a list of at least one')
  const array = z.array(z.unknown(), { error }).check(z.minLength(min, { error }))
  return z.pipe(array, z.transform((values: unknown[], context) => {
    // A copy to write to, and no empty list: the first `push` onto one makes room for 17, and most lists are of one. It is not used if an element is bad.
    const decoded = values.slice() as T[]
    for (let index = 0; index < values.length && context.issues.length < REPORTED_ISSUES; index += 1) {
      const value = simple?.(values[index]) ?? decodeMember(context, index, element, values[index])
      if (value !== undefined) decoded[index] = value
    }
    return decoded
  }))
}

/** A proto map: an object whose names are keys, kept as they are, and whose values follow one schema. */
export function map<T>(element: Schema<T>): Schema<Record<string, T>> {
  return z.pipe(struct, z.transform((members: Metadata, context) => {
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
  }))
}
