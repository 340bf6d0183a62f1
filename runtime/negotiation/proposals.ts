import type { Arrival, Terms } from '../../machines/negotiation-events.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { invalidParams, type FieldViolation } from '../../machines/protocol/errors.ts'
import { moveIn } from '../../machines/protocol/negotiation.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { keptValue } from '../authoring/checked-words.ts'
import { validated, type StandardSchema } from '../ports/standard-schema.ts'
import type { Negotiation } from './negotiation.ts'

/**
 * Parses terms with their schema, and copies them through JSON. Gives violations with paths below `field`. Throws TypeError if the
 * schema is asynchronous or gives no object, InvalidAgentResponse if it gives values that JSON cannot express.
 */
export function checkedTerms(
  schema: StandardSchema<unknown>,
  terms: unknown,
  field: string
): { readonly value: Terms } | { readonly violations: FieldViolation[] } {
  const checked = validated(schema, terms, field)
  if ('violations' in checked) return checked
  if (!isObject(checked.value))
    throw new TypeError(`The schema of the terms has to give an object, as z.object({ … }) does.`)
  return { value: keptValue(checked.value, field) }
}

/**
 * Reads the move of a message to a lasting negotiation. Throws InvalidParams that names the field, for an invalid move and for terms
 * that the agent's schema does not accept.
 */
export function readProposal(message: Message, { terms }: Negotiation, atMs: number): Arrival {
  const found = moveIn(message)
  if (!found) return { atMs }
  if (found.violations) throw invalidParams(...found.violations)
  const { name, value: move } = found
  if ('accept' in move) return { atMs, accepts: move.accept.offerId }
  if ('decline' in move) return { atMs, declines: move.decline.offerId }
  const checked = checkedTerms(terms, move.propose.terms, `${name}.propose.terms`)
  if ('violations' in checked) throw invalidParams(...checked.violations)
  return { atMs, proposes: checked.value }
}
