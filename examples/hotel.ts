import { artifact, defineAgent, inputRequired, progress, text, textOf } from 'taskchart'

/** Books a room: the agent to which the travel desk of delegate.ts delegates. */
export default defineAgent({
  card: {
    name: 'Hotel',
    description: 'Books a room.',
    skills: [
      {
        id: 'room',
        name: 'Book a room',
        description: 'Books a room in the place of the message.',
        tags: ['travel'],
        examples: ['a room in Helsinki']
      }
    ]
  },
  work: async function* ({ message }) {
    yield progress(`Looking for ${textOf(message)}.`)
    const night = textOf(yield* inputRequired('For which night?'))
    yield artifact({ name: 'booking.txt', parts: [text(`Room 7, on ${night}.`)] })
    return { message: 'Sleep well!' }
  }
})
