import type * as z from 'zod'
import { compiled } from './compiled.ts'
import type { Schema } from './values.ts'

/** How many bad elements of one list or map are reported; what follows them is not looked at. */
export const REPORTED_ISSUES = 20

/** Words a violation by what is wanted, and says so when the field was not there at all. */
export function wanted(what: string): (issue: { readonly input?: unknown }) => string {
  return issue => (issue.input === undefined ? `is required and must be ${what}` : `must be ${what}`)
}

/** Adds a violation found by our own code, at `path` below the value that is being decoded. */
export function complain(context: z.core.ParsePayload, path: PropertyKey[], message: string): void {
  context.issues.push({ code: 'custom', path, message, input: context.value })
}

/** Decodes one member of `context`'s value; what is wrong with it is added there, below `step`, and gives `undefined`. */
export function decodeMember<T>(context: z.core.ParsePayload, step: PropertyKey, schema: Schema<T>, value: unknown): T | undefined {
  const result = compiled(schema).safeParse(value)
  if (result.success) return result.data
  for (const issue of result.error.issues) complain(context, [step, ...issue.path], issue.message)
  return undefined
}
