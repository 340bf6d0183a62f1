import type { AnyActorRef } from 'xstate'
import type { MessagePolicy } from '../../runtime/outside-event.ts'
import { messageOf } from '../../runtime/outcomes.ts'
import type { AllCases } from './cases.ts'
import type { Turn } from './model.ts'
import { eventOf, type Move } from './moves.ts'

/** What may happen after a turn: what the task takes, and what it refuses. */
export interface Chances {
  readonly legal: readonly Move[]
  readonly illegal: readonly Move[]
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
export function chancesIn(turn: Turn, cases: AllCases, policy: MessagePolicy): Chances {
  const standing = standingOf(turn)
  const takes = (move: Move) => turn.chart.can(eventOf(move) as never)
  // What is queued is told of only when it is asked for: it is neither taken nor refused.
  const messages = standing === 'working' && policy === 'queue' ? [] : messagesOf(cases)
  const authorizations = Object.entries(cases.authorizations).map(([name, data]): Move => ({ type: 'authorization', name, data }))
  const isHeard = standing === 'input-required' || standing === 'auth-required' || (standing === 'working' && policy === 'steer')
  const outside = [
    ...messages.map(move => ({ move, isLegal: isHeard && takes(move) })),
    ...authorizations.map(move => ({ move, isLegal: standing === 'auth-required' && takes(move) }))
  ]
  const legal = outside.flatMap(({ move, isLegal }) => (isLegal ? [move] : []))
  const illegal = outside.flatMap(({ move, isLegal }) => (isLegal ? [] : [move]))
  return standing === 'over' ? { legal, illegal } : { legal: [...legal, ...innerMoves(turn, cases), ...nextTimer(turn)], illegal }
}

function messagesOf({ messages }: AllCases): Move[] {
  return Object.entries(messages).map(([name, words]) => ({ type: 'message', name, message: { messageId: name, role: 'ROLE_USER', ...messageOf(words) } }))
}

/** The ends of the actors that live, and the events that they may send. */
function innerMoves({ chart }: Turn, { resultsOf, events }: AllCases): Move[] {
  const children = Object.entries(chart.children) as [string, AnyActorRef][]
  const ends = children.flatMap(([actor, { src }]) =>
    Object.entries(resultsOf(String(src))).map(([name, result]): Move =>
      result instanceof Error ? { type: 'error', name, actor, src: String(src), error: result } : { type: 'output', name, actor, src: String(src), output: result }
    )
  )
  const own = children.length === 0 ? [] : Object.entries(events).map(([name, event]): Move => ({ type: 'event', name, event }))
  return [...ends, ...own.filter(move => chart.can(eventOf(move) as never))]
}

function nextTimer({ timers, nowMs }: Turn): Move[] {
  const [timer] = timers.toSorted((one, other) => one.dueMs - other.dueMs)
  if (!timer) return []
  const delayMs = timer.dueMs - nowMs
  return [{ type: 'time', name: `${delayMs} ms`, timer: timer.id, event: timer.event, delayMs }]
}
