import { z } from 'zod'
import { apiKey } from '../../adapters/auth/index.ts'
import { defineAgent } from '../../runtime/agent/define-agent.ts'
import { inputRequired } from '../../runtime/authoring/questions.ts'
import { accepted, artifact, offer, progress, text, textOf } from '../../runtime/authoring/words.ts'
import { negotiation } from '../../runtime/negotiation/negotiation.ts'

/** The callers and their keys. */
export const KEYS = { anna: 'the-soak-key-of-anna', ben: 'the-soak-key-of-ben' } as const

export const authenticate = apiKey({ keys: KEYS })

/** Its lowest price. */
const LEAST = 45

/**
 * Bargains, tells stories with a step, a sleep and a question, waits to be canceled, or ends at once: as its message
 * says.
 */
export const agent = defineAgent({
  card: { name: 'Soaked' },
  negotiate: negotiation({
    terms: z.object({ euros: z.number() }),
    rounds: 5,
    offerMs: 600_000,
    respond: ({ proposal }) => {
      if (!proposal) return accepted({ euros: 0 })
      return proposal.euros < LEAST ? offer({ euros: LEAST }) : accepted()
    }
  }),
  work: async function* ({ message, terms, step, sleep }) {
    const errand = textOf(message)
    if (errand === 'wait') yield* inputRequired('Until when?')
    if (errand !== 'story') return { artifact: text(`for ${terms.euros}`) }
    yield progress('begun')
    const drawn = await step('draw', () => Math.random())
    for (let page = 0; page < 8; page += 1)
      yield artifact({ artifactId: 'story', parts: [text(`page ${page} of ${drawn}`)] }, { append: page > 0 })
    await sleep(5)
    const colour = textOf(yield* inputRequired('Which colour?'))
    return { artifact: { artifactId: 'end', parts: [text(`${colour}, ${drawn}`)] } }
  }
})
