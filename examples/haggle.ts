import {
  accepted,
  declined,
  defineAgent,
  negotiation,
  offer,
  progress,
  reply,
  setupNegotiation,
  setupWork,
  text,
  textOf,
  typed,
  type RespondArguments
} from 'taskchart'
import { emit } from 'xstate'
import { z } from 'zod'

const LEAST = 60
const terms = z.object({ euros: z.number().positive(), day: z.enum(['Friday', 'Saturday']) })
type Terms = z.output<typeof terms>

/** How the agent haggles. Each message of the client is an event, and the chart emits one answer to it. */
const haggling = setupNegotiation({
  types: { terms: typed(terms) },
  guards: {
    agrees: ({ event }) => /\b(?:deal|ok|yes)\b/i.test(textOf(event.message)),
    isEnough: ({ event }) => bidIn(event).euros >= LEAST,
    isLow: ({ event }) => bidIn(event).euros > 0 && bidIn(event).euros < LEAST
  }
}).createMachine({
  id: 'haggling',
  initial: 'opening',
  states: {
    opening: {
      on: {
        'message.received': {
          target: 'bargaining',
          actions: emit(({ event }) =>
            offer({ ...bidIn(event), euros: 100 }, { message: 'With a van and two people.' })
          )
        }
      }
    },
    bargaining: {
      initial: 'high',
      on: {
        'message.received': [
          { guard: 'agrees', target: 'agreed', actions: emit(accepted()) },
          { guard: 'isEnough', target: 'agreed', actions: emit(({ event }) => accepted(bidIn(event))) },
          { actions: emit(({ event }) => reply(`It is ${event.standing?.terms.euros} euros. Deal?`)) }
        ]
      },
      states: {
        high: {
          on: {
            'message.received': {
              guard: 'isLow',
              target: 'lowest',
              actions: emit(({ event }) => offer({ ...bidIn(event), euros: LEAST }, { message: 'My last word.' }))
            }
          }
        },
        lowest: {
          on: {
            'message.received': {
              guard: 'isLow',
              target: '#apart',
              actions: emit(declined('Then we cannot help you.'))
            }
          }
        }
      }
    },
    agreed: { type: 'final' },
    apart: { id: 'apart', type: 'final' }
  }
})

/** The work. It begins with the terms that both sides agreed on. */
const moving = setupWork({ types: { context: typed<Terms>(), terms: typed(terms) } }).createMachine({
  id: 'moving',
  context: ({ input }) => input.terms,
  initial: 'driving',
  states: { driving: { entry: emit(progress('On the road.')), after: { 1000: 'moved' } }, moved: { type: 'final' } },
  output: ({ context }) => ({
    artifact: { name: 'bill.txt', parts: [text(`Moved on ${context.day}, for ${context.euros} euros.`)] }
  })
})

const card = { name: 'Mover', description: 'Moves your furniture, for a price that we agree upon.' }
export default defineAgent({
  card,
  negotiate: negotiation({ terms, offerMs: 24 * 3600 * 1000, respond: haggling }),
  work: moving
})

/** What the client bids: the terms that it proposes, or those in its words. */
function bidIn({
  message,
  proposal,
  standing
}: Pick<RespondArguments<Terms>, 'message' | 'proposal' | 'standing'>): Terms {
  const words = textOf(message)
  const day = /saturday/i.test(words) ? 'Saturday' : (standing?.terms.day ?? 'Friday')
  return proposal ?? { euros: Number(/\d+/.exec(words) ?? 0), day }
}
