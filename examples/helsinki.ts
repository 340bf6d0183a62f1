import {
  defineAgent,
  failed,
  progress,
  rejected,
  text,
  textOf,
  type Message,
  type Task,
  type WorkArguments
} from 'taskchart'

/** The bookings, found by the first words that match: the result, and how long booking takes. */
const OFFERS = [
  { kind: 'spa', asked: /\bspa\b/i, booked: 'An hour in the spa.', seconds: 1 },
  { kind: 'snowmobile', asked: /\bsnowmobile\b/i, booked: 'A day with a snowmobile.', seconds: 5 },
  { kind: 'hotel', asked: /\bhotel\b/i, booked: 'Three nights in a hotel.', seconds: 1 },
  { kind: 'flight', asked: /\b(?:flight|fly)\b/i, booked: 'A flight to Helsinki.', seconds: 1 }
]

type Offer = (typeof OFFERS)[number]

/**
 * Books the parts of a trip concurrently. Each message opens a task of its own, which waits for the tasks that it is
 * based on (`referenceTaskIds`), and fails if one of them does. A message without references may say what it is based
 * on: "based on the flight", "to the hotel booking", or "based on Task 1", the first task of its context. If several
 * are possible, the task asks the client.
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
    const offer = offerIn(work.message)
    if (!offer) return rejected('I book flights, hotels, snowmobiles and spas.')

    const basis = await basisOf(work)
    work.emit(progress(`Booking: ${offer.kind}.`))
    await work.sleep(offer.seconds * 1000)
    if (/\bigloo\b/i.test(wish)) return failed('All igloos are taken.')

    const before = basis.flatMap(({ artifacts = [] }) => artifacts.map(textOf))
    return { artifact: { name: `${offer.kind}.txt`, parts: [text([...before, offer.booked].join('\n'))] } }
  }
})

/** The words that name a basis: "based on …", "to the hotel booking". */
const BASIS = /\bbased on [^,.]*|\bto (?:the|my) (?:flight|hotel|snowmobile|spa)\b/i

/** The tasks that a booking is based on, once they are done. */
async function basisOf(work: WorkArguments): Promise<Task[]> {
  const [basis] = BASIS.exec(textOf(work.message)) ?? []
  if (work.message.referenceTaskIds?.length || basis === undefined) return work.prerequisites()
  const messages = await work.history(500)
  const opened = messages.filter(({ taskId }, at) => messages.findIndex(other => other.taskId === taskId) === at)
  const place = /\btask (\d+)\b/i.exec(basis)?.[1]
  const meant =
    place === undefined
      ? opened.filter(message => offerIn(message)?.asked.test(basis))
      : opened.slice(Number(place) - 1, Number(place))
  const taskId = meant.length === 1 ? meant[0]?.taskId : undefined
  return [await work.completed(taskId ?? (await work.artifactToRefine({ what: 'booking' })).taskId)]
}

/** What a message asks for, apart from what that is based on. */
function offerIn(message: Message): Offer | undefined {
  return OFFERS.find(({ asked }) => asked.test(textOf(message).replace(BASIS, '')))
}
