import type { ErrorCode } from '../../../machines/protocol/errors.ts'
import type { MessagePolicy } from '../../../runtime/agent/policies.ts'
import { messageOf } from '../../../runtime/authoring/checked-words.ts'
import type { AllCases } from './cases.ts'
import type { Turn } from './model.ts'
import { eventOf, heardBy, type InnerMove, type Move } from './moves.ts'

/** A move that a task refuses, and with which error. */
export interface Refused {
  readonly move: Move
  readonly refusal: ErrorCode
}

/** What may happen after a turn: what the task takes, and what it refuses. */
export interface LegalMoves {
  readonly legal: readonly InnerMove[]
  readonly illegal: readonly Refused[]
}

/** What a client finds a task at, by the tags of its chart. */
export type Standing = 'working' | 'input-required' | 'auth-required' | 'over'

/** How the task of a chart stands after a turn. */
export function standingOf({ status, chart }: Turn): Standing {
  if (status !== 'active') return 'over'
  if (chart.hasTag('auth-required')) return 'auth-required'
  return chart.hasTag('input-required') ? 'input-required' : 'working'
}

/**
 * Every case as a move, sorted by whether the task takes it after this turn. An actor's end, an event and a timer can only
 * come where there is such an actor or timer, so that they are never illegal; of timers only the next can ring.
 */
export function legalMovesIn(turn: Turn, cases: AllCases, policy: MessagePolicy): LegalMoves {
  const standing = standingOf(turn)
  // What is queued is told of only when it is asked for: it is neither taken nor refused.
  const messages = standing === 'working' && policy === 'queue' ? [] : messagesOf(cases)
  const authorizations = Object.entries(cases.authorizations).map(([name, data]): InnerMove => ({ type: 'authorization', name, data }))
  const isHeard = standing === 'input-required' || standing === 'auth-required' || (standing === 'working' && policy === 'steer')
  const isAuthorized = standing === 'auth-required'
  const outside = [...messages.map(move => judged(turn, move, isHeard)), ...authorizations.map(move => judged(turn, move, isAuthorized))]
  const legal = outside.flatMap(({ move, refusal }) => (refusal === undefined ? [move] : []))
  const illegal = outside.flatMap(({ move, refusal }) => (refusal === undefined ? [] : [{ move, refusal }]))
  return standing === 'over' ? { legal, illegal } : { legal: [...legal, ...innerMoves(turn, cases), ...nextTimer(turn)], illegal }
}

/** Whether the task takes a move, if it hears such moves at all. */
function judged({ chart }: Turn, move: InnerMove, isHeard: boolean): { readonly move: InnerMove; readonly refusal?: ErrorCode } {
  if (!isHeard) return { move, refusal: 'UnsupportedOperation' }
  const heard = heardBy(chart, move)
  if ('violations' in heard) return { move, refusal: 'InvalidParams' }
  return chart.can(heard.event) ? { move } : { move, refusal: 'UnsupportedOperation' }
}

function messagesOf({ messages }: AllCases): InnerMove[] {
  return Object.entries(messages).map(([name, words]) => ({ type: 'message', name, message: { messageId: name, role: 'ROLE_USER', ...messageOf(words) } }))
}

/** The ends of the actors that live, and the events that they may send. */
function innerMoves({ chart }: Turn, { resultsOf, events }: AllCases): InnerMove[] {
  // Only what has a name in the chart's setup may live in it.
  const children = Object.entries(chart.children as Record<string, { readonly src: string }>)
  const ends = children.flatMap(([actor, { src }]) =>
    Object.entries(resultsOf(src)).map(([name, result]): InnerMove => ({ type: 'end', name, actor, src, result }))
  )
  const own = children.length === 0 ? [] : Object.entries(events).map(([name, event]): InnerMove => ({ type: 'event', name, event }))
  return [...ends, ...own.filter(move => chart.can(eventOf(move) as never))]
}

function nextTimer({ timers, nowMs }: Turn): InnerMove[] {
  const [timer] = timers.toSorted((one, other) => one.dueMs - other.dueMs)
  if (!timer) return []
  const delayMs = timer.dueMs - nowMs
  return [{ type: 'time', name: `${delayMs} ms`, timer: timer.id, event: timer.event, delayMs }]
}
