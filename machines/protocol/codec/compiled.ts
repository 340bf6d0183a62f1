import * as z from 'zod'
import type { Schema } from './values.ts'

const COMPILED = new WeakMap<Schema<unknown>, Schema<unknown>>()

/**
 * Gives the same schema with its checks generated as code on first use, which halves the time of a decode and
 * costs a few milliseconds once. Where code generation is forbidden, the schema works on as it was; where zod is told so
 * (`jitless`), nothing is tried, which browsers would report.
 */
export function compiled<T>(schema: Schema<T>): Schema<T>
export function compiled(schema: Schema<unknown>): Schema<unknown> {
  const known = COMPILED.get(schema)
  if (known !== undefined) return known
  const made = z.config().jitless ? schema : z.compile(schema)
  COMPILED.set(schema, made)
  return made
}
