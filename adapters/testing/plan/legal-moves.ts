import type { AnyMachineSnapshot, EventObject } from 'xstate'
import type { ErrorCode } from '../../../machines/protocol/errors.ts'
import { messageOf } from '../../../runtime/authoring/checked-words.ts'
import { type MessagePolicy, openQuestion } from '../../../runtime/work-port.ts'
import { shownIn } from './actors-in.ts'
import type { AllCases } from './cases.ts'
import { livingIn, nextTimer } from './model.ts'
import { eventOf, receivedEvent, type OutsideMove, type InnerMove, type Move, type WorkTurn } from './moves.ts'

/** A refused move, and its error code. */
export interface Refused {
  readonly move: Move
  readonly refusal: ErrorCode
}

/** The moves after a turn that the task accepts, and those that it refuses. */
export interface LegalMoves {
  readonly legal: readonly InnerMove[]
  readonly illegal: readonly Refused[]
}

/** The state of a task for its client, by the tags of its chart. */
export type ClientTaskState = 'working' | 'input-required' | 'auth-required' | 'over'

/** Whether a chart accepts the event of a move. */
export type Can = (chart: AnyMachineSnapshot, event: EventObject, move: OutsideMove) => boolean

/** The standing of a chart's task after a turn. */
export function standingOf({ status, chart, asks }: WorkTurn): ClientTaskState {
  return status === 'active' ? (openQuestion(chart, asks)?.type ?? 'working') : 'over'
}

/**
 * Every case as a move, sorted into accepted and refused after this turn. Ends of actors, events and timers are never
 * illegal, since they occur only if there is such an actor or timer. Of several timers only the next can fire.
 */
export function legalMovesIn(turn: WorkTurn, cases: AllCases, policy: MessagePolicy, can: Can): LegalMoves {
  const standing = standingOf(turn)
  // A queued message has no effect until a question, so it is neither accepted nor refused.
  const messages = standing === 'working' && policy === 'queue' ? [] : messagesOf(cases)
  const authorizations = Object.entries(cases.authorizations).map(([name, data]): OutsideMove => ({
    type: 'authorization',
    name,
    data
  }))
  const isReceived =
    standing === 'input-required' || standing === 'auth-required' || (standing === 'working' && policy === 'deliver')
  const isAuthorized = standing === 'auth-required'
  const outside = [
    ...messages.map(move => withRefusal(turn, move, isReceived, can)),
    ...authorizations.map(move => withRefusal(turn, move, isAuthorized, can))
  ]
  const legal = outside.flatMap(({ move, refusal }) => (refusal === undefined ? [move] : []))
  const illegal = outside.flatMap(({ move, refusal }) => (refusal === undefined ? [] : [{ move, refusal }]))
  return standing === 'over'
    ? { legal, illegal }
    : { legal: [...legal, ...innerMoves(turn, cases, can), ...nextTime(turn)], illegal }
}

/** Whether the task accepts a move, if it receives such moves at all. */
function withRefusal(
  { chart, asks }: WorkTurn,
  move: OutsideMove,
  isReceived: boolean,
  can: Can
): { readonly move: OutsideMove; readonly refusal?: ErrorCode } {
  if (!isReceived) return { move, refusal: 'UnsupportedOperation' }
  const received = receivedEvent(chart, move, asks)
  if ('violations' in received) return { move, refusal: 'InvalidParams' }
  return can(received.question?.chart ?? chart, received.event, move)
    ? { move }
    : { move, refusal: 'UnsupportedOperation' }
}

function messagesOf({ messages }: AllCases): OutsideMove[] {
  return Object.entries(messages).map(([name, words]) => ({
    type: 'message',
    name,
    message: { messageId: name, role: 'ROLE_USER', ...messageOf(words) }
  }))
}

/** The ends of live actors, and the events that they may send. */
function innerMoves(turn: WorkTurn, { resultsOf, events }: AllCases, can: Can): OutsideMove[] {
  // Only actors named in the chart's setup may exist.
  const children = Object.entries(livingIn(turn))
  const ends = children.flatMap(([actor, { src }]) =>
    Object.entries(resultsOf(src)).map(([name, result]): OutsideMove => ({ type: 'end', name, actor, src, result }))
  )
  const own =
    children.length === 0
      ? []
      : Object.entries(events).map(([name, event]): OutsideMove => ({ type: 'event', name, event }))
  return [
    ...ends,
    ...own.filter(move => {
      const event = eventOf(move)
      const shown = shownIn(event)
      return shown === undefined ? can(turn.chart, event, move) : children.some(([path]) => path === shown)
    })
  ]
}

function nextTime(turn: WorkTurn): InnerMove[] {
  const timer = nextTimer(turn)
  if (!timer) return []
  const delayMs = timer.dueMs - turn.nowMs
  return [{ type: 'time', name: `${delayMs} ms`, delayMs }]
}
