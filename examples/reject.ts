import { accepted, defineAgent, rejected, textOf } from 'taskchart'

/**
 * Bakes cakes, and rejects everything else: it opens a task that is rejected with the reason, so that the client can
 * list it and read why. The work of such a task never starts.
 */
export default defineAgent({
  card: {
    name: 'Baker',
    description: 'Bakes cakes, but no bread.',
    skills: [
      {
        id: 'bake',
        name: 'Bake a cake',
        description: 'Bakes the cake that the message names.',
        tags: ['food'],
        examples: ['an apple cake']
      }
    ]
  },
  negotiate: ({ message }) =>
    /\bbread\b/i.test(textOf(message)) ? rejected('I bake no bread. Ask me for a cake.') : accepted(),
  work: ({ message }) => ({
    artifact: { name: 'label.txt', parts: [{ text: `Fresh from the oven: ${textOf(message)}` }] }
  })
})
