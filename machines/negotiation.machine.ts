import { assign, emit, fromPromise, setup } from 'xstate'
import type {
  Arrival,
  ContextRequest,
  Matter,
  NegotiationFact,
  NegotiationLimits,
  NegotiationMachineEvent,
  NegotiationOutcome,
  Opinion,
  StandingOffer,
  NegotiationTerms
} from './negotiation-events.ts'
import { offerPart, type Offer } from './protocol/negotiation.ts'
import type { MessageContent } from './task-events.ts'

type Request = ContextRequest & { arrived: Arrival }
type Answered = { output: Opinion }
type Offered = Extract<Opinion, { decision: 'offered' }>
type Situation = { context: NegotiationContext }

/**
 * `round`: number of offers so far, by either side. `standing`: the agent's open offer. `requests`: the current
 * request, then those that wait. `memory`: a value of the author's logic for the next request; null or missing if there
 * is none.
 */
export type NegotiationContext = NegotiationLimits & {
  round: number
  standing: StandingOffer | null
  requests: Request[]
  memory?: unknown
}

/**
 * The negotiation of one context, which lasts as long as the context. Requests are answered one at a time.
 *
 * The author's logic is the actor `respond`. It answers free text and proposed terms; while an offer is open, a
 * proposal is a counter-offer. The chart decides the rest: an offer is accepted by its id, once, before it expires, and
 * the number of offers is limited. After a deal the offer stays open until the task exists. Requests carry the time, so
 * an offer needs no timer.
 */
export const negotiationMachine = setup({
  types: {
    context: {} as NegotiationContext,
    events: {} as NegotiationMachineEvent,
    emitted: {} as NegotiationFact,
    input: {} as NegotiationLimits
  },
  actors: { respond: fromPromise<Opinion, Matter>(notProvided) },
  guards: {
    hasAnsweredAll: ({ context }) => context.requests.length === 0,
    hasPlace: ({ context }) => context.requests.length <= context.waitingLimit,
    hasExpired: ({ context }) =>
      context.standing !== null && context.standing.expiresAtMs <= atHand(context).arrived.atMs,
    acceptsOffer: ({ context }) =>
      context.standing !== null && context.standing.offerId === atHand(context).arrived.accepts,
    declinesOffer: ({ context }) =>
      context.standing !== null && context.standing.offerId === atHand(context).arrived.declines,
    meansNoOffer: ({ context }) => (atHand(context).arrived.accepts ?? atHand(context).arrived.declines) !== undefined,
    proposesTooOften: ({ context }) =>
      atHand(context).arrived.proposes !== undefined && context.round >= context.rounds,
    offersTooOften: ({ context }, opinion: Opinion) =>
      opinion.decision === 'offered' && roundOf(context) >= context.rounds,
    agrees: ({ context }, opinion: Opinion) =>
      opinion.decision === 'rejected' || acceptedTerms(context, opinion) !== undefined,
    accepts: (_, opinion: Opinion) => opinion.decision === 'accepted',
    offers: (_, opinion: Opinion) => opinion.decision === 'offered',
    declines: (_, opinion: Opinion) => opinion.decision === 'declined',
    replies: (_, opinion: Opinion) => opinion.decision === 'replied'
  },
  actions: {
    hear: assign({ requests: ({ context }, request: Request) => [...context.requests, request] }),
    tell: emit((_, outcome: NegotiationOutcome) => ({ type: 'request.decided', outcome })),
    keepOffer: assign(({ context }, { offer }: Offered) => standingFrom(context, offer)),
    countRound: assign({ round: ({ context }) => roundOf(context) }),
    remember: assign((_, opinion: Opinion) => ('memory' in opinion ? { memory: opinion.memory ?? null } : {})),
    forgetOffers: assign({ round: 0, standing: null, memory: null }),
    goOn: assign({ requests: ({ context }) => context.requests.slice(1) })
  }
}).createMachine({
  id: 'negotiation',
  context: ({ input: { rounds, waitingLimit } }) => ({
    rounds,
    waitingLimit,
    round: 0,
    standing: null,
    requests: [],
    memory: null
  }),
  initial: 'quiet',
  // Requests that wait are still answered.
  on: { 'client.withdrew': { actions: 'forgetOffers' } },
  states: {
    // No request is waiting. An offer may be open.
    quiet: {
      on: { 'request.received': { target: 'busy', actions: { type: 'hear', params: ({ event }) => event.request } } }
    },
    busy: {
      on: {
        'request.received': [
          { guard: 'hasPlace', actions: { type: 'hear', params: ({ event }) => event.request } },
          { actions: { type: 'tell', params: ({ event }) => ({ request: event.request, decision: 'crowded' }) } }
        ]
      },
      initial: 'judging',
      states: {
        // Requests that need no answer of the author's are decided here.
        judging: {
          always: [
            { guard: 'hasAnsweredAll', target: '#negotiation.quiet' },
            { guard: 'hasExpired', actions: 'forgetOffers' },
            { guard: 'acceptsOffer', target: 'agreeing', actions: emitDecision(acceptance) },
            { guard: 'declinesOffer', actions: [emitDecision(noDeal), 'forgetOffers', 'goOn'] },
            { guard: 'meansNoOffer', actions: [emitDecision(whatStands), 'goOn'] },
            { guard: 'proposesTooOften', actions: [emitDecision(tooOften), 'forgetOffers', 'goOn'] },
            { target: 'responding' }
          ]
        },
        responding: {
          invoke: {
            id: 'respond',
            src: 'respond',
            input: ({ context }) => matterOf(context),
            onDone: [
              { guard: { type: 'agrees', params: opinionOf }, target: 'agreeing', actions: emitDecision(deal) },
              // The author accepts, but the request has no proposal and no offer is open.
              {
                guard: { type: 'accepts', params: opinionOf },
                target: 'judging',
                actions: [emitDecision(whatStands), 'goOn']
              },
              {
                guard: { type: 'offersTooOften', params: opinionOf },
                target: 'judging',
                actions: [emitDecision(tooOften), 'forgetOffers', 'goOn']
              },
              {
                guard: { type: 'offers', params: opinionOf },
                target: 'judging',
                actions: [
                  { type: 'keepOffer', params: ({ event }) => event.output as Offered },
                  remembers(),
                  emitDecision(newOffer),
                  'goOn'
                ]
              },
              {
                guard: { type: 'declines', params: opinionOf },
                target: 'judging',
                actions: [emitDecision(words), 'forgetOffers', 'goOn']
              },
              {
                guard: { type: 'replies', params: opinionOf },
                target: 'judging',
                actions: [emitDecision(words), 'countRound', remembers(), 'goOn']
              },
              { target: 'judging', actions: [emitDecision(noAnswer), 'goOn'] }
            ],
            onError: { target: 'judging', actions: [emitDecision(failure), 'goOn'] }
          }
        },
        // Both sides agree. The context decides whether it can open the task.
        agreeing: {
          on: {
            'deal.made': { target: 'judging', actions: ['forgetOffers', 'goOn'] },
            'deal.off': { target: 'judging', actions: 'goOn' }
          }
        }
      }
    }
  }
})

