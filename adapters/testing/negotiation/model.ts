import { initialTransition, transition, type DoneActorEvent, type Snapshot, type SnapshotFrom } from 'xstate'
import type {
  Arrival,
  NegotiationFact,
  NegotiationLimits,
  NegotiationMachineEvent,
  Opinion,
  Terms
} from '../../../machines/negotiation-events.ts'
import { negotiationMachine } from '../../../machines/negotiation.machine.ts'
import type { ErrorCode } from '../../../machines/protocol/errors.ts'
import { offerIn } from '../../../machines/protocol/negotiation.ts'
import type { Message, Part } from '../../../machines/protocol/parts.ts'
import { opinionOf } from '../../../runtime/negotiation/bargaining.ts'
import type { Negotiation } from '../../../runtime/negotiation/negotiation.ts'
import { endless } from '../run/stub-actors.ts'
import type { BargainMove, Response } from './moves.ts'

/** A client's answer without generated ids. An offer's time is in milliseconds since the start of the path. */
export type Answer =
  | { readonly message: readonly unknown[] }
  | { readonly task: unknown }
  | { readonly rejected: readonly unknown[] | undefined }
  | { readonly error: ErrorCode }

/** An answer, with the number of the client's message. */
export interface Heard {
  readonly request: number
  readonly answer: Answer
}

/** The state of a negotiation after one move, according to its chart, and the answers to the client. */
export type BargainTurn = Snapshot<unknown> & {
  readonly chart: SnapshotFrom<typeof negotiationMachine>
  readonly nowMs: number
  /** The number of messages that the client has sent. */
  readonly sent: number
  readonly heard: readonly Heard[]
}

/** A negotiation as a pure function of moves. */
export interface BargainModel {
  readonly begin: () => BargainTurn
  readonly take: (turn: BargainTurn, move: BargainMove) => BargainTurn
}

const model = negotiationMachine.provide({ actors: { respond: endless as never } })

/** The model of an agent's negotiation: taskchart's own chart, in which moves replace the author's answers. Tasks are never refused. */
export function bargainModel(negotiation: Negotiation, limits: NegotiationLimits): BargainModel {
  const begin = (): BargainTurn => ({
    status: 'active',
    output: undefined,
    error: undefined,
    chart: initialTransition(model, limits)[0],
    nowMs: 0,
    sent: 0,
    heard: []
  })
  const take = (turn: BargainTurn, move: BargainMove): BargainTurn => {
    const { chart, nowMs, sent } = turn
    if (move.type === 'time') return { ...turn, nowMs: nowMs + move.delayMs, heard: [] }
    if (move.type === 'response') return told(turn, answered(negotiation, move.response, nowMs))
    if (move.type === 'proposal' && !move.taken)
      return { ...turn, sent: sent + 1, heard: [{ request: sent, answer: { error: 'InvalidParams' } }] }
    const message: Message = { messageId: `${sent}`, role: 'ROLE_USER', parts: [] }
    const arrived: Arrival = { atMs: nowMs, ...meaning(move, chart.context.standing?.offerId) }
    return told(
      { ...turn, sent: sent + 1 },
      { type: 'request.received', request: { callId: `${sent}`, taskId: `${sent}`, message, arrived } }
    )
  }
  return { begin, take }
}

type Hears = NegotiationMachineEvent | DoneActorEvent<Opinion>

/** Sends an event to the chart, and after each deal the event that a task was opened. */
function told(turn: BargainTurn, event: Hears): BargainTurn {
  const [chart, actions] = transition(model, turn.chart, event as NegotiationMachineEvent)
  const facts = (actions as readonly { type: string; params: { event?: unknown } }[]).flatMap(({ type, params }) =>
    type === 'xstate.emit' ? [params.event as NegotiationFact] : []
  )
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

/** The parts of a message for comparison: an offer without its id, with its expiry in milliseconds since the start of the path. */
export function comparable(parts: readonly Part[], startMs: number): unknown[] {
  return parts.map(part => {
    const offer = 'data' in part ? offerIn({ parts: [part] }) : undefined
    return offer ? { round: offer.round, terms: offer.terms, inMs: Date.parse(offer.expiresAt) - startMs } : part
  })
}

/** The done event of the author's logic. */
function answered(negotiation: Negotiation, response: Response, nowMs: number): DoneActorEvent<Opinion> {
  const output = response instanceof Error ? failed : opinionIn(negotiation, response, nowMs)
  return { type: 'xstate.done.actor.respond', actorId: 'respond', output }
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
