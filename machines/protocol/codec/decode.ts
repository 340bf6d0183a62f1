import * as z from 'zod'
import { A2AError, type FieldViolation } from '../errors.ts'

/** Result of `tryDecode`: the canonical value, or violations, one per field. */
export type Decoded<T> =
  | { readonly value: T; readonly violations?: never }
  | { readonly value?: never; readonly violations: FieldViolation[] }

const REPORTED_VIOLATIONS = 20

/**
 * Decodes parsed JSON by a schema into canonical form, as ProtoJSON does (§5.7).
 *
 * Accepts snake_case names, enum numbers, either base64 alphabet, any UTC offset, int32 as text and null for absent.
 * Drops unknown members and default values of fields without presence. The contents of `metadata`, `data`, `params` and
 * `header` are neither copied nor checked, so call `checkJson` before. Throws InvalidParams with a violation for each
 * invalid field, at most 20, with paths below `root`.
 */
export function decode<T>(schema: Schema<T>, value: unknown, root = ''): T {
  const decoded = tryDecode(schema, value, root)
  if (decoded.violations === undefined) return decoded.value
  throw new A2AError('InvalidParams', summary(decoded.violations), { violations: decoded.violations })
}

/** Like `decode`, but returns violations instead of throwing. */
export function tryDecode<T>(schema: Schema<T>, value: unknown, root = ''): Decoded<T> {
  const result = compileSchema(schema).safeParse(value)
  if (result.success) return { value: result.data }
  const issues = result.error.issues.slice(0, REPORTED_VIOLATIONS)
  return {
    violations: issues.map(({ path, message }) => ({ field: pathText(root, path) || 'params', description: message }))
  }
}

function summary(violations: readonly FieldViolation[]): string {
  const [first] = violations
  const more = violations.length > 1 ? ` (and ${violations.length - 1} more)` : ''
  return `Invalid parameters: ${first?.field} ${first?.description}${more}`
}

const COMPILED = new WeakMap<Schema<unknown>, Schema<unknown>>()

/**
 * Compiles a schema on first use, which takes a few milliseconds and halves the time of a decode. If code generation
 * fails, the schema stays as it is. With zod's `jitless`, it is not tried, because browsers would report the attempt.
 */
export function compileSchema<T>(schema: Schema<T>): Schema<T>
export function compileSchema(schema: Schema<unknown>): Schema<unknown> {
  const known = COMPILED.get(schema)
  if (known !== undefined) return known
  const made = z.config().jitless ? schema : z.compile(schema)
  COMPILED.set(schema, made)
  return made
}

/** Maximum number of invalid elements reported for one list or map. Elements after them are not checked. */
export const REPORTED_ISSUES = 20

/** Text of a violation: what is required, and whether the field was missing. */
export function requirementText(what: string): (issue: { readonly input?: unknown }) => string {
  return issue => (issue.input === undefined ? `is required and must be ${what}` : `must be ${what}`)
}

/** Adds a violation at `path` below the value that is being decoded. */
export function complain(context: z.core.ParsePayload, path: PropertyKey[], message: string): void {
  context.issues.push({ code: 'custom', path, message, input: context.value })
}

/**
 * Decodes one member of `context`'s value. If it is invalid, adds its violations below `step` and gives `undefined`.
 */
export function decodeMember<T>(
  context: z.core.ParsePayload,
  step: PropertyKey,
  schema: Schema<T>,
  value: unknown
): T | undefined {
  const result = compileSchema(schema).safeParse(value)
  if (result.success) return result.data
  for (const issue of result.error.issues) complain(context, [step, ...issue.path], issue.message)
  return undefined
}

const LONGEST = 200
const PLAIN_NAME = /^[A-Za-z_$][\w$-]{0,99}$/

/**
 * Formats the path of a value, as in `params.message.parts[0].text`. Names that are not identifiers are quoted, as in
 * `metadata["urn:example"]`. Text over 200 characters is truncated with `…`. An empty root is omitted.
 */
export function pathText(root: string, path: readonly PropertyKey[]): string {
  let text = root
  for (const step of path) {
    if (text.length > LONGEST) break
    text += segment(step, text === '')
  }
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text
}

function segment(step: PropertyKey, first: boolean): string {
  if (typeof step === 'number') return `[${step}]`
  const name = String(step)
  if (!PLAIN_NAME.test(name)) return `[${JSON.stringify(name.slice(0, LONGEST))}]`
  return first ? name : `.${name}`
}

/** Validates one kind of value and gives its canonical form. Every type of the protocol is inferred from a schema. */
export type Schema<T> = z.ZodType<T>
