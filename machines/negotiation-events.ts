import type { FieldViolation } from './protocol/errors.ts'
import type { Message, RequestDetails } from './protocol/objects.ts'
import type { MessageContent } from './task-events.ts'

/** Terms that one side proposes or both have agreed on: an object that the author's schema accepts. */
export type NegotiationTerms = Record<string, unknown>

/**
 * When a request arrived, in milliseconds since 1970, and its move, if it has one: proposed terms, or the id of an
 * offer.
 */
export type Arrival = { atMs: number; proposes?: NegotiationTerms; accepts?: string; declines?: string }

/**
 * A message that addresses no task. `callId` names the waiting call; `taskId` is the id of the task that it may open.
 * `extensions` are the author's extensions that the client has activated. `details` are the metadata and configuration
 * of the request. `arrived` is set only for a lasting negotiation, and `trace`, the trace context, only if the call is
 * traced. `isOnce`: the message is deduplicated or has a webhook, so it is processed only while its call waits.
 * `isWithdrawal`: the client gives the negotiation up. The request opens a task that is canceled at once, and the open
 * offer ends.
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
  isWithdrawal?: true
}

/**
 * The outcome of a request. `crowded`: too many requests were waiting. `failed`: the author's code threw; with
 * `violations` the client's request was invalid, with `isLate` there was no answer in time.
 */
export type NegotiationOutcome = { request: ContextRequest } & (
  | { decision: 'replied'; reply: MessageContent }
  | { decision: 'accepted'; terms?: NegotiationTerms }
  | { decision: 'rejected'; reason: MessageContent }
  | { decision: 'crowded' }
  | { decision: 'failed'; violations?: readonly FieldViolation[]; isLate?: boolean }
)

/** The agent's open offer. The client may accept it before `expiresAtMs`, in milliseconds since 1970. */
export type StandingOffer = { offerId: string; round: number; terms: NegotiationTerms; expiresAtMs: number }

/**
 * The input of the author's logic for one request. `round` counts the offers of both sides, including a proposal in
 * this request. `memory` is the value that came with the last answer of the logic in this negotiation: the snapshot of
 * its chart, if it is one.
 */
export type Matter = {
  request: ContextRequest
  round: number
  standing?: StandingOffer
  proposal?: NegotiationTerms
  memory?: unknown
}

/**
 * The author's decision. `accepted` without terms accepts those that the request proposes, or else those of the open
 * offer.
 */
export type Opinion =
  | { decision: 'offered'; offer: Omit<StandingOffer, 'round'>; words: MessageContent; memory?: unknown }
  | { decision: 'declined' | 'replied'; words: MessageContent; memory?: unknown }
  | { decision: 'accepted'; terms?: NegotiationTerms }
  | { decision: 'rejected'; reason: MessageContent }
  | { decision: 'failed'; isLate?: boolean }

/**
 * Events that a negotiation receives: requests, whether the context could open a task for the deal, and that the client
 * gives the negotiation up.
 */
export type NegotiationMachineEvent =
  | { type: 'request.received'; request: ContextRequest & { arrived: Arrival } }
  | { type: 'deal.made' }
  | { type: 'deal.off' }
  | { type: 'client.withdrew' }

/** The event that a negotiation emits: the outcome of a request. */
export type NegotiationFact = { type: 'request.decided'; outcome: NegotiationOutcome }

/**
 * `rounds`: maximum number of offers, of both sides together. `waitingLimit`: maximum number of requests that wait
 * while one is answered.
 */
export type NegotiationLimits = { rounds: number; waitingLimit: number }
