import type { Message, Task } from 'taskchart'
import { connect } from 'taskchart/client'

/**
 * Books a trip with the agent of helsinki.ts: hotel and snowmobile concurrently, both based on the flight. Then it
 * books a spa, based on the hotel, while the snowmobile is not booked yet. All four are tasks of one context. Run it
 * with `npx tsx examples/helsinki-client.ts`, followed by the agent's address if it is not the default one.
 */
const [, , url = 'http://127.0.0.1:4242/'] = process.argv
const client = await connect(url)
const contextId = crypto.randomUUID()

/** Books something, based on other tasks of the context, and resolves when that is done. */
async function book(wish: string, ...basis: Task[]): Promise<Task> {
  console.log(`asked:  ${wish}`)
  const message: Message = {
    messageId: crypto.randomUUID(),
    contextId,
    role: 'ROLE_USER',
    parts: [{ text: wish }],
    referenceTaskIds: basis.map(({ id }) => id)
  }
  const answer = await client.sendMessage({ message })
  if (!('task' in answer)) throw new TypeError('This is not the agent of helsinki.ts.')
  console.log(`booked: ${namesOf(answer.task)}, based on ${basis.map(namesOf).join() || 'nothing'}`)
  return answer.task
}

function namesOf({ artifacts = [] }: Task): string {
  return artifacts.map(({ name }) => name).join()
}

const flight = await book('Book a flight to Helsinki.')
const snowmobile = book('Based on the flight, book a snowmobile activity.', flight)
const hotel = await book('Based on the flight, book a hotel.', flight)
await book('Add a spa reservation to the hotel booking.', hotel)
await snowmobile

const { tasks } = await client.listTasks({ contextId, includeArtifacts: true })
console.log(`${tasks.length} tasks, in the order in which they ended: ${tasks.toReversed().map(namesOf).join(', ')}`)
await client.close()
