import type { AnyMachineSnapshot, EventObject, AnyActorRef, Snapshot } from 'xstate'
import type { Message } from '../../../machines/protocol/objects.ts'
import { doneType, errorType } from '../../../machines/xstate-names.ts'
import { checkArgument, withMembers } from '../../../runtime/primitives/options.ts'
import { validateAnswer, isClientInput, receivedAnswer, type AnswerValidation } from '../../../runtime/work-port.ts'
import { actorAt, endedIn } from './actors-in.ts'

/**
 * One event of a task under test. `name` is that of its case. Time passes until the next timers fire, all that are due
 * then.
 */
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
export type OutsideMove = Exclude<InnerMove, { type: 'time' }>

/**
 * An event that a chart has sent to itself: without a delay, or with one. A timer's event may also go to another actor.
 * `by`: the actor that has sent it instead, a chart that is walked too.
 */
export type OwnMove =
  | { readonly type: 'own'; readonly event: EventObject; readonly by?: string | undefined }
  | { readonly type: 'timer'; readonly timer: Timer }

/** One event of a chart, whatever its time. */
export type ChartMove = OutsideMove | OwnMove

/** The event of a move for the chart of the work. */
export function eventOf(move: OutsideMove): EventObject {
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
  if (result instanceof Error) return { type: errorType(actorId), actorId, error: result } as EventObject
  return { type: doneType(actorId), actorId, output: result } as EventObject
}

/**
 * A move as the chart receives it: an answer validated by the schema of the open question (`asks`: its key), or its
 * violations by field.
 */
export function receivedEvent(
  chart: AnyMachineSnapshot,
  move: OutsideMove,
  asks: string | undefined
): AnswerValidation<EventObject> {
  const event = eventOf(move)
  if (!isClientInput(event)) return { event: withId(event, chart) }
  const validated = validateAnswer(chart, event, asks)
  return 'violations' in validated ? validated : { ...validated, event: receivedAnswer(validated) }
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

/** A pending delayed event. */
export interface Timer {
  /** Unique among pending timers: the author's id, or the type of the event, with a number if another timer has it. */
  readonly id: string
  /** The id of `cancel`, if it has one. */
  readonly sendId?: string | undefined
  readonly event: EventObject
  /** Milliseconds since the start of the path. */
  readonly dueMs: number
  /** Whether it goes to another actor. */
  readonly isSent: boolean
  /** The paths of the actors that sent and receive it, if charts among the actors are walked too. */
  readonly route?: Route
}

/** The way of an event, from actor to actor. The path of the chart itself is empty. */
export interface Route {
  readonly from: string
  readonly to: string
}

/** The state of a work's chart after one move, from XState's pure functions, with the effects of the move. */
export type WorkTurn = Snapshot<unknown> & {
  readonly chart: AnyMachineSnapshot
  /** The key of the open question. */
  readonly asks: string | undefined
  /** The events that it emitted. */
  readonly words: readonly unknown[]
  /** Whether the chart received an event, or started; otherwise a delayed event of its own went to an actor. */
  readonly hasMoved: boolean
  /** The events that it sent to actors. */
  readonly sent: readonly EventObject[]
  readonly timers: readonly Timer[]
  /**
   * The timers that `cancel` finds, by `sendId`. As in XState the id of a second timer no longer finds the first, which
   * then fires in any case. After either has fired the id finds none.
   */
  readonly cancelable: Readonly<Record<string, Timer>>
  /** The events that it sent to itself without a delay, which it receives before any other. */
  readonly inbox: readonly EventObject[]
  /** The actors of the chart that have ended. It keeps them until it leaves the state that invoked them. */
  readonly ended: readonly AnyActorRef[]
  readonly nowMs: number
  /**
   * The turns before this one that the same move led to: of events that it sent to itself, and of timers that are due
   * with it.
   */
  readonly passed: readonly WorkTurn[]
  /**
   * The turns after this one, of the events in `inbox`, if charts among the actors are walked too: these have sent
   * them.
   */
  readonly ahead?: readonly Ahead[]
  /**
   * The last turn in which the chart received an event, if only its actors have since, without a question of theirs.
   * Its question is already published.
   */
  readonly lastReceived?: WorkTurn
  /**
   * When each actor was made, by path, if charts among the actors are walked too: each turn has other objects for the
   * same actors.
   */
  readonly births?: Readonly<Record<string, number>>
}

/** A turn to come, its event, and the actor that sent it; the chart itself has no name. */
export interface Ahead {
  readonly event: EventObject
  readonly by: string | undefined
  readonly turn: WorkTurn
}
