import type { A2AError } from '../../../machines/protocol/errors.ts'
import { movePart, offerIn, type Offer } from '../../../machines/protocol/negotiation.ts'
import type { SendMessageResponse } from '../../../machines/protocol/objects.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import { NEGOTIATION_EXTENSION } from '../../../machines/protocol/uris.ts'
import { messageOf } from '../../../runtime/authoring/checked-words.ts'
import type { Caller } from '../run/callers.ts'
import { CONTEXT } from '../run/world.ts'
import { comparable, type Answer, type Heard } from './model.ts'
import type { BargainMove } from './moves.ts'

/** A move of the client. */
export type ClientMove = Exclude<BargainMove, { type: 'response' | 'time' }>

/** The client of a negotiation under test. After a restart of the agent it resends unanswered messages. */
export class Bargainer {
  /** The answers in order of arrival, each once. */
  readonly heard: Heard[] = []
  readonly #startMs: number
  readonly #waiting = new Map<number, Message>()
  #caller: Caller | undefined
  #offer: Offer | undefined
  #sent = 0

  /** `startMs`: the start of the path, in milliseconds since 1970. */
  constructor(caller: Caller, startMs: number) {
    this.#caller = caller
    this.#startMs = startMs
  }

  send(move: ClientMove): void {
    const request = this.#sent
    this.#sent += 1
    const message: Message = {
      messageId: `request-${request}`,
      contextId: CONTEXT,
      role: 'ROLE_USER',
      ...this.#contentOf(move)
    }
    this.#waiting.set(request, message)
    this.#put(request, message)
  }

  /** Ignores answers from now on: those that an ending process sends do not count. */
  leave(): void {
    this.#caller = undefined
  }

  /** Continues with another caller. `settled` resolves when the last resent message is processed, to keep the order. */
  async goOn(caller: Caller, settled: () => Promise<void>): Promise<void> {
    this.#caller = caller
    for (const [request, message] of this.#waiting) {
      this.#put(request, message)
      await settled()
    }
  }

  #put(request: number, message: Message): void {
    const caller = this.#caller
    const hear = (answer: Answer) => {
      if (this.#caller === caller && this.#waiting.delete(request)) this.heard.push({ request, answer })
    }
    caller?.send(message).then(
      answer => hear(this.#read(answer)),
      (error: A2AError) => hear({ error: error.code })
    )
  }

  #read(answer: SendMessageResponse): Answer {
    if ('message' in answer) {
      this.#offer = offerIn(answer.message) ?? this.#offer
      return { message: comparable(answer.message.parts, this.#startMs) }
    }
    const { status, metadata } = answer.task
    if (status.state === 'TASK_STATE_REJECTED') return { rejected: status.message?.parts }
    return { task: (metadata?.[NEGOTIATION_EXTENSION] as { terms?: unknown } | undefined)?.terms }
  }

  #contentOf(move: ClientMove): Pick<Message, 'parts'> {
    const offerId = (isStanding: boolean) => (isStanding ? this.#offer?.offerId : undefined) ?? 'nobody’s'
    switch (move.type) {
      case 'proposal':
        return { parts: [movePart({ propose: { terms: move.terms as never } })] }
      case 'accept':
        return { parts: [movePart({ accept: { offerId: offerId(move.isStanding) } })] }
      case 'decline':
        return { parts: [movePart({ decline: { offerId: offerId(move.isStanding) } })] }
      case 'words':
      default:
        return messageOf(move.words)
    }
  }
}
