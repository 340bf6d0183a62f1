import type { AgentExtension } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import { jsonSchemaOf } from '../authoring/json-schema.ts'
import type { Accepted, Declined, Offered, Rejected, Reply } from '../authoring/words.ts'
import { isStandardSchema, type StandardSchema } from '../ports/standard-schema.ts'
import { checkOptions, type OptionKinds } from '../primitives/options.ts'
import type { NegotiationArguments } from './per-message.ts'

/** An offer of ours that its client may accept before `expiresAtMs`, in milliseconds since 1970; `round` is its number among the offers of both sides. */
export interface OpenOffer<Terms = Record<string, unknown>> {
  readonly offerId: string
  readonly round: number
  readonly terms: Terms
  readonly expiresAtMs: number
}

/** What `respond` is called with. */
export interface RespondArguments<Terms = Record<string, unknown>> extends NegotiationArguments {
  /** The terms that the client proposes with this message, if it does: a counter-offer while an offer of ours stands. */
  readonly proposal: Terms | undefined
  /** Our offer that stands, if there is one: made before, and not expired when the message came. */
  readonly standing: OpenOffer<Terms> | undefined
  /** How many offers both sides have made until now, the proposal of this message included. With `rounds` of them we can offer no more. */
  readonly round: number
}

/** What `respond` may answer. */
export type NegotiationAnswer<Terms = Record<string, unknown>> = Offered<Terms> | Accepted<Terms> | Accepted<undefined> | Declined | Reply | Rejected

/** How an agent negotiates. */
export interface NegotiationOptions<Terms extends object> {
  /** What terms are, an object: those of both sides have to be taken by it. It must take what it gives. */
  readonly terms: StandardSchema<Terms>
  /** How many offers both sides may make together before it is over without a deal. Default 5. */
  readonly rounds?: number
  /** How long an offer of ours stands, in milliseconds. Default 600,000: ten minutes. */
  readonly offerMs?: number
  /**
   * Answers a message that needs an opinion of the agent: free words, and terms that the client proposes. One at a time in
   * each context. If it throws, that message gets an error, and the offer that stands stays. It may be called again for a
   * message after a restart of the process, if it had not answered by then.
   */
  readonly respond: (given: RespondArguments<NoInfer<Terms>>) => NegotiationAnswer<NoInfer<Terms>> | Promise<NegotiationAnswer<NoInfer<Terms>>>
}

const OPTIONS: OptionKinds<NegotiationOptions<object>> = { terms: true, rounds: true, offerMs: true, respond: true }

/** A negotiation that lasts, for `negotiate` of an agent. */
export interface Negotiation<Terms = unknown> {
  readonly type: 'negotiation'
  readonly terms: StandardSchema<Terms>
  readonly rounds: number
  readonly offerMs: number
  readonly respond: (given: RespondArguments) => unknown
}

/** A hundred years: what lasts longer has no date that could be told. */
const LONGEST_MS = 100 * 366 * 24 * 3600 * 1000

/**
 * Negotiates before tasks are opened: offers and counter-offers, of which one is accepted before it expires. Give it to an
 * agent as its `negotiate`. Throws TypeError or RangeError for what cannot be, with what to write instead.
 */
export function negotiation<Terms extends object>(options: NegotiationOptions<Terms>): Negotiation<Terms> {
  checkOptions(options, OPTIONS, 'negotiation', 'negotiation({ terms: z.object({ … }), respond })')
  const { terms, rounds = 5, offerMs = 600_000, respond } = options
  if (!isStandardSchema(terms)) throw new TypeError('terms has to be a schema of zod, valibot, arktype or the like (Standard Schema): negotiation({ terms: z.object({ euros: z.number() }), … }).')
  if (!Number.isSafeInteger(rounds) || rounds < 1) throw new RangeError(`rounds has to be a whole number of offers from 1, not ${String(rounds)}. Leave it out for 5.`)
  if (!(offerMs > 0 && offerMs <= LONGEST_MS)) throw new RangeError(`offerMs has to be milliseconds above 0, of a hundred years at the most, not ${String(offerMs)}. Leave it out for ten minutes.`)
  if (typeof respond !== 'function') throw new TypeError('respond has to be a function that answers offer(…), accepted(…), declined(…), reply(…) or rejected(…).')
  // What it is called with has passed the schema.
  return { type: 'negotiation', terms, rounds, offerMs, respond: respond as Negotiation['respond'] }
}

/** Whether `negotiate` is a negotiation that lasts; it may have been made by another copy of this package. */
export function isNegotiation(negotiate: unknown): negotiate is Negotiation {
  return isObject(negotiate) && negotiate['type'] === 'negotiation' && typeof negotiate['respond'] === 'function'
}

/** How the card of an agent tells that it negotiates (§4.6): within which limits, and about what if its schema can tell. */
export function negotiationExtension({ rounds, offerMs, terms }: Negotiation): AgentExtension {
  const schema = jsonSchemaOf(terms)
  const description = 'Terms are offered, proposed, accepted and declined in data parts; those of a task are in its metadata.'
  return { uri: NEGOTIATION_EXTENSION, description, params: { rounds, offerMs, ...(schema && { terms: schema }) } }
}
