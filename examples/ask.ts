import { data, defineAgent, inputRequired } from 'taskchart'
import { z } from 'zod'

const day = z.iso.date('has to be a day, as in 2027-05-01')
const people = z.coerce
  .number('has to be a number')
  .int('has to be a whole number')
  .min(1, 'has to be 1 at least')
  .max(12, 'is more than we have chairs')

/**
 * Takes a reservation: a generator that asks two questions. An answer that does not match the schema is refused, and
 * the question stays.
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
      people: yield* inputRequired('For how many?', { schema: people })
    }
    return {
      artifact: { name: 'reservation.json', parts: [data(reservation)] },
      message: `A table for ${reservation.people} on ${reservation.day}.`
    }
  }
})
