import { computed, signal } from '@preact/signals'
import { useId, useMemo, useState } from 'preact/hooks'
import { isObject } from '../../../../machines/protocol/codec/json.ts'
import { isNegotiationPart, offerIn, type Offer } from '../../../../machines/protocol/negotiation.ts'
import type { Message, Part } from '../../../../machines/protocol/objects.ts'
import { negotiate } from '../../../client/messages.ts'
import { fieldOf, formValue, startOf, termsField } from '../../../client/state/answer-form.ts'
import { choiceLabel, choicesIn, moveOf, moveWords } from '../../story/moments.ts'
import { FieldsView, titlesIn } from '../content/data-view.tsx'
import { MessageView } from '../content/parts-view.tsx'
import { hello } from '../feed/feed.ts'
import { nowMs } from '../page.ts'
import { contextId } from '../selection.ts'
import { leftText } from '../wording.ts'
import { standingOfferId, type TalkItem } from './conversation.ts'
import { SchemaField } from './question-form.tsx'
import { isSending, sendParts } from './sending.ts'

/** The meaning of the client's answers: the state of offers by their ids, and the labels of choices by their JSON. */
export interface Answers {
  readonly offers: ReadonlyMap<string, string>
  readonly choices: ReadonlyMap<string, string>
}

/** A message of the conversation, with its offer as a card and its move in words. */
export function TalkMessage({ message, answers }: { readonly message: Message; readonly answers: Answers }) {
  const offer = message.role === 'ROLE_AGENT' ? offerIn(message) : undefined
  const move = message.role === 'ROLE_USER' ? moveOf(message) : undefined
  const parts =
    message.role === 'ROLE_USER' || offer
      ? message.parts.filter(part => !isNegotiationPart(part)).map(part => named(part, answers.choices))
      : message.parts
  return (
    <>
      {parts.length > 0 && <MessageView message={{ ...message, parts }} />}
      {move && <MoveView move={move} />}
      {offer && <OfferCard offer={offer} answer={answers.offers.get(offer.offerId)} />}
    </>
  )
}

function MoveView({ move }: { readonly move: Readonly<Record<string, unknown>> }) {
  const { propose } = move
  const terms = isObject(propose) && isObject(propose['terms']) ? propose['terms'] : undefined
  return (
    <article class="message message-client" aria-label="The client says">
      <header class="quiet" aria-hidden="true">
        client
      </header>
      <p>{moveWords(move)}</p>
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
        choices.set(JSON.stringify('data' in part ? part.data : null), choiceLabel(part))
    const { accept, decline } =
      (item.kind === 'message' && item.message.role === 'ROLE_USER' && moveOf(item.message)) || {}
    if (isObject(accept)) offers.set(String(accept['offerId']), 'accepted')
    if (isObject(decline)) offers.set(String(decline['offerId']), 'declined')
  }
  return { offers, choices }
}

const titles = computed(() => titlesIn(hello.value?.agent.terms))

/** The offer whose counter-offer is being written. */
const countered = signal<string | undefined>(undefined)

/** Terms as fields with the titles of the agent's schema. */
function Terms({ terms }: { readonly terms: Readonly<Record<string, unknown>> }) {
  return <FieldsView fields={terms} titles={titles.value} />
}

/** An offer: its terms, how long it stands, and its answers. */
function OfferCard({ offer, answer }: { readonly offer: Offer; readonly answer: string | undefined }) {
  const { offerId, terms, expiresAt, round } = offer
  const leftMs = Date.parse(expiresAt) - nowMs.value
  const isStanding = standingOfferId.value === offerId && answer === undefined
  const isOpen = isStanding && leftMs > 0
  const say = (part: Part) => sendParts([part], { contextId: contextId.peek() })
  return (
    <section class={isOpen ? 'offer offer-open' : 'offer'} aria-label={`Offer ${round}`}>
      <header>
        <b>Offer</b>
        <span
          class={isOpen ? 'offer-time' : 'quiet'}
          role="timer"
          aria-live="off"
          title={`Until ${new Date(expiresAt).toLocaleString()}`}
        >
          {isOpen ? `stands for ${leftText(leftMs)}` : (answer ?? (leftMs > 0 ? 'no longer stands' : 'expired'))}
        </span>
      </header>
      <Terms terms={terms} />
      {isOpen && countered.value !== offerId && (
        <div class="offer-moves" role="group" aria-label="Answer the offer">
          <Move
            name="Accept"
            leadsTo="The work begins, with these terms."
            isMain
            act={() => void say(negotiate({ accept: offer }))}
          />
          <Move
            name="Counter…"
            leadsTo="You propose other terms, and the agent answers."
            act={() => (countered.value = offerId)}
          />
          <Move
            name="Decline"
            leadsTo="There is no deal, and no work begins."
            act={() => void say(negotiate({ decline: offer }))}
          />
        </div>
      )}
      {isOpen && countered.value === offerId && (
        <CounterForm terms={terms} propose={terms => say(negotiate({ propose: terms }))} />
      )}
    </section>
  )
}

interface MoveProps {
  readonly name: string
  /** Its effect, in a sentence. */
  readonly leadsTo: string
  readonly isMain?: boolean
  readonly act: () => void
}

/** An answer to an offer, beside what it leads to. */
function Move({ name, leadsTo, isMain = false, act }: MoveProps) {
  const id = useId()
  return (
    <>
      <button
        type="button"
        class={isMain ? 'main' : undefined}
        disabled={isSending.value}
        aria-describedby={id}
        onClick={act}
      >
        {name}
      </button>
      <span id={id}>{leadsTo}</span>
    </>
  )
}

/** A form for other terms, from the agent's schema, else from the terms offered. */
function CounterForm({
  terms,
  propose
}: {
  readonly terms: Readonly<Record<string, unknown>>
  readonly propose: (terms: object) => Promise<boolean>
}) {
  const field = useMemo(() => {
    const { terms: schema } = hello.peek()?.agent ?? {}
    return schema === undefined ? termsField(terms) : fieldOf(schema)
  }, [terms])
  const [draft, setDraft] = useState(() => startOf(field, terms))
  const [wrong, setWrong] = useState<string>()
  const submit = async (event: Event) => {
    event.preventDefault()
    const said = formValue(field, draft, '')
    if (!('value' in said) || !isObject(said.value))
      return setWrong('wrong' in said ? said.wrong : 'The terms are missing')
    setWrong(undefined)
    if (await propose(said.value)) countered.value = undefined
  }
  return (
    <form aria-label="Your terms" onSubmit={event => void submit(event)}>
      <SchemaField field={field} draft={draft} change={setDraft} title="" />
      {wrong !== undefined && <p class="wrong" role="alert">{`${wrong}.`}</p>}
      <div class="choices">
        <button type="submit" class="main" disabled={isSending.value}>
          Propose these terms
        </button>
        <button type="button" onClick={() => (countered.value = undefined)}>
          Back
        </button>
      </div>
    </form>
  )
}
