import type { StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import type { AgentClient } from '../../client/connect.ts'
import { isLost, isNotDoneThere } from './remote-errors.ts'

/** A task to open once. */
export interface Opening {
  readonly client: AgentClient
  /** Its id and context are the same on every attempt. */
  readonly message: Message & { readonly contextId: string }
  /** Whether no other message has this context. */
  readonly isOwnContext: boolean
  /** Whether it may have been sent before. */
  readonly isAgain: boolean
  readonly signal: AbortSignal
  /** Throws if the task is no longer needed. */
  readonly checkWanted: () => void
  /** Called with the id of a task that was found. */
  readonly identify: (id: string) => void
  /** Whether the id is known. */
  readonly isKnown: () => boolean
  readonly take: (events: AsyncIterable<StreamResponse>) => Promise<void>
}

/**
 * Sends the message that opens a task, and forwards its events until the task ends or asks, or the stream ends. If the message may have
 * been sent before, or its connection was lost, the task is first looked up in the agent's list. An agent that processes a
 * resent message once opens one task in any case; another agent does so only if it lists its tasks.
 */
export async function openTask(opening: Opening): Promise<void> {
  const { client, message, isAgain, signal, checkWanted, identify, isKnown, take } = opening
  const found = isAgain ? await taskOf(opening) : undefined
  if (found) return identify(found.id)
  checkWanted()
  try {
    await take(client.sendStreamingMessage({ message }, { signal }))
  } catch (error) {
    if (isAgain || isKnown() || !isLost(error)) throw error
    return openTask({ ...opening, isAgain: true })
  }
}

/** The task that the message has opened, if the agent lists it. */
async function taskOf({
  client,
  message: { contextId, messageId },
  isOwnContext,
  signal
}: Opening): Promise<Task | undefined> {
  try {
    const { tasks } = await client.listTasks({ contextId, pageSize: 100 }, { signal })
    return tasks.find(({ history = [] }) => isOwnContext || history.some(said => said.messageId === messageId))
  } catch (error) {
    if (isNotDoneThere(error)) return undefined
    throw error
  }
}
