import { artifactToRefine, defineAgent, failed, prerequisites, progress, rejected, text, textOf, type Task, type WorkArguments } from 'taskchart'

/** The bookings, found by the first words that match: the result, and how long booking takes. */
const OFFERS = [
  { kind: 'spa', asked: /\bspa\b/i, booked: 'An hour in the spa.', seconds: 1 },
  { kind: 'snowmobile', asked: /\bsnowmobile\b/i, booked: 'A day with a snowmobile.', seconds: 5 },
  { kind: 'hotel', asked: /\bhotel\b/i, booked: 'Three nights in a hotel.', seconds: 1 },
  { kind: 'flight', asked: /\b(?:flight|fly)\b/i, booked: 'A flight to Helsinki.', seconds: 1 }
]

/**
 * Books the parts of a trip concurrently. Each message opens a task of its own, which waits for the tasks that it is based on
 * (`referenceTaskIds`), and fails if one of them does. A message with `based on` and without references is based on a booking of
 * its context. If several are possible, the task asks the client.
 */
export default defineAgent({
  card: {
    name: 'Helsinki',
    description: 'Books flights, hotels, snowmobiles and spas, each in a task of its own.',
    skills: [
      {
        id: 'book',
        name: 'Book a part of a trip',
        description: 'Books what the message says, once the tasks that it refers to are done.',
        tags: ['travel'],
        examples: ['Book a flight to Helsinki.', 'Based on the flight, book a hotel.']
      }
    ]
  },
  deadlineMs: 24 * 3600 * 1000,
  work: async work => {
    const wish = textOf(work.message)
    const offer = OFFERS.find(({ asked }) => asked.test(wish))
    if (!offer) return rejected('I book flights, hotels, snowmobiles and spas.')

    const basis = await basisOf(work, offer)
    work.emit(progress(`Booking: ${offer.kind}.`))
    await work.sleep(offer.seconds * 1000)
    if (/\bigloo\b/i.test(wish)) return failed('All igloos are taken.')

    const before = basis.flatMap(({ artifacts = [] }) => artifacts.map(textOf))
    return { artifact: { name: `${offer.kind}.txt`, parts: [text([...before, offer.booked].join('\n'))] } }
  }
})

async function basisOf(work: WorkArguments, { kind }: (typeof OFFERS)[number]): Promise<Task[]> {
  const wish = textOf(work.message)
  if (work.message.referenceTaskIds || !/\bbased on\b/i.test(wish)) return prerequisites(work)
  const named = OFFERS.filter(offer => offer.kind !== kind && offer.asked.test(wish)).map(offer => `${offer.kind}.txt`)
  const [meant, ...others] = work.earlierArtifacts.filter(({ artifact: { name = '' } }) => named.includes(name))
  const { taskId } = meant && others.length === 0 ? meant : await artifactToRefine(work, { what: 'booking' })
  return [await work.readTask(taskId)]
}
