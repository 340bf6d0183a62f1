import { A2AError, type FieldViolation } from '../errors.ts'
import { compiled } from './compiled.ts'
import { pathText } from './paths.ts'
import type { Schema } from './values.ts'

/** Result of `tryDecode`: the canonical value, or violations, one per field. */
export type Decoded<T> =
  | { readonly value: T; readonly violations?: never }
  | { readonly value?: never; readonly violations: FieldViolation[] }

const REPORTED_VIOLATIONS = 20

/**
 * Decodes parsed JSON by a schema into canonical form, as ProtoJSON does (§5.7).
 *
 * Accepts snake_case names, enum numbers, either base64 alphabet, any UTC offset, int32 as text and null for absent. Drops
 * unknown members and default values of fields without presence. The contents of `metadata`, `data`, `params` and `header` are
 * neither copied nor checked, so call `checkJson` before. Throws InvalidParams with a violation for each invalid field, at most
 * 20, with paths below `root`.
 */
export function decode<T>(schema: Schema<T>, value: unknown, root = ''): T {
  const decoded = tryDecode(schema, value, root)
  if (decoded.violations === undefined) return decoded.value
  throw new A2AError('InvalidParams', summary(decoded.violations), { violations: decoded.violations })
}

/** Like `decode`, but returns violations instead of throwing. */
export function tryDecode<T>(schema: Schema<T>, value: unknown, root = ''): Decoded<T> {
  const result = compiled(schema).safeParse(value)
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
