import type { Message } from '../machines/protocol/parts.ts'
import type { MessageContent } from '../machines/task-events.ts'
import type { Ids } from './ids.ts'

/** A message of the agent's (§4.1.4): with its context, and its task where there is one. */
export function agentMessage(content: MessageContent, place: { taskId?: string; contextId: string }, ids: Ids): Message {
  const { contextId, taskId } = place
  return { messageId: ids(), contextId, ...(taskId !== undefined && { taskId }), role: 'ROLE_AGENT', ...content }
}
