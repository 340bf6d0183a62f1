import type { AnyActorLogic, Snapshot } from 'xstate'
import type {
  Matter,
  NegotiationFact,
  Opinion,
  StandingOffer,
  NegotiationTerms
} from '../../machines/negotiation-events.ts'
import { negotiationMachine, type NegotiationContext } from '../../machines/negotiation.machine.ts'
import { A2AError, violationsText } from '../../machines/protocol/errors.ts'
import { messageOf, wordOf } from '../authoring/checked-words.ts'
import { type ActorHost, deferEffects, hostOf, withScope } from '../commits/actor-host.ts'
import { compileMachine } from '../xstate/compiled-machine.ts'
import { promiseLogic } from '../xstate/library.ts'
import { withOwnContext } from '../xstate/persisted-snapshot.ts'
import { checkedTerms, type Negotiation } from './negotiation.ts'
import { answering } from './per-message.ts'
import { chartAnswer } from './respond-chart.ts'

/** A lasting negotiation as the actor `bargaining` of a context. Its decisions are sent to the context. */
export function negotiationChart(negotiation: Negotiation): AnyActorLogic {
  const { respond: given } = negotiation
  const own: Negotiation =
    typeof given === 'function' ? negotiation : { ...negotiation, respond: withOwnContext(given) }
  const respond = deferEffects(
    promiseLogic<Opinion, Matter>(({ input, signal, system }) => opinion(own, input, hostOf(system), signal))
  )
  const machine = compileMachine(negotiationMachine.provide({ actors: { respond } }))
  const logic = withScope(machine, {
    emit: ({ system }, fact) =>
      hostOf(system).send({ type: 'request.decided', output: (fact as NegotiationFact).outcome })
  })
  return {
    ...logic,
    restoreSnapshot: (snapshot: Snapshot<unknown>, scope) =>
      machine.restoreSnapshot(renewed(snapshot as never, negotiation), scope)
  }
}

/** Calls the author's `respond` for a request, or gives it to the author's chart. */
async function opinion(
  negotiation: Negotiation,
  { request, round, standing, proposal, memory }: Matter,
  host: ActorHost,
  signal: AbortSignal
): Promise<Opinion> {
  return answering(
    host,
    request,
    signal,
    async given => {
      const { respond } = negotiation
      const respondArguments = { ...given, round, standing, proposal }
      const answered =
        typeof respond === 'function'
          ? { answer: await respond(respondArguments) }
          : await chartAnswer(respond, respondArguments, memory)
      const named = { offerId: request.taskId, expiresAtMs: host.clock.now() + negotiation.offerMs }
      return {
        ...opinionOf(answered.answer, negotiation, named),
        ...('memory' in answered && { memory: answered.memory })
      }
    },
    failure => failure
  )
}

/** The validated answer of the author. The id of an offer is the task id of its request. */
export function opinionOf(
  answer: unknown,
  { terms }: Negotiation,
  named: Pick<StandingOffer, 'offerId' | 'expiresAtMs'>
): Opinion {
  const word = wordOf(
    answer,
    ['offer', 'accepted', 'declined', 'reply', 'rejected'],
    'answer offer(…), accepted(…), declined(…), reply(…) or rejected(…)'
  )
  switch (word.type) {
    case 'offer':
      return {
        decision: 'offered',
        offer: { ...named, terms: ownTerms(terms, word.terms) },
        words: messageOf(word.message ?? 'This is my offer.')
      }
    case 'accepted':
      return { decision: 'accepted', ...(word.terms !== undefined && { terms: ownTerms(terms, word.terms) }) }
    case 'rejected':
      return { decision: 'rejected', reason: messageOf(word.reason) }
    default:
      return { decision: word.type === 'reply' ? 'replied' : 'declined', words: messageOf(word.message) }
  }
}

function ownTerms(schema: Negotiation['terms'], terms: unknown): NegotiationTerms {
  const checked = checkedTerms(schema, terms, 'terms')
  if ('value' in checked) return checked.value
  const text = violationsText(checked.violations)
  throw new A2AError(
    'InvalidAgentResponse',
    `The agent's code produced terms that its own schema does not accept: ${text}.`
  )
}

/**
 * A stored negotiation with the present limits. Withdraws an open offer whose terms the present schema does not accept.
 */
function renewed(
  snapshot: Snapshot<unknown> & { readonly context: NegotiationContext },
  { rounds, terms }: Negotiation
): never {
  const { standing } = snapshot.context
  return {
    ...snapshot,
    context: { ...snapshot.context, rounds, standing: standing && fits(standing, terms) ? standing : null }
  } as never
}

function fits(standing: StandingOffer, schema: Negotiation['terms']): boolean {
  try {
    return 'value' in checkedTerms(schema, standing.terms, 'terms')
  } catch {
    return false
  }
}
