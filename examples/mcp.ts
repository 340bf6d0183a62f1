import { dataOf, defineAgent, progress, setupWork, text, typed } from 'taskchart'
import { assign, emit } from 'xstate'
import { z } from 'zod'

const shirt = z.object({ size: z.enum(['small', 'large']), colour: z.string().default('white') })

/**
 * Sews a shirt, over two protocols: `taskchart serve --mcp` serves it to clients of A2A, and to hosts that speak the
 * Model Context Protocol. There the question of its chart is a form, with a field for each property of the schema.
 */
const tailor = setupWork({ types: { context: typed<z.infer<typeof shirt>>() } }).createMachine({
  id: 'tailor',
  context: { size: 'small', colour: 'white' },
  initial: 'measuring',
  states: {
    measuring: {
      tags: 'input-required',
      meta: { prompt: 'Which shirt?', schema: shirt },
      on: { 'message.received': { target: 'sewing', actions: assign(({ event }) => dataOf(event, shirt)) } }
    },
    sewing: {
      entry: emit(({ context }) => progress(`Sewing a ${context.size} one.`)),
      after: { 500: 'sewn' }
    },
    sewn: { type: 'final' }
  },
  output: ({ context: { size, colour } }) => ({
    artifact: { name: 'label.txt', parts: [text(`A ${size} ${colour} shirt.`)] }
  })
})

export default defineAgent({
  card: {
    name: 'Tailor',
    description: 'Sews shirts.',
    skills: [
      { id: 'shirt', name: 'Sew a shirt', description: 'Asks for the size.', tags: ['clothes'], examples: ['a shirt'] }
    ]
  },
  work: tailor
})
