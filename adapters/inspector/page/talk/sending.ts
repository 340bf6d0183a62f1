import { computed, signal } from '@preact/signals'
import type { JsonValue } from '../../../../machines/protocol/codec/json.ts'
import type { Message, Part } from '../../../../machines/protocol/objects.ts'
import { nameQuestion } from '../../../client/messages.ts'
import { agent } from '../agent/agent.ts'
import { askHub, authorized } from '../feed/feed.ts'
import { hubNow } from '../page.ts'
import { choose, contextId, phoneView } from '../selection.ts'
import { errorText } from '../wording.ts'

/** A message that this page sent or got without a task, with its time. */
export interface Spoken {
  readonly message: Message
  readonly atMs: number
}

/** The maximum number of kept messages. */
const MOST_SPOKEN = 200

/** The messages that this page has sent, and the answers without a task, oldest first. */
export const spoken = signal<readonly Spoken[]>([])

/** Whether a message is being sent. */
export const isSending = signal(false)

/** Why the last message was refused. */
export const sendError = signal<string | undefined>(undefined)

/** The destination of a message: a task, a context, or, with neither, a new context. */
export interface Destination {
  readonly taskId?: string | undefined
  readonly contextId?: string | undefined
  /** The task's question that the message answers. */
  readonly question?: Message | undefined
  /** A task that the message refers to. */
  readonly reference?: string | undefined
}

/** Sends a message, and chooses the resulting task. Resolves with whether the agent accepted it. */
export async function sendParts(
  parts: Part[],
  { taskId, contextId: to, question, reference }: Destination
): Promise<boolean> {
  const client = agent.peek()
  if (!client) {
    sendError.value = 'The agent is not connected. The page reconnects automatically.'
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
  const sentMs = hubNow()
  isSending.value = true
  sendError.value = undefined
  try {
    const answer = await client.sendMessage({
      message: nameQuestion(message, question),
      configuration: { returnImmediately: true }
    })
    const context = ('task' in answer ? answer.task.contextId : answer.message.contextId) ?? to ?? contextId.peek()
    const here = context !== undefined && { contextId: context }
    const said = 'task' in answer ? [] : [{ message: { ...answer.message, ...here }, atMs: hubNow() }]
    spoken.value = [...spoken.peek(), { message: { ...message, ...here }, atMs: sentMs }, ...said].slice(-MOST_SPOKEN)
    phoneView.value = 'task'
    if ('task' in answer) choose(context, answer.task.id)
    else if (contextId.peek() !== context) choose(context)
    return true
  } catch (error) {
    sendError.value = errorText(error)
    return false
  } finally {
    isSending.value = false
  }
}

/** `randomUUID` exists only in secure contexts, which a remote http: page is not. */
function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), byte => byte.toString(16).padStart(2, '0')).join('')
}

/** Why the last authorization was refused. */
export const authorizeError = computed(() => authorized.value?.error)

/** Reports through the hub that a task was authorized out of band (§7.6.1): A2A has no operation for that. */
export function authorize(taskId: string, data: JsonValue | undefined): void {
  authorized.value = undefined
  askHub({ type: 'authorize', taskId, ...(data !== undefined && { data }) })
}
