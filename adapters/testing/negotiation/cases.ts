import { NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import { accepted, declined, offer, rejected, reply, type Words } from '../../../runtime/authoring/words.ts'
import type { Negotiation } from '../../../runtime/negotiation/negotiation.ts'
import { checkedTerms } from '../../../runtime/negotiation/proposals.ts'
import type { ByName } from '../plan/cases.ts'
import type { BargainMove, Response } from './moves.ts'

/** What may come in a negotiation. */
export interface BargainCases {
  /** What the client may say in free words. */
  readonly requests: ByName<Words>
  /** What both sides may propose. */
  readonly terms: ByName<object>
  /** How `respond` may end. Default: what it may answer, with these terms, and an error. */
  readonly responses?: ByName<unknown> | undefined
}

/** Everything that `respond` may answer. */
export function responsesOf({ terms, responses }: BargainCases): ByName<Response> {
  if (responses) return responses as ByName<Response>
  const [first = {}, second = first] = Object.values(terms)
  return {
    'an offer': offer(first, { message: 'That much.' }),
    'accepted, on its own terms': accepted(second),
    accepted: accepted(),
    declined: declined('No, thank you.'),
    'a reply': reply('What do you mean?'),
    rejected: rejected('Not with you.'),
    'an error': new Error('It fails, as its test wants it.')
  }
}

/** What the client may do that needs no offer. */
export function requestsOf({ requests, terms }: BargainCases, { terms: schema }: Negotiation): BargainMove[] {
  const said = Object.entries(requests).map(([name, words]): BargainMove => ({ type: 'words', name, words }))
  const all = Object.entries({ ...terms, 'what are no terms': { [NEGOTIATION_EXTENSION]: 'no terms' } })
  const proposed = all.map(([name, terms]): BargainMove => {
    const checked = checkedTerms(schema, terms, 'terms')
    return { type: 'proposal', name, terms, ...('value' in checked && { taken: checked.value }) }
  })
  return [...said, ...proposed, { type: 'accept', isStanding: false }]
}
