import { defineAgent, reply } from 'taskchart'

/** Returns the message: a message-only agent (no tasks, no states). */
export default defineAgent({
  card: { name: 'Echo', description: 'Says what it hears.' },
  negotiate: ({ message }) => reply(message.parts)
})
