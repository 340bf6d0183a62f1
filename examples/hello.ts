import { defineAgent, text, textOf } from 'taskchart'

/** Says hello: the shortest agent. The return value of the function completes the task. */
export default defineAgent({
  card: { name: 'Hello', description: 'Says hello to whoever is named.' },
  work: async ({ message }) => ({ artifact: text(`Hello, ${textOf(message)}!`) })
})
