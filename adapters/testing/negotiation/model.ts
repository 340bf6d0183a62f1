import { initialTransition, transition, type DoneActorEvent, type Snapshot, type SnapshotFrom } from 'xstate'
import type { Arrival, NegotiationFact, NegotiationLimits, NegotiationMachineEvent, Opinion, Terms } from '../../../machines/negotiation-events.ts'
import { negotiationMachine } from '../../../machines/negotiation.machine.ts'
import type { ErrorCode } from '../../../machines/protocol/errors.ts'
import { offerIn } from '../../../machines/protocol/negotiation.ts'
import type { Message, Part } from '../../../machines/protocol/parts.ts'
import { opinionOf } from '../../../runtime/negotiation/bargaining.ts'
import type { Negotiation } from '../../../runtime/negotiation/negotiation.ts'
import { endless } from '../run/with-actors.ts'
import type { BargainMove, Response } from './moves.ts'

/** What a client hears of one of its messages, without ids that are made; an offer's time is in milliseconds since the path began. */
export type Answer =
  | { readonly message: readonly unknown[] }
  | { readonly task: unknown }
  | { readonly rejected: readonly unknown[] | undefined }
  | { readonly error: ErrorCode }

/** An answer, and to which of the client's messages, by their number. */
export interface Heard {
  readonly request: number
  readonly answer: Answer
}

/** A negotiation after one move, as its chart gives it, and what the client hears by it. */
export type BargainTurn = Snapshot<unknown> & {
  readonly chart: SnapshotFrom<typeof negotiationMachine>
  readonly nowMs: number
  /** How many messages the client has sent. */
  readonly sent: number
  readonly heard: readonly Heard[]
}

/** A negotiation as a function of moves. */
export interface BargainModel {
  readonly begin: () => BargainTurn
  readonly take: (turn: BargainTurn, move: BargainMove) => BargainTurn
}

const model = negotiationMachine.provide({ actors: { respond: endless as never } })

/** The model of an agent's negotiation: our own chart, in which moves answer for the author. There is always room for its tasks. */
export function bargainModel(negotiation: Negotiation, limits: NegotiationLimits): BargainModel {
  const begin = (): BargainTurn => ({ status: 'active', output: undefined, error: undefined, chart: initialTransition(model, limits)[0], nowMs: 0, sent: 0, heard: [] })
  const take = (turn: BargainTurn, move: BargainMove): BargainTurn => {
    const { chart, nowMs, sent } = turn
    if (move.type === 'time') return { ...turn, nowMs: nowMs + move.delayMs, heard: [] }
    if (move.type === 'response') return told(turn, answered(negotiation, move.response, nowMs))
    if (move.type === 'proposal' && !move.taken) return { ...turn, sent: sent + 1, heard: [{ request: sent, answer: { error: 'InvalidParams' } }] }
    const message: Message = { messageId: `${sent}`, role: 'ROLE_USER', parts: [] }
    const arrived: Arrival = { atMs: nowMs, ...meaning(move, chart.context.standing?.offerId) }
    return told({ ...turn, sent: sent + 1 }, { type: 'request.received', request: { callId: `${sent}`, taskId: `${sent}`, message, arrived } })
  }
  return { begin, take }
}

type Hears = NegotiationMachineEvent | DoneActorEvent<Opinion>

/** Lets the chart hear an event, and for each deal that it tells that there is a task. */
function told(turn: BargainTurn, event: Hears): BargainTurn {
  const [chart, actions] = transition(model, turn.chart, event as NegotiationMachineEvent)
  const facts = (actions as readonly { type: string; params: { event?: unknown } }[]).flatMap(({ type, params }) => (type === 'xstate.emit' ? [params.event as NegotiationFact] : []))
  const heard = facts.map(({ outcome }) => ({ request: Number(outcome.request.callId), answer: answerOf(outcome) }))
  const next = { ...turn, chart, heard }
  if (!chart.matches({ busy: 'agreeing' })) return next
  const rest = told(next, { type: 'deal.made' })
  return { ...rest, heard: [...heard, ...rest.heard] }
}

function answerOf(outcome: NegotiationFact['outcome']): Answer {
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

/** The parts of a message as they are compared: an offer without its id, its end in milliseconds since the path began. */
export function comparable(parts: readonly Part[], startMs: number): unknown[] {
  return parts.map(part => {
    const offer = 'data' in part ? offerIn({ parts: [part] }) : undefined
    return offer ? { round: offer.round, terms: offer.terms, inMs: Date.parse(offer.expiresAt) - startMs } : part
  })
}

/** The end of the author's logic, as the chart hears it. */
function answered(negotiation: Negotiation, response: Response, nowMs: number): DoneActorEvent<Opinion> {
  const output = response instanceof Error ? failed : opinionIn(negotiation, response, nowMs)
  return { type: 'xstate.done.actor.respond', actorId: 'respond', output }
}

const failed: Opinion = { decision: 'failed' }

/** What an answer means; of terms that the schema does not take nothing comes, as of an error. */
function opinionIn(negotiation: Negotiation, response: Response, nowMs: number): Opinion {
  try {
    return opinionOf(response, negotiation, { offerId: `offer at ${nowMs}`, expiresAtMs: nowMs + negotiation.offerMs })
  } catch {
    return failed
  }
}

function meaning(move: Exclude<BargainMove, { type: 'time' | 'response' }>, standing: string | undefined): Omit<Arrival, 'atMs'> {
  const id = (isStanding: boolean) => (isStanding ? standing : undefined) ?? 'nobody’s'
  switch (move.type) {
    case 'proposal':
      return { proposes: move.taken as Terms }
    case 'accept':
      return { accepts: id(move.isStanding) }
    case 'decline':
      return { declines: id(move.isStanding) }
    case 'words':
    default:
      return {}
  }
}
