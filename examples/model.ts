import { tool } from 'ai'
import { defineAgent } from 'taskchart'
import { modelWork } from 'taskchart/ai'
import { z } from 'zod'
import { scriptedModel } from './scripted-model.ts'

/** A model that calls the tool to buy, and reports the result. */
const model = scriptedModel(({ from, words }) => {
  if (from === 'user')
    return { say: 'I have found a ticket for 29 euros.', tool: 'buy', input: { what: words, euros: 29 } }
  return words === 'execution-denied' ? 'Then I leave it at that.' : `It is yours: ${words}.`
})

/**
 * Buys tickets: a model with a tool that needs approval. The text of the model streams as an artifact. Before the tool
 * is called, the client is asked. With a real model only one line changes: `model: openai('…')`.
 */
export default defineAgent({
  card: {
    name: 'Tickets',
    description: 'Buys tickets, if you say yes.',
    skills: [
      {
        id: 'buy',
        name: 'Buy a ticket',
        description: 'Buys the ticket in the message.',
        tags: ['travel'],
        examples: ['a ticket to Rome']
      }
    ]
  },
  work: modelWork({
    model,
    instructions: 'You buy tickets. Say what you have found, then buy it.',
    tools: {
      buy: tool({
        description: 'Buys something.',
        inputSchema: z.object({ what: z.string(), euros: z.number().positive() }),
        needsApproval: true,
        execute: async ({ what, euros }) => `${what}, paid ${euros} euros`
      })
    }
  })
})
