import { setTimeout as pause } from 'node:timers/promises'
import { artifact, authRequired, defineAgent, failed, inputRequired, progress, text, textOf } from 'taskchart'
import { z } from 'zod'

/** The budget: a number in text, as in `about 400 euros`, or in a data part. */
const budget = z
  .union([z.number(), z.string().transform(words => Number(/\d+/.exec(words)?.[0]))])
  .pipe(z.number('say how much in numbers').min(50, 'has to be 50 at least'))

/**
 * Plans a trip and books it: work as an async generator. It asks for a day and a budget, and sends an itinerary in
 * chunks. It waits until the payment is authorized out of band, and books in a step, which does not run twice.
 */
export default defineAgent({
  card: {
    name: 'Trip',
    description: 'Plans a trip of one day, and books it.',
    skills: [
      {
        id: 'trip',
        name: 'Plan a trip',
        description: 'Plans a trip to the place in the message.',
        tags: ['travel'],
        examples: ['a trip to Rome']
      }
    ]
  },
  work: async function* ({ message, step, signal }) {
    const place = placeIn(textOf(message))
    const day = textOf(yield* inputRequired(`Which day do you want to see ${place}?`))
    const euros = yield* inputRequired('How many euros may it cost?', { schema: budget })

    yield progress(`Looking at what there is in ${place} on ${day}.`)
    const stops = [
      `${day}, 9:00: the market of ${place}`,
      '12:30: lunch in the old town',
      `15:00: the museum, ${euros > 200 ? 'with' : 'without'} a guide`
    ]
    for (const [i, stop] of stops.entries()) {
      const isLast = i === stops.length - 1
      yield artifact(
        { artifactId: 'itinerary', name: 'itinerary.txt', parts: [text(`${stop}\n`)] },
        { append: i > 0, lastChunk: isLast }
      )
    }

    const authorization = yield* authRequired(`Please authorize a payment of ${euros} euros.`, {
      schema: z.object({ payment: z.string() })
    })
    if ('message' in authorization)
      return failed(`Not booked: "${textOf(authorization.message)}". Your itinerary is above.`)
    const { payment } = authorization.data
    const ticket = await step('book', ({ idempotencyKey }) => book(place, payment, idempotencyKey, signal))
    return { artifact: { name: 'ticket.txt', parts: [text(ticket)] }, message: `Have a nice day in ${place}!` }
  }
})

/** A pretended booking service. It processes each key once, so that a retry after a crash books nothing twice. */
async function book(place: string, payment: string, key: string, signal: AbortSignal): Promise<string> {
  await pause(1, undefined, { signal })
  return `One day in ${place}, paid by ${payment}, request ${key}`
}

function placeIn(words: string): string {
  return /\bto (?<place>\p{Lu}[\p{L}-]*)/u.exec(words)?.groups?.place ?? 'Bonn'
}
