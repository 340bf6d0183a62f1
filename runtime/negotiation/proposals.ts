import type { Arrival, Terms } from '../../machines/negotiation-events.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { invalidParams, type FieldViolation } from '../../machines/protocol/errors.ts'
import { moveIn } from '../../machines/protocol/negotiation.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { plainValue } from '../authoring/checked-words.ts'
import { validated, type StandardSchema } from '../ports/standard-schema.ts'
import type { Negotiation } from './negotiation.ts'

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

/**
 * What a message is to a negotiation that lasts, beside its words. Throws InvalidParams, which names the field, for a move
 * that is none, and for terms that the agent's schema does not take.
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
