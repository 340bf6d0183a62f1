import type { AnyMachineSnapshot, EventObject } from 'xstate'
import type { Message } from '../../../machines/protocol/parts.ts'
import { checkArgument, withMembers } from '../../../runtime/primitives/options.ts'
import type { Timer } from './model.ts'
import { answered, isGiven, type Heard } from '../../../runtime/work/chart-question.ts'
import { actorAt, endedIn } from './actors-in.ts'

/** One event of a task under test. `name` is that of its case. Time passes until the next timers fire, all that are due then. */
export type Move =
  | { readonly type: 'message'; readonly name: string; readonly message: Message }
  | { readonly type: 'authorization'; readonly name: string; readonly data: unknown }
  | {
      readonly type: 'end'
      readonly name: string
      readonly actor: string
      readonly src: string
      readonly result: unknown
    }
  | { readonly type: 'event'; readonly name: string; readonly event: EventObject }
  | { readonly type: 'time'; readonly name: string; readonly delayMs: number }
  | { readonly type: 'cancel' }

/** A move that the chart of the work receives. A cancel goes to its task only. */
export type InnerMove = Exclude<Move, { type: 'cancel' }>

/** A move that has an event from outside. */
export type HeardMove = Exclude<InnerMove, { type: 'time' }>

/**
 * An event that a chart has sent to itself: without a delay, or with one. A timer's event may also go to another actor. `by`: the actor that
 * has sent it instead, a chart that is walked too.
 */
export type OwnMove =
  | { readonly type: 'own'; readonly event: EventObject; readonly by?: string | undefined }
  | { readonly type: 'timer'; readonly timer: Timer }

/** One event of a chart, whatever its time. */
export type ChartMove = HeardMove | OwnMove

/** The event of a move for the chart of the work. */
export function eventOf(move: HeardMove): EventObject {
  switch (move.type) {
    case 'message':
      return { type: 'message.received', message: move.message } as EventObject
    case 'authorization':
      return { type: 'authorization.received', data: move.data } as EventObject
    case 'end':
      return endOf(move.actor, move.result)
    case 'event':
    default:
      return move.event
  }
}

/** The done or error event of an actor for its parent. */
function endOf(actorId: string, result: unknown): EventObject {
  if (result instanceof Error) return { type: `xstate.error.actor.${actorId}`, actorId, error: result } as EventObject
  return { type: `xstate.done.actor.${actorId}`, actorId, output: result } as EventObject
}

/** A move as the chart receives it: an answer validated by the schema of the open question (`asks`: its key), or its violations by field. */
export function heardBy(chart: AnyMachineSnapshot, move: HeardMove, asks: string | undefined): Heard<EventObject> {
  const event = eventOf(move)
  return isGiven(event) ? answered(chart, event, asks) : { event: withId(event, chart) }
}

/** The end of an actor, by the id that it has in this chart. */
function withId(event: EventObject, chart: AnyMachineSnapshot): EventObject {
  const path = endedIn(event)
  const id = path === undefined ? undefined : actorAt(chart, path)?.id
  return id === undefined || path === id
    ? event
    : ({ ...event, type: event.type.slice(0, -String(path).length) + id, actorId: id } as EventObject)
}

/** A move as a clause: `the client says "red"`. */
export function describeMove(move: Move | ChartMove): string {
  checkArgument(move, withMembers(['type'], 'a move of a path'), 'describeMove(move)')
  switch (move.type) {
    case 'message':
      return `the client says "${move.name}"`
    case 'authorization':
      return `"${move.name}" arrives`
    case 'end':
      return `${move.src} ends with ${move.result instanceof Error ? 'the error ' : ''}"${move.name}"`
    case 'event':
      return `the event "${move.name}" comes`
    case 'time':
      return `${move.name} pass`
    case 'own':
      return `it receives "${move.event.type}" from ${move.by ?? 'itself'}`
    case 'timer':
      return `${move.timer.dueMs} ms pass`
    case 'cancel':
    default:
      return 'the client cancels'
  }
}

/** A path as a sentence. */
export function sentenceOf(opening: string, moves: readonly Move[]): string {
  return [`opened by "${opening}"`, ...moves.map(describeMove)].join(', then ')
}
