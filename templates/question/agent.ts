import { data, defineAgent, inputRequired, progress } from 'taskchart'
import { z } from 'zod'

const day = z.iso.date('has to be a day, as in 2027-05-01')
const guests = z.coerce.number('has to be a number').int('has to be a whole number').min(1, 'has to be 1 at least')

/**
 * Work is an async generator: it reports progress with `yield` and asks with `yield*`. The task waits for the answer,
 * after minutes or months. An answer that does not match the schema is refused, and the question stays open.
 */
export default defineAgent({
  card: {
    name: 'Reservations',
    description: 'Reserves a table.',
    skills: [
      {
        id: 'reserve',
        name: 'Reserve a table',
        description: 'Asks for the day and the number of guests.',
        tags: ['restaurant'],
        examples: ['a table']
      }
    ]
  },
  work: async function* () {
    const reservation = {
      day: yield* inputRequired('For which day?', { schema: day }),
      guests: yield* inputRequired('For how many guests?', { schema: guests })
    }
    yield progress('Looking for a table.')
    return {
      artifact: { name: 'reservation.json', parts: [data(reservation)] },
      message: `A table for ${reservation.guests} on ${reservation.day}.`
    }
  }
})
