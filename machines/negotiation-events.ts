import type { FieldViolation } from './protocol/errors.ts'
import type { Message } from './protocol/parts.ts'
import type { RequestDetails } from './protocol/requests.ts'
import type { MessageContent } from './task-events.ts'

/** What both sides agree upon, or one of them proposes: an object that the author's schema takes. */
export type Terms = Record<string, unknown>

/** When a request came, in milliseconds since 1970, and what it is beside free words: terms, or the id of an offer. */
export type Arrival = { atMs: number; proposes?: Terms; accepts?: string; declines?: string }

/**
 * A message that addresses no task. `callId` names the call that waits for it, `taskId` is for the task that it may open,
 * `extensions` are those of the author's that its client has activated, if any, and `details` the metadata and
 * configuration of the request, if it has them. `arrived` is known where a negotiation lasts,
 * and `trace`, which says where it belongs, if it is traced. `isOnce`: only the call that waits
 * for it may have it taken: it is not to be taken twice, or comes with a webhook.
 */
export type ContextRequest = {
  callId: string
  taskId: string
  message: Message
  extensions?: readonly string[]
  details?: RequestDetails | undefined
  arrived?: Arrival | undefined
  trace?: Readonly<Record<string, string>> | undefined
  isOnce?: true
}

/** What came of a request: an answer without a task, a task with its terms, a task refused, too many before it, or an error, which is the client's if it has violations, or that there was no answer in time. */
export type NegotiationOutcome = { request: ContextRequest } & (
  | { decision: 'replied'; reply: MessageContent }
  | { decision: 'accepted'; terms?: Terms }
  | { decision: 'rejected'; reason: MessageContent }
  | { decision: 'crowded' }
  | { decision: 'failed'; violations?: readonly FieldViolation[]; isLate?: boolean }
)

/** An offer of the agent's that its client may accept before `expiresAtMs`, in milliseconds since 1970. */
export type StandingOffer = { offerId: string; round: number; terms: Terms; expiresAtMs: number }

/** What the author is asked about a request. `round` counts the offers of both sides so far, a proposal in this request included. */
export type Matter = { request: ContextRequest; round: number; standing?: StandingOffer; proposal?: Terms }

/** What the author answers. `accepted` without terms means those at hand: proposed in this request, or else of the standing offer. */
export type Opinion =
  | { decision: 'offered'; offer: Omit<StandingOffer, 'round'>; words: MessageContent }
  | { decision: 'declined' | 'replied'; words: MessageContent }
  | { decision: 'accepted'; terms?: Terms }
  | { decision: 'rejected'; reason: MessageContent }
  | { decision: 'failed'; isLate?: boolean }

/** Everything that a negotiation hears: requests, and whether there is a task for the deal that it has told. */
export type NegotiationMachineEvent = { type: 'request.received'; request: ContextRequest & { arrived: Arrival } } | { type: 'deal.made' } | { type: 'deal.off' }

/** What a negotiation tells: what is to become of a request. */
export type NegotiationFact = { type: 'request.decided'; outcome: NegotiationOutcome }

/** `rounds`: offers of both sides together at the most. `waitingLimit`: requests at the most that wait while another is answered. */
export type NegotiationLimits = { rounds: number; waitingLimit: number }
