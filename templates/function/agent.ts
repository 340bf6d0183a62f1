import { defineAgent, text, textOf } from 'taskchart'

/** Work is a function: its return value completes the task. */
export default defineAgent({
  card: {
    name: 'Greeter',
    description: 'Greets by name.',
    skills: [
      {
        id: 'greet',
        name: 'Greet',
        description: 'Greets the person in the message.',
        tags: ['greeting'],
        examples: ['Ada']
      }
    ]
  },
  work: async ({ message }) => ({ artifact: { name: 'greeting.txt', parts: [text(`Hello, ${textOf(message)}!`)] } })
})
