import { defineAgent, text, textOf } from 'taskchart'
import { delegate, remoteAgent } from 'taskchart/delegation'

const { HOTEL_URL = 'http://127.0.0.1:4243/' } = process.env

/** The agent that books rooms: examples/hotel.ts, served on port 4243. */
const hotel = remoteAgent(HOTEL_URL, { name: 'the hotel' })

/**
 * A travel desk that has another agent book the room. The task of the hotel is a child of the desk's. The client of the
 * desk gets its progress and questions. Answers, cancel and deadlines are passed down. Both agents may be killed and
 * started again meanwhile (`--db FILE`): the desk finds the hotel's task again.
 */
export default defineAgent({
  card: {
    name: 'Travel desk',
    description: 'Plans a night away, and has a hotel book the room.',
    skills: [
      {
        id: 'night',
        name: 'A night away',
        description: 'Has a room booked in the place of the message.',
        tags: ['travel'],
        examples: ['a room in Helsinki']
      }
    ]
  },
  work: async work => {
    const { artifacts, message } = await delegate(work, hotel, work.message, { deadlineMs: 24 * 3600 * 1000 })
    const booking = artifacts.map(textOf).join(' ')
    return {
      artifact: { name: 'plan.txt', parts: [text(`Take the night train. ${booking}`)] },
      ...(message && { message })
    }
  }
})
