import { accepted, declined, defineAgent, negotiation, offer, reply, text, textOf } from 'taskchart'
import { z } from 'zod'

const ASKED_EUROS = 60
const LEAST_EUROS = 45

/** `negotiate` answers with messages until both sides agree. Then it opens a task, whose work gets the agreed terms. */
export default defineAgent({
  card: {
    name: 'Gardener',
    description: 'Mows your lawn, for a price that you agree on.',
    skills: [
      {
        id: 'mow',
        name: 'Mow a lawn',
        description: 'Mows a lawn at a price.',
        tags: ['garden'],
        examples: ['Mow my lawn', '50 euros?', 'Deal']
      }
    ]
  },
  negotiate: negotiation({
    terms: z.object({ euros: z.number().positive() }),
    respond: ({ message, proposal, standing }) => {
      const words = textOf(message)
      if (standing && /\b(?:deal|ok|yes)\b/i.test(words)) return accepted()
      if (/\b(?:no|bye)\b/i.test(words)) return declined('Come again when the grass is higher.')
      const euros = proposal?.euros ?? eurosIn(words)
      if (euros !== undefined)
        return euros >= LEAST_EUROS
          ? accepted({ euros })
          : offer({ euros: LEAST_EUROS }, { message: `Not for ${euros} euros.` })
      return standing
        ? reply(`It is ${standing.terms.euros} euros. Deal?`)
        : offer({ euros: ASKED_EUROS }, { message: `It is ${ASKED_EUROS} euros. Deal?` })
    }
  }),
  work: async ({ terms }) => ({
    artifact: { name: 'receipt.txt', parts: [text(`One lawn, mown for ${terms.euros} euros.`)] }
  })
})

function eurosIn(words: string): number | undefined {
  const [figure] = /\d+/.exec(words) ?? []
  return figure === undefined ? undefined : Number(figure)
}
