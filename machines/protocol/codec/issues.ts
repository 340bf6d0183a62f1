import type * as z from 'zod'
import { compiled } from './compiled.ts'
import type { Schema } from './values.ts'

/** Maximum number of invalid elements reported for one list or map. Elements after them are not checked. */
export const REPORTED_ISSUES = 20

/** Text of a violation: what is required, and whether the field was missing. */
export function wanted(what: string): (issue: { readonly input?: unknown }) => string {
  return issue => (issue.input === undefined ? `is required and must be ${what}` : `must be ${what}`)
}

/** Adds a violation at `path` below the value that is being decoded. */
export function complain(context: z.core.ParsePayload, path: PropertyKey[], message: string): void {
  context.issues.push({ code: 'custom', path, message, input: context.value })
}

/** Decodes one member of `context`'s value. If it is invalid, adds its violations below `step` and gives `undefined`. */
export function decodeMember<T>(
  context: z.core.ParsePayload,
  step: PropertyKey,
  schema: Schema<T>,
  value: unknown
): T | undefined {
  const result = compiled(schema).safeParse(value)
  if (result.success) return result.data
  for (const issue of result.error.issues) complain(context, [step, ...issue.path], issue.message)
  return undefined
}
