import { invalidParams } from '../machines/protocol/errors.ts'
import { moveIn } from '../machines/protocol/negotiation.ts'
import type { Message } from '../machines/protocol/parts.ts'
import type { Arrival } from '../machines/negotiation-events.ts'
import type { Negotiation } from './negotiation.ts'
import { checkedTerms } from './terms.ts'

/**
 * What a message is to a negotiation that lasts, beside its words. Throws InvalidParams, which names the field, for a move
 * that is none, and for terms that the agent's schema does not take.
 */
export function arrivalOf(message: Message, { terms }: Negotiation, atMs: number): Arrival {
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
