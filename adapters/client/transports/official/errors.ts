import { isObject } from '../../../../machines/protocol/codec/json.ts'
import { A2AError, ERROR_INFO, isA2AError } from '../../../../machines/protocol/errors.ts'
import { fromWireError } from '../../../../machines/protocol/wire-errors.ts'
import { ConnectionLost } from '../../retries/lost-errors.ts'

/**
 * What the official client threw, as an error of ours: the agent's error by the reason that its class has, and
 * InvalidAgentResponse for the errors that it throws over answers it cannot read.
 */
export function officialError(error: unknown): unknown {
  if (error instanceof ConnectionLost || isA2AError(error)) return error
  const { message, reason, metadata } = error as { message: string; reason?: unknown; metadata?: unknown }
  if (typeof reason === 'string') return fromWireError({ message, data: [{ '@type': ERROR_INFO, reason, ...(isObject(metadata) && { metadata }) }] })
  return new A2AError('InvalidAgentResponse', `The agent's answer cannot be read: ${message}`, { cause: error })
}
