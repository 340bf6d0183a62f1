import type { AgentClient } from '../client/agent-client.ts'
import {
  conversation,
  watchTask,
  type Conversation,
  type ConversationView,
  type TaskView,
  type WatchedTask
} from '../client/connect.ts'
import { useGivenAgent, useOpened, useStore } from './use-agent.ts'

/** A conversation, and the functions that continue it. */
export interface UsedConversation extends ConversationView, Pick<Conversation, 'send' | 'more'> {}

/**
 * A conversation: that of a context, which is read, or a new one without `contextId`. A new one continues if its own
 * `contextId` is passed later. The agent is that of `AgentProvider`, unless you pass one. Streams end with the
 * component; tasks continue.
 */
export function useConversation(contextId?: string, agent?: AgentClient): UsedConversation {
  const given = useGivenAgent('useConversation', agent)
  const store = useStore<ConversationView, Conversation>(
    given,
    contextId,
    () => conversation(given, contextId),
    ({ snapshot }) => contextId !== undefined && snapshot().contextId === contextId
  )
  return { ...useOpened(store), send: store.send, more: store.more }
}

/** A task, and the functions that continue it. */
export interface UsedTask extends TaskView, Pick<WatchedTask, 'answer' | 'cancel'> {}

/** A task, until it ends. The agent is that of `AgentProvider`, unless you pass one. */
export function useTask(taskId: string, agent?: AgentClient): UsedTask {
  const given = useGivenAgent('useTask', agent)
  const store = useStore(given, taskId, () => watchTask(given, taskId))
  return { ...useOpened(store), answer: store.answer, cancel: store.cancel }
}

export { AgentProvider } from './use-agent.ts'
export { useAgent } from './use-agent.ts'
export type { AgentConnection } from './use-agent.ts'
