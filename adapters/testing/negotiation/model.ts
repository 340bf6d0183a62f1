import type { DoneActorEvent, Snapshot, SnapshotFrom } from 'xstate'
import type {
  Arrival,
  NegotiationFact,
  NegotiationLimits,
  NegotiationMachineEvent,
  Opinion,
  NegotiationTerms
} from '../../../machines/negotiation-events.ts'
import { negotiationMachine } from '../../../machines/negotiation.machine.ts'
import type { ErrorCode } from '../../../machines/protocol/errors.ts'
import { offerIn } from '../../../machines/protocol/negotiation.ts'
import type { Message, Part } from '../../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import { doneType } from '../../../machines/xstate-names.ts'
import { accepted, declined, offer, rejected, reply, type Words, type Negotiation } from '../../../runtime/index.ts'
import { checkArgument, withMembers } from '../../../runtime/primitives/options.ts'
import { checkedTerms, opinionOf, pureStart, pureStep } from '../../../runtime/work-port.ts'
import type { ByName, Response, BargainCases } from '../plan/cases.ts'
import { endless } from '../run/stub-actors.ts'

/** A client's answer without generated ids. An offer's time is in milliseconds since the start of the path. */
export type BargainAnswer =
  | { readonly message: readonly unknown[] }
  | { readonly task: unknown }
  | { readonly rejected: readonly unknown[] | undefined }
  | { readonly error: ErrorCode }
  /** The text of an error that is none of A2A. */
  | { readonly failure: string }

/** An answer, with the number of the client's message. */
export interface NumberedAnswer {
  readonly request: number
  readonly answer: BargainAnswer
}

/** The state of a negotiation after one move, according to its chart, and the answers to the client. */
export type BargainTurn = Snapshot<unknown> & {
  readonly chart: SnapshotFrom<typeof negotiationMachine>
  readonly nowMs: number
  /** The number of messages that the client has sent. */
  readonly sent: number
  readonly answers: readonly NumberedAnswer[]
}

/** A negotiation as a pure function of moves. */
interface BargainModel {
  readonly begin: () => BargainTurn
  readonly take: (turn: BargainTurn, move: BargainMove) => BargainTurn
}

const model = negotiationMachine.provide({ actors: { respond: endless as never } })

/**
 * The model of an agent's negotiation: taskchart's own chart, in which moves replace the author's answers. Tasks are
 * never refused.
 */
export function bargainModel(negotiation: Negotiation, limits: NegotiationLimits): BargainModel {
  const begin = (): BargainTurn => ({
    status: 'active',
    output: undefined,
    error: undefined,
    chart: pureStart(model, limits).snapshot as BargainTurn['chart'],
    nowMs: 0,
    sent: 0,
    answers: []
  })
  const take = (turn: BargainTurn, move: BargainMove): BargainTurn => {
    const { chart, nowMs, sent } = turn
    if (move.type === 'time') return { ...turn, nowMs: nowMs + move.delayMs, answers: [] }
    if (move.type === 'response') return turnAfter(turn, answered(negotiation, move.response, nowMs))
    if (move.type === 'proposal' && !move.taken)
      return { ...turn, sent: sent + 1, answers: [{ request: sent, answer: { error: 'InvalidParams' } }] }
    const message: Message = { messageId: `${sent}`, role: 'ROLE_USER', parts: [] }
    const arrived: Arrival = { atMs: nowMs, ...meaning(move, chart.context.standing?.offerId) }
    return turnAfter(
      { ...turn, sent: sent + 1 },
      { type: 'request.received', request: { callId: `${sent}`, taskId: `${sent}`, message, arrived } }
    )
  }
  return { begin, take }
}

type BargainEvent = NegotiationMachineEvent | DoneActorEvent<Opinion>

/** Sends an event to the chart, and after each deal the event that a task was opened. */
function turnAfter(turn: BargainTurn, event: BargainEvent): BargainTurn {
  const { snapshot, effects } = pureStep(model, turn.chart, event, () => false)
  const chart = snapshot as BargainTurn['chart']
  const facts = effects.flatMap(effect => (effect.kind === 'emit' ? [effect.event as NegotiationFact] : []))
  const answers = facts.map(({ outcome }) => ({ request: Number(outcome.request.callId), answer: dataOf(outcome) }))
  const next = { ...turn, chart, answers }
  if (!chart.matches({ busy: 'agreeing' })) return next
  const rest = turnAfter(next, { type: 'deal.made' })
  return { ...rest, answers: [...answers, ...rest.answers] }
}

