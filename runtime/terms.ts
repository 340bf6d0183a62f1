import type { FieldViolation } from '../machines/protocol/errors.ts'
import { isObject } from '../machines/protocol/json.ts'
import type { Terms } from '../machines/negotiation-events.ts'
import { plainValue } from './outcomes.ts'
import { validated, type StandardSchema } from './standard-schema.ts'

/**
 * Terms as their schema gives them, as JSON, or what is wrong with them, by the path below `field`. Throws TypeError for a
 * schema that gives no object or wants to wait, InvalidAgentResponse for one that gives what JSON cannot hold.
 */
export function checkedTerms(schema: StandardSchema<unknown>, terms: unknown, field: string): { readonly value: Terms } | { readonly violations: FieldViolation[] } {
  const checked = validated(schema, terms, field)
  if ('violations' in checked) return checked
  if (!isObject(checked.value)) throw new TypeError(`The schema of the terms has to give an object, as z.object({ … }) does.`)
  return { value: plainValue(checked.value, field) }
}
