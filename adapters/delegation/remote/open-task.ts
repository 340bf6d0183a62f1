import type { StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import type { AgentClient } from '../../client/connect.ts'
import { isLost, isNotDoneThere } from './remote-errors.ts'

/** What opens a task, once. */
export interface Opening {
  readonly client: AgentClient
  /** Its id and context are the same at each try. */
  readonly message: Message & { readonly contextId: string }
  /** Whether no other message has this context. */
  readonly isOwnContext: boolean
  /** Whether it may have been sent before. */
  readonly isAgain: boolean
  readonly signal: AbortSignal
  /** Throws if nobody wants the task any more. */
  readonly checkWanted: () => void
  /** Hears the id of a task that was found. */
  readonly identify: (id: string) => void
  /** Whether the id is known. */
  readonly isKnown: () => boolean
  readonly take: (events: AsyncIterable<StreamResponse>) => Promise<void>
}

/**
 * Sends the message that opens a task, and passes on what is told until the task ends, asks, or the stream does. One that
 * may have been sent before, or was cut off on its way, is looked for first. An agent that takes a message of one id once
 * is never asked twice; of others only those that list their tasks are not.
 */
export async function openTask(opening: Opening): Promise<void> {
  const { client, message, isAgain, signal, checkWanted, identify, isKnown, take } = opening
  const found = isAgain ? await taskOf(opening) : undefined
  if (found) return identify(found.id)
  checkWanted()
  try {
    await take(client.sendStreamingMessage({ message }, { signal }))
  } catch (error) {
    // The stream stopped before its task did, and cannot be taken up again.
    if (isNotDoneThere(error) && isKnown()) return undefined
    if (isNotDoneThere(error)) return take(each(await client.sendMessage({ message, configuration: { returnImmediately: true } }, { signal })))
    if (isAgain || isKnown() || !isLost(error)) throw error
    return openTask({ ...opening, isAgain: true })
  }
}

/** The task that the message has opened, if the agent lists it. */
async function taskOf({ client, message: { contextId, messageId }, isOwnContext, signal }: Opening): Promise<Task | undefined> {
  try {
    const { tasks } = await client.listTasks({ contextId, pageSize: 100 }, { signal })
    return tasks.find(({ history = [] }) => isOwnContext || history.some(said => said.messageId === messageId))
  } catch (error) {
    if (isNotDoneThere(error)) return undefined
    throw error
  }
}

async function* each(event: StreamResponse): AsyncGenerator<StreamResponse> {
  yield event
}