// ---- implementations ----

type Decision = NegotiationOutcome extends infer Outcome
  ? Outcome extends unknown
    ? Omit<Outcome, 'request'>
    : never
  : never

/** Action that emits the outcome of the current request. */
function emitDecision<Cause>(decisionIn: (situation: Situation & { event: Cause }) => Decision) {
  const params = (situation: Situation & { event: Cause }) =>
    ({ request: atHand(situation.context), ...decisionIn(situation) }) as NegotiationOutcome
  return { type: 'tell' as const, params }
}

/** Action that keeps the memory of the author's logic. */
function remembers() {
  return { type: 'remember' as const, params: opinionOf }
}

/** The client accepts the open offer, with its terms. */
function acceptance({ context }: Situation): Decision {
  return { decision: 'accepted', terms: (context.standing as StandingOffer).terms }
}

function deal({ context, event }: Situation & { event: Answered }): Decision {
  const { output } = event
  if (output.decision === 'rejected') return output
  return { decision: 'accepted', terms: acceptedTerms(context, output) as NegotiationTerms }
}

function newOffer({ context, event }: Situation & { event: Answered }): Decision {
  const { parts, ...words } = (event.output as Offered).words
  return {
    decision: 'replied',
    reply: { ...words, parts: [...parts, offerPart(wireOffer(context.standing as StandingOffer))] }
  }
}

function words({ event }: { event: Answered }): Decision {
  return { decision: 'replied', reply: (event.output as Extract<Opinion, { words: MessageContent }>).words }
}

function noAnswer({ event }: { event: Answered }): Decision {
  return { decision: 'failed', ...('isLate' in event.output && { isLate: event.output.isLate }) }
}

function failure(): Decision {
  return { decision: 'failed' }
}

function noDeal(): Decision {
  return { decision: 'replied', reply: { parts: [{ text: 'The offer is declined. There is no deal.' }] } }
}

function tooOften({ context: { rounds } }: Situation): Decision {
  return {
    decision: 'replied',
    reply: { parts: [{ text: `There is no deal: the offer limit of ${rounds} is reached.` }] }
  }
}

function whatStands({ context: { standing } }: Situation): Decision {
  if (!standing) return { decision: 'replied', reply: { parts: [{ text: 'This offer is not open any more.' }] } }
  return {
    decision: 'replied',
    reply: { parts: [{ text: 'This offer is not open any more. The open offer is:' }, offerPart(wireOffer(standing))] }
  }
}

function opinionOf({ event }: { event: Answered }): Opinion {
  return event.output
}

/** The request that is being answered. There is one in every substate of `busy`. */
function atHand({ requests }: NegotiationContext): Request {
  return requests[0] as Request
}

/** Number of offers of both sides, including a proposal in the current request. */
function roundOf(context: NegotiationContext): number {
  return context.round + (atHand(context).arrived.proposes ? 1 : 0)
}

function matterOf(context: NegotiationContext): Matter {
  const { arrived, ...request } = atHand(context)
  const { standing, memory = null } = context
  return {
    request,
    round: roundOf(context),
    ...(standing && { standing }),
    ...(arrived.proposes && { proposal: arrived.proposes }),
    ...(memory !== null && { memory })
  }
}

/** The terms that the author accepts: its own, else the proposed ones, else those of the open offer. */
function acceptedTerms(context: NegotiationContext, opinion: Opinion): NegotiationTerms | undefined {
  return opinion.decision === 'accepted'
    ? (opinion.terms ?? atHand(context).arrived.proposes ?? context.standing?.terms)
    : undefined
}

function standingFrom(
  context: NegotiationContext,
  offer: Offered['offer']
): Pick<NegotiationContext, 'round' | 'standing'> {
  const round = roundOf(context) + 1
  return { round, standing: { ...offer, round } }
}

/** An offer in its wire form. */
function wireOffer({ offerId, round, terms, expiresAtMs }: StandingOffer): Offer {
  return { offerId, round, terms, expiresAt: new Date(expiresAtMs).toISOString() }
}

/** Placeholder for the author's logic, which the runtime provides. */
function notProvided(): Promise<Opinion> {
  return Promise.reject(
    new TypeError(
      'The negotiation chart has no logic to answer with. Provide it: negotiationMachine.provide({ actors: { respond } }).'
    )
  )
}
