import { isA2AError } from '../../../machines/protocol/errors.ts'
import { isInterrupted } from '../../../machines/protocol/states.ts'
import type { AgentClient } from '../../client/connect.ts'
import { isLost } from './remote-errors.ts'
import { type Answer, digestOf } from './remote-record.ts'

/** An answer to a task, which is delivered once. */
export interface Delivery {
  readonly client: AgentClient
  readonly answer: Answer
  readonly messageId: string
  readonly taskId: string
  /** Whether it may have been sent before. */
  readonly isAgain: boolean
  readonly signal: AbortSignal
}

/** Sends an answer. Resolves with the agent's reason for refusing it, or `undefined` if it was accepted. */
export async function deliver(delivery: Delivery): Promise<string | undefined> {
  const {
    client,
    answer: { content },
    messageId,
    taskId,
    isAgain,
    signal
  } = delivery
  if (isAgain && (await wasTaken(delivery))) return undefined
  try {
    const message = { ...content, messageId, role: 'ROLE_USER' as const, taskId }
    await client.sendMessage({ message, configuration: { returnImmediately: true, historyLength: 0 } }, { signal })
    return undefined
  } catch (error) {
    if (!isA2AError(error) || error.code === 'InvalidAgentResponse') throw error
    if (!isLost(error)) return error.message
    if (isAgain) throw error
    return deliver({ ...delivery, isAgain: true })
  }
}

/** Whether an answer has reached its task: it is in the history, or, without a history, the task's status has changed. */
async function wasTaken({ client, answer, messageId, taskId, signal }: Delivery): Promise<boolean> {
  const { status, history = [] } = await client.getTask({ id: taskId }, { signal })
  if (history.length > 0) return history.some(said => said.messageId === messageId)
  return !isInterrupted(status.state) || digestOf(status) !== answer.to
}
