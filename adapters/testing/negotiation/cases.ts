import { NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import { accepted, declined, offer, rejected, reply, type Words } from '../../../runtime/authoring/words.ts'
import type { Negotiation } from '../../../runtime/negotiation/negotiation.ts'
import { checkedTerms } from '../../../runtime/negotiation/proposals.ts'
import type { ByName } from '../plan/cases.ts'
import type { BargainMove, Response } from './moves.ts'

/** The inputs of a negotiation. */
export interface BargainCases {
  /** Free text that the client may send. */
  readonly requests: ByName<Words>
  /** Terms that both sides may propose. */
  readonly terms: ByName<object>
  /** The results of `respond`. Default: every kind of answer, with these terms, and an error. */
  readonly responses?: ByName<unknown> | undefined
}

/** The answers that `respond` may give. */
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

/** The moves of the client that need no offer. */
export function requestsOf({ requests, terms }: BargainCases, { terms: schema }: Negotiation): BargainMove[] {
  const said = Object.entries(requests).map(([name, words]): BargainMove => ({ type: 'words', name, words }))
  const all = Object.entries({ ...terms, 'what are no terms': { [NEGOTIATION_EXTENSION]: 'no terms' } })
  const proposed = all.map(([name, terms]): BargainMove => {
    const checked = checkedTerms(schema, terms, 'terms')
    return { type: 'proposal', name, terms, ...('value' in checked && { taken: checked.value }) }
  })
  return [...said, ...proposed, { type: 'accept', isStanding: false }]
}
