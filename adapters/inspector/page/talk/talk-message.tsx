import { isObject } from '../../../../machines/protocol/codec/json.ts'
import { offerIn } from '../../../../machines/protocol/negotiation.ts'
import type { Message, Part } from '../../../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../../../machines/protocol/uris.ts'
import { MessageView } from '../content/parts-view.tsx'
import { moveOf, type TalkItem } from './conversation.ts'
import { OfferCard, Terms } from './offer-card.tsx'
import { choicesIn, choiceText } from './question-form.tsx'

/** The meaning of the client's answers: the state of offers by their ids, and the labels of choices by their JSON. */
export interface Answers {
  readonly offers: ReadonlyMap<string, string>
  readonly choices: ReadonlyMap<string, string>
}

/** A message of the conversation, with its offer as a card and its move in words. */
export function TalkMessage({
  message,
  standsHere,
  answers
}: {
  readonly message: Message
  readonly standsHere: string | undefined
  readonly answers: Answers
}) {
  const offer = message.role === 'ROLE_AGENT' ? offerIn(message) : undefined
  const move = message.role === 'ROLE_USER' ? moveOf(message) : undefined
  const parts =
    message.role === 'ROLE_USER' || offer
      ? message.parts.filter(part => !isNegotiating(part)).map(part => named(part, answers.choices))
      : message.parts
  return (
    <>
      {parts.length > 0 && <MessageView message={{ ...message, parts }} />}
      {move && <MoveView move={move} />}
      {offer && <OfferCard offer={offer} standsHere={standsHere} answer={answers.offers.get(offer.offerId)} />}
    </>
  )
}

function isNegotiating(part: Part): boolean {
  return 'data' in part && isObject(part.data) && Object.hasOwn(part.data, NEGOTIATION_EXTENSION)
}

function MoveView({ move }: { readonly move: Readonly<Record<string, unknown>> }) {
  const { propose } = move
  const terms = isObject(propose) && isObject(propose['terms']) ? propose['terms'] : undefined
  return (
    <article class="message message-client" aria-label="The client says">
      <header class="quiet" aria-hidden="true">
        client
      </header>
      <p>
        {terms ? 'Proposes other terms:' : move['accept'] !== undefined ? 'Accepts the offer.' : 'Declines the offer.'}
      </p>
      {terms && <Terms terms={terms} />}
    </article>
  )
}

/** A choice as its label. */
function named(part: Part, choices: Answers['choices']): Part {
  const text = 'data' in part ? choices.get(JSON.stringify(part.data)) : undefined
  return text === undefined ? part : { text }
}

/** The client's answers in a conversation. */
export function answersIn(items: readonly TalkItem[]): Answers {
  const [offers, choices] = [new Map<string, string>(), new Map<string, string>()]
  for (const item of items) {
    if (item.kind === 'question')
      for (const part of choicesIn(item.status.message))
        choices.set(JSON.stringify('data' in part ? part.data : null), choiceText(part))
    const { accept, decline } =
      (item.kind === 'message' && item.message.role === 'ROLE_USER' && moveOf(item.message)) || {}
    if (isObject(accept)) offers.set(String(accept['offerId']), 'accepted')
    if (isObject(decline)) offers.set(String(decline['offerId']), 'declined')
  }
  return { offers, choices }
}
