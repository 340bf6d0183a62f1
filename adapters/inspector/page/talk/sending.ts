import { signal } from '@preact/signals'
import type { Message, Part } from '../../../../machines/protocol/parts.ts'
import { agent } from '../agent/agent.ts'
import { errorText } from '../frame/wording.ts'
import { choose, contextId } from '../selection.ts'
import { spokenContexts } from '../tasks/spoken-contexts.ts'

/** How many messages without a task are kept. */
const MOST_SPOKEN = 200

/** What was said to the agent, and by it, without a task, by the page; oldest first. */
export const spoken = signal<readonly Message[]>([])

/** Whether a message is under way. */
export const isSending = signal(false)

/** Why the last message was not taken. */
export const sendError = signal<string | undefined>(undefined)

/** Where a message goes: to a task, to a context, or, with neither, to a new one. */
export interface Destination {
  readonly taskId?: string | undefined
  readonly contextId?: string | undefined
  /** A task that it is about. */
  readonly reference?: string | undefined
}

/** Sends a message, and looks at what it led to. Resolves with whether the agent took it. */
export async function sendParts(parts: Part[], { taskId, contextId: to, reference }: Destination): Promise<boolean> {
  const client = agent.peek()
  if (!client) {
    sendError.value = 'The agent is not there. The page tries again by itself.'
    return false
  }
  const message: Message = {
    messageId: randomId(),
    role: 'ROLE_USER',
    parts,
    ...(taskId !== undefined && { taskId }),
    ...(to !== undefined && { contextId: to }),
    ...(reference !== undefined && { referenceTaskIds: [reference] })
  }
  isSending.value = true
  sendError.value = undefined
  try {
    const answer = await client.sendMessage({ message, configuration: { returnImmediately: true } })
    if ('task' in answer) choose(answer.task.contextId ?? contextId.peek(), answer.task.id)
    else keep(message, answer.message)
    return true
  } catch (error) {
    sendError.value = errorText(error)
    return false
  } finally {
    isSending.value = false
  }
}

/** A page that is not on loopback by name has no `randomUUID`. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), byte => byte.toString(16).padStart(2, '0')).join('')
}

function keep(sent: Message, reply: Message): void {
  const context = reply.contextId ?? sent.contextId
  if (context === undefined) return
  spoken.value = [...spoken.peek(), { ...sent, contextId: context }, { ...reply, contextId: context }].slice(-MOST_SPOKEN)
  spokenContexts.value = [...new Set([...spokenContexts.peek(), context])].slice(-MOST_SPOKEN)
  if (contextId.peek() !== context) choose(context)
}