function dataOf(outcome: NegotiationFact['outcome']): BargainAnswer {
  switch (outcome.decision) {
    case 'replied':
      return { message: comparable(outcome.reply.parts, 0) }
    case 'accepted':
      return { task: outcome.terms }
    case 'rejected':
      return { rejected: outcome.reason.parts }
    case 'crowded':
      return { error: 'RateLimited' }
    case 'failed':
    default:
      return { error: 'InternalError' }
  }
}

/**
 * The parts of a message for comparison: an offer without its id, with its expiry in milliseconds since the start of
 * the path.
 */
export function comparable(parts: readonly Part[], startMs: number): unknown[] {
  return parts.map(part => {
    const offer = 'data' in part ? offerIn({ parts: [part] }) : undefined
    return offer ? { round: offer.round, terms: offer.terms, inMs: Date.parse(offer.expiresAt) - startMs } : part
  })
}

/** The done event of the author's logic. */
function answered(negotiation: Negotiation, response: Response, nowMs: number): DoneActorEvent<Opinion> {
  const output = response instanceof Error ? failed : opinionIn(negotiation, response, nowMs)
  return { type: doneType('respond'), actorId: 'respond', output }
}

const failed: Opinion = { decision: 'failed' }

/** Converts an answer. Terms that the schema refuses count as an error. */
function opinionIn(negotiation: Negotiation, response: Response, nowMs: number): Opinion {
  try {
    return opinionOf(response, negotiation, { offerId: `offer at ${nowMs}`, expiresAtMs: nowMs + negotiation.offerMs })
  } catch {
    return failed
  }
}

function meaning(
  move: Exclude<BargainMove, { type: 'time' | 'response' }>,
  standing: string | undefined
): Omit<Arrival, 'atMs'> {
  const id = (isStanding: boolean) => (isStanding ? standing : undefined) ?? 'nobody’s'
  switch (move.type) {
    case 'proposal':
      return { proposes: move.taken as NegotiationTerms }
    case 'accept':
      return { accepts: id(move.isStanding) }
    case 'decline':
      return { declines: id(move.isStanding) }
    case 'words':
    default:
      return {}
  }
}

/** One event of a negotiation under test: a message of the client, the result of `respond`, or time. */
export type BargainMove =
  | { readonly type: 'words'; readonly name: string; readonly words: Words }
  /** `taken`: the terms after validation; absent if the schema refuses them. */
  | { readonly type: 'proposal'; readonly name: string; readonly terms: object; readonly taken?: NegotiationTerms }
  /** The current offer, or an unknown one. */
  | { readonly type: 'accept' | 'decline'; readonly isStanding: boolean }
  | { readonly type: 'response'; readonly name: string; readonly response: Response }
  | { readonly type: 'time'; readonly delayMs: number }

/** A move as a clause: `the client accepts the offer`. */
export function describeBargainMove(move: BargainMove): string {
  checkArgument(move, withMembers(['type'], 'a move of a path'), 'describeBargainMove(move)')
  switch (move.type) {
    case 'words':
      return `the client says "${move.name}"`
    case 'proposal':
      return `the client proposes "${move.name}"`
    case 'accept':
    case 'decline':
      return `the client ${move.type}s ${move.isStanding ? 'the offer' : 'an offer that nobody has made'}`
    case 'response':
      return `respond ${move.response instanceof Error ? 'throws' : 'answers'} "${move.name}"`
    case 'time':
    default:
      return `${move.delayMs} ms pass`
  }
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
  const messages = Object.entries(requests).map(([name, words]): BargainMove => ({ type: 'words', name, words }))
  const all = Object.entries({ ...terms, 'what are no terms': { [NEGOTIATION_EXTENSION]: 'no terms' } })
  const proposed = all.map(([name, terms]): BargainMove => {
    const checked = checkedTerms(schema, terms, 'terms')
    return { type: 'proposal', name, terms, ...('value' in checked && { taken: checked.value }) }
  })
  return [...messages, ...proposed, { type: 'accept', isStanding: false }]
}

export const WAITING_LIMIT = 1

/** Limits for tests: the rounds of offers, so that the last is reached soon, and the number of waiting messages. */
const MOST_ROUNDS = 2

/** The number of rounds in tests of a negotiation. */
export function roundsIn({ rounds }: Negotiation): number {
  return Math.min(rounds, MOST_ROUNDS)
}
