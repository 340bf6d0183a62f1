import type { Terms } from '../../../machines/negotiation-events.ts'
import type { Words } from '../../../runtime/authoring/words.ts'
import type { NegotiationAnswer } from '../../../runtime/negotiation/negotiation.ts'

/** What the author's `respond` may come to: an answer, or an Error that it throws. */
export type Response = NegotiationAnswer<object> | Error

/** One thing that happens in a negotiation under test. Messages of the client, the end of `respond`, and time. */
export type BargainMove =
  | { readonly type: 'words'; readonly name: string; readonly words: Words }
  /** `taken`: the terms as the schema gives them; none if it does not take them. */
  | { readonly type: 'proposal'; readonly name: string; readonly terms: object; readonly taken?: Terms }
  /** The offer that stands, or one that nobody has made. */
  | { readonly type: 'accept' | 'decline'; readonly isStanding: boolean }
  | { readonly type: 'response'; readonly name: string; readonly response: Response }
  | { readonly type: 'time'; readonly delayMs: number }

/** A move as the clause of a sentence: `the client accepts the offer`. */
export function describeBargainMove(move: BargainMove): string {
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
