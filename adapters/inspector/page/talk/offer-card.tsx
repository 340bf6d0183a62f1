import { computed, signal } from '@preact/signals'
import { useMemo, useState } from 'preact/hooks'
import { isObject } from '../../../../machines/protocol/codec/json.ts'
import type { Offer } from '../../../../machines/protocol/negotiation.ts'
import type { Part } from '../../../../machines/protocol/objects.ts'
import { negotiate } from '../../../client/messages.ts'
import { FieldsView, titlesIn } from '../content/data-view.tsx'
import { hello } from '../feed/feed.ts'
import { contextChanges, contexts } from '../feed/known.ts'
import { nowMs } from '../page.ts'
import { contextId } from '../selection.ts'
import { leftText } from '../wording.ts'
import { SchemaField } from './schema-field.tsx'
import { fieldOf, startOf } from './schema-fields.ts'
import { formValue } from './schema-values.ts'
import { isSending, sendParts } from './sending.ts'

/** The id of the offer that stands in the chosen context, by the hub; `undefined` if it knows none. */
const standing = computed(() => {
  void contextChanges.value
  const row = contextId.value === undefined ? undefined : contexts.get(contextId.value)
  return row && { offerId: row.offer?.offerId }
})

const titles = computed(() => titlesIn(hello.value?.agent.terms))

/** The offer whose counter-offer is being written. */
const countered = signal<string | undefined>(undefined)

/** Terms as fields with the titles of the agent's schema. */
export function Terms({ terms }: { readonly terms: Readonly<Record<string, unknown>> }) {
  return <FieldsView fields={terms} titles={titles.value} />
}

/**
 * An offer: its terms, how long it stands, and its answers. `standsHere`: the offer that stands by the conversation
 * alone.
 */
export function OfferCard({
  offer,
  standsHere,
  answer
}: {
  readonly offer: Offer
  readonly standsHere: string | undefined
  readonly answer: string | undefined
}) {
  const { offerId, terms, expiresAt, round } = offer
  const leftMs = Date.parse(expiresAt) - nowMs.value
  const isStanding = (standing.value ? standing.value.offerId : standsHere) === offerId && answer === undefined
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
        <div class="choices" role="group" aria-label="Answer the offer">
          <button
            type="button"
            class="main"
            disabled={isSending.value}
            onClick={() => void say(negotiate({ accept: offer }))}
          >
            Accept
          </button>
          <button type="button" disabled={isSending.value} onClick={() => (countered.value = offerId)}>
            Counter…
          </button>
          <button type="button" disabled={isSending.value} onClick={() => void say(negotiate({ decline: offer }))}>
            Decline
          </button>
        </div>
      )}
      {isOpen && countered.value === offerId && (
        <CounterForm terms={terms} propose={terms => say(negotiate({ propose: terms }))} />
      )}
    </section>
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
  const field = useMemo(() => fieldOf(hello.peek()?.agent.terms ?? schemaLike(terms)), [terms])
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

/** A schema of terms like these. */
function schemaLike(terms: Readonly<Record<string, unknown>>): object {
  const properties = Object.entries(terms).map(
    ([name, value]) => [name, value === null || typeof value === 'object' ? {} : { type: typeof value }] as const
  )
  return { type: 'object', properties: Object.fromEntries(properties), required: Object.keys(terms) }
}
