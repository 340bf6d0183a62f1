import { accepted, declined, defineAgent, negotiation, offer, reply, textOf } from 'taskchart'
import { z } from 'zod'

const ASKED = 60
const LEAST = 45

/**
 * Mows lawns, and negotiates the price first: a hybrid agent. It answers with messages until both sides agree, and with
 * a task from then on. Its work gets the agreed terms.
 */
export default defineAgent({
  card: {
    name: 'Gardener',
    description: 'Mows your lawn, for a price that we agree upon.',
    skills: [
      {
        id: 'mow',
        name: 'Mow a lawn',
        description: 'Mows a lawn at a price.',
        tags: ['garden'],
        examples: ['Mow my lawn', '40 euros?', 'Deal']
      }
    ]
  },
  negotiate: negotiation({
    terms: z.object({ euros: z.number().positive() }),
    offerMs: 24 * 3600 * 1000,
    respond: ({ message, proposal, standing }) => {
      const words = textOf(message)
      if (/\b(?:deal|ok|yes)\b/i.test(words)) return accepted()
      if (/\b(?:no|bye)\b/i.test(words)) return declined('A pity. Come again when the grass is higher.')
      const euros = proposal?.euros ?? eurosIn(words)
      if (euros === undefined)
        return standing
          ? reply(`It is ${standing.terms.euros} euros. Deal?`)
          : offer({ euros: ASKED }, { message: 'I would do it tomorrow.' })
      if (euros >= LEAST) return accepted({ euros })
      const between = Math.max(LEAST, Math.round(((standing?.terms.euros ?? ASKED) + euros) / 2))
      return offer({ euros: between }, { message: `Not for ${euros} euros, but I could come down a bit.` })
    }
  }),
  work: ({ terms }) => ({
    artifact: { name: 'receipt.txt', parts: [{ text: `One lawn, mown for ${terms.euros} euros.` }] }
  })
})

function eurosIn(words: string): number | undefined {
  const [figure] = /\d+/.exec(words) ?? []
  return figure === undefined ? undefined : Number(figure)
}
