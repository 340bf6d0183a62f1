import * as z from 'zod'
import { REPORTED_ISSUES, complain, decodeMember, wanted } from './issues.ts'
import { isForbiddenName } from './json.ts'
import { struct, type Metadata, type Schema } from './values.ts'

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
