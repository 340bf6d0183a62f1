import type { AnyMachineSnapshot, EventObject } from 'xstate'
import type { FieldViolation } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { answered, isGiven } from '../../runtime/chart-question.ts'

/** One thing that happens to a task in a test. `type` says what; `name` is that of its case. */
export type Move =
  | { readonly type: 'message'; readonly name: string; readonly message: Message }
  | { readonly type: 'authorization'; readonly name: string; readonly data: unknown }
  | { readonly type: 'output'; readonly name: string; readonly actor: string; readonly src: string; readonly output: unknown }
  | { readonly type: 'error'; readonly name: string; readonly actor: string; readonly src: string; readonly error: unknown }
  | { readonly type: 'event'; readonly name: string; readonly event: EventObject }
  | { readonly type: 'time'; readonly name: string; readonly timer: string; readonly event: EventObject; readonly delayMs: number }
  | { readonly type: 'cancel' }

/** What a move is for the chart of the work; none for one that only its task hears. */
export function eventOf(move: Move): EventObject | undefined {
  switch (move.type) {
    case 'message':
      return { type: 'message.received', message: move.message } as EventObject
    case 'authorization':
      return { type: 'authorization.received', data: move.data } as EventObject
    case 'output':
      return { type: `xstate.done.actor.${move.actor}`, actorId: move.actor, output: move.output } as EventObject
    case 'error':
      return { type: `xstate.error.actor.${move.actor}`, actorId: move.actor, error: move.error } as EventObject
    case 'event':
    case 'time':
      return move.event
    case 'cancel':
      return undefined
  }
}

/** A move as a chart hears it: an answer with what its question's schema makes of it, or what is wrong with that, by field. */
export function heardBy(chart: AnyMachineSnapshot, move: Move): { readonly event: EventObject } | { readonly violations: readonly FieldViolation[] } | undefined {
  const event = eventOf(move)
  return event && (isGiven(event) ? answered(chart, event) : { event })
}

/** A move as the clause of a sentence: `the client says "red"`. */
export function clauseOf(move: Move): string {
  switch (move.type) {
    case 'message':
      return `the client says "${move.name}"`
    case 'authorization':
      return `"${move.name}" arrives`
    case 'output':
      return `${move.src} ends with "${move.name}"`
    case 'error':
      return `${move.src} ends with the error "${move.name}"`
    case 'event':
      return `the event "${move.name}" comes`
    case 'time':
      return `${move.name} pass`
    case 'cancel':
      return 'the client cancels'
  }
}

/** A path as a sentence. */
export function sentenceOf(opening: string, moves: readonly Move[]): string {
  return [`opened by "${opening}"`, ...moves.map(clauseOf)].join(', then ')
}
