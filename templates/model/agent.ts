import { openai } from '@ai-sdk/openai'
import { tool, type LanguageModel } from 'ai'
import { defineAgent } from 'taskchart'
import { modelWork } from 'taskchart/ai'
import { z } from 'zod'

/** A language model does the work: its text streams as an artifact. Before it calls the tool, the client is asked. */
export function ticketAgent(model: LanguageModel) {
  return defineAgent({
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
      instructions: 'You buy tickets. A ticket is 29 euros. Say so, then buy it.',
      tools: {
        buy: tool({
          description: 'Buys a ticket.',
          inputSchema: z.object({ to: z.string(), euros: z.number().positive() }),
          execute: async ({ to, euros }) => `A ticket to ${to}, paid ${euros} euros.`
        })
      },
      toolApproval: { buy: 'user-approval' }
    })
  })
}

/** Every provider of the AI SDK will do. This one reads its key from OPENAI_API_KEY. */
export default ticketAgent(openai('gpt-5-mini'))
