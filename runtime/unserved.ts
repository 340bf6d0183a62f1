import { A2AError } from '../machines/protocol/errors.ts'
import type { OperationName, OperationRequests } from '../machines/protocol/operations.ts'
import type { CallContext } from './call.ts'

/** The operations that an agent may not offer. */
export type UnservedOperation = Exclude<
  OperationName,
  'sendMessage' | 'sendStreamingMessage' | 'getTask' | 'listTasks' | 'cancelTask' | 'subscribeToTask'
>

const NO_PUSH = ['PushNotificationNotSupported', 'This agent sends no push notifications. Subscribe to the task, or poll it with GetTask.'] as const
const NO_EXTENDED_CARD = ['UnsupportedOperation', 'This agent has no extended card. Its public card says all.'] as const

const REFUSALS = {
  createTaskPushNotificationConfig: NO_PUSH,
  getTaskPushNotificationConfig: NO_PUSH,
  listTaskPushNotificationConfigs: NO_PUSH,
  deleteTaskPushNotificationConfig: NO_PUSH,
  getExtendedAgentCard: NO_EXTENDED_CARD
} as const satisfies Record<UnservedOperation, readonly [string, string]>

/**
 * An operation that is refused, as its capability in the card says (§3.3.4), once the checks common to all operations are
 * made. Nobody has to be authorized for that.
 */
export function refused<Name extends UnservedOperation>(
  name: Name,
  check: (name: Name, params: unknown, call: CallContext) => unknown
): (params: OperationRequests[Name], call?: CallContext) => Promise<never> {
  return async (params, call = {}) => {
    check(name, params, call)
    const [code, message] = REFUSALS[name]
    throw new A2AError(code, message)
  }
}
