import type { AnyStateMachine } from 'xstate'
import type { Arrival, NegotiationTerms } from '../../machines/negotiation-events.ts'
import type { AgentExtension } from '../../machines/protocol/card.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { type FieldViolation, invalidParams } from '../../machines/protocol/errors.ts'
import { moveIn } from '../../machines/protocol/negotiation.ts'
import type { Message } from '../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'
import { keptValue } from '../authoring/checked-words.ts'
import { jsonSchemaOf } from '../authoring/input-schema.ts'
import { isStandardSchema, type StandardSchema, validateValue } from '../ports/standard-schema.ts'
import { checkOptions, type OptionKinds } from '../primitives/options.ts'
import { refuseOtherMajor } from '../xstate/other-majors.ts'
import { isMachine } from '../xstate/persisted-snapshot.ts'
import { checkRespondChart, type RespondChart, type RespondArguments, type NegotiationAnswer } from './respond-chart.ts'

/** Options of a negotiation. */
export interface NegotiationOptions<Terms extends object> {
  /** Schema of the terms of both sides, an object. It must accept its own output. */
  readonly terms: StandardSchema<Terms>
  /** Maximum number of offers, of both sides together; after that there is no deal. Default 5. */
  readonly rounds?: number
  /** How long an offer of the agent stays open, in milliseconds. Default 600,000: ten minutes. */
  readonly offerMs?: number
  /**
   * Answers free text, and terms that the client proposes; one message at a time in each context: a function, or a
   * chart made with `setupNegotiation`, whose state is stored from one message to the next. If it throws, the client
   * gets an error, and the open offer and the chart's state stay. After a restart of the process it may be called again
   * for an unanswered message.
   */
  readonly respond: RespondFunction<NoInfer<Terms>> | RespondChart<NoInfer<Terms>>
}

/** Answers one message. */
type RespondFunction<Terms = Record<string, unknown>> = (
  given: RespondArguments<Terms>
) => NegotiationAnswer<Terms> | Promise<NegotiationAnswer<Terms>>

const OPTIONS: OptionKinds<NegotiationOptions<object>> = { terms: true, rounds: true, offerMs: true, respond: true }

/** A lasting negotiation, for `negotiate` of an agent. */
export interface Negotiation<Terms = unknown> {
  readonly type: 'negotiation'
  readonly terms: StandardSchema<Terms>
  readonly rounds: number
  readonly offerMs: number
  readonly respond: ((given: RespondArguments) => unknown) | AnyStateMachine
}

/** A hundred years, so that the expiry is a valid date. */
const LONGEST_MS = 100 * 366 * 24 * 3600 * 1000

/**
 * Negotiates before tasks are opened, with offers and counter-offers, of which one may be accepted before it expires.
 * Use it as an agent's `negotiate`. Throws TypeError or RangeError for invalid options, with what to write instead.
 */
export function negotiation<Terms extends object>(options: NegotiationOptions<Terms>): Negotiation<Terms> {
  checkOptions(options, OPTIONS, 'negotiation', 'negotiation({ terms: z.object({ … }), respond })')
  const { terms, rounds = 5, offerMs = 600_000, respond } = options
  if (!isStandardSchema(terms))
    throw new TypeError(
      'terms has to be a schema of zod, valibot, arktype or the like (Standard Schema): negotiation({ terms: z.object({ euros: z.number() }), … }).'
    )
  if (!Number.isSafeInteger(rounds) || rounds < 1)
    throw new RangeError(`rounds has to be a whole number of offers from 1, not ${String(rounds)}. Leave it out for 5.`)
  if (!(offerMs > 0 && offerMs <= LONGEST_MS))
    throw new RangeError(
      `offerMs has to be milliseconds above 0 and at most a hundred years, not ${String(offerMs)}. Leave it out for ten minutes.`
    )
  refuseOtherMajor(respond, 'respond')
  if (!isRespondent(respond))
    throw new TypeError(
      'respond has to be a function that answers offer(…), accepted(…), declined(…), reply(…) or rejected(…), or a chart made with setupNegotiation(…).createMachine(…).'
    )
  if (typeof respond !== 'function') checkRespondChart(respond)
  // Its arguments have been validated by the schema.
  return { type: 'negotiation', terms, rounds, offerMs, respond: respond as Negotiation['respond'] }
}

/** Whether `negotiate` is a lasting negotiation, including one from another copy of this package. */
export function isNegotiation(negotiate: unknown): negotiate is Negotiation {
  return isObject(negotiate) && negotiate['type'] === 'negotiation' && isRespondent(negotiate['respond'])
}

function isRespondent(respond: unknown): boolean {
  return typeof respond === 'function' || (isObject(respond) && isMachine(respond as never))
}

/**
 * The negotiation extension of an agent's card (§4.6): its limits, and the JSON Schema of its terms, if there is one.
 */
export function negotiationExtension({ rounds, offerMs, terms }: Negotiation): AgentExtension {
  const schema = jsonSchemaOf(terms)
  const description =
    'Terms are offered, proposed, accepted and declined in data parts; those of a task are in its metadata.'
  return { uri: NEGOTIATION_EXTENSION, description, params: { rounds, offerMs, ...(schema && { terms: schema }) } }
}

/**
 * Parses terms with their schema, and copies them through JSON. Gives violations with paths below `field`. Throws
 * TypeError if the schema is asynchronous or gives no object, InvalidAgentResponse if it gives values that JSON cannot
 * express.
 */
export function checkedTerms(
  schema: StandardSchema<unknown>,
  terms: unknown,
  field: string
): { readonly value: NegotiationTerms } | { readonly violations: FieldViolation[] } {
  const checked = validateValue(schema, terms, field)
  if ('violations' in checked) return checked
  if (!isObject(checked.value))
    throw new TypeError(`The schema of the terms has to give an object, as z.object({ … }) does.`)
  return { value: keptValue(checked.value, field) }
}

/**
 * Reads the move of a message to a lasting negotiation. Throws InvalidParams that names the field, for an invalid move
 * and for terms that the agent's schema does not accept.
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
