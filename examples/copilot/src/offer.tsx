import { type ReactActivityMessageRenderer, useCopilotKit } from '@copilotkit/react-core/v2'
import type { FormEvent } from 'react'
import { z } from 'zod'

const NEGOTIATION = 'urn:taskchart:extension:negotiation:1'
const Offer = z.object({ offerId: z.string(), terms: z.record(z.string(), z.unknown()) })

/** An offer of the agent, with the three answers to it. Its terms become fields for a counter-offer. */
export const offerCard: ReactActivityMessageRenderer<z.infer<typeof Offer>> = {
  activityType: 'offer',
  content: Offer,
  render: ({ content: { offerId, terms }, agent }) => {
    const { copilotkit } = useCopilotKit()
    const send = (move: object) => {
      if (agent) void copilotkit.runAgent({ agent, forwardedProps: { [NEGOTIATION]: move } })
    }
    const counter = (event: FormEvent<HTMLFormElement>) => {
      event.preventDefault()
      const form = new FormData(event.currentTarget)
      const proposed = Object.entries(terms).map(([name, value]) => [
        name,
        typeof value === 'number' ? Number(form.get(name)) : form.get(name)
      ])
      send({ propose: { terms: Object.fromEntries(proposed) } })
    }
    return (
      <form className="card" onSubmit={counter}>
        {Object.entries(terms).map(([name, value]) => (
          <label key={name}>
            <span>{name}</span>
            <input name={name} defaultValue={String(value)} {...(typeof value === 'number' && { type: 'number' })} />
          </label>
        ))}
        <button type="button" onClick={() => send({ accept: { offerId } })}>
          Accept
        </button>
        <button>Counter</button>
        <button type="button" onClick={() => send({ decline: { offerId } })}>
          Decline
        </button>
      </form>
    )
  }
}
