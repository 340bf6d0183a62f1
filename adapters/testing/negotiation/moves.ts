import type { Terms } from '../../../machines/negotiation-events.ts'
import type { Words } from '../../../runtime/authoring/words.ts'
import type { NegotiationAnswer } from '../../../runtime/negotiation/negotiation.ts'
import { checkArgument, withMembers } from '../../../runtime/primitives/options.ts'

/** A result of the author's `respond`: an answer, or an Error that it throws. */
export type Response = NegotiationAnswer<object> | Error

/** One event of a negotiation under test: a message of the client, the result of `respond`, or time. */
export type BargainMove =
  | { readonly type: 'words'; readonly name: string; readonly words: Words }
  /** `taken`: the terms after validation; absent if the schema refuses them. */
  | { readonly type: 'proposal'; readonly name: string; readonly terms: object; readonly taken?: Terms }
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
