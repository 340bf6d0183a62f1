import { A2AError } from '../machines/protocol/errors.ts'
import type { OperationName, OperationRequests } from '../machines/protocol/operations.ts'
import type { GetTaskRequest } from '../machines/protocol/requests.ts'
import type { Caller } from './authentication.ts'
import type { Logger } from './logger.ts'

interface AuthorizedRequests extends OperationRequests {
  /** `runtime.authorized`, by which an out-of-band authorization reaches a task. */
  authorized: GetTaskRequest
}

/** An operation that somebody wants done: who, which, and with what parameters, which are good as far as their form goes. */
export type AuthorizationRequest = { [Name in keyof AuthorizedRequests]: Caller & { readonly operation: Name; readonly params: AuthorizedRequests[Name] } }[keyof AuthorizedRequests]

/**
 * Says whether a caller may do what it asks for: `true`, `false`, or the reason why not, which the client is told, such as
 * the scope that is missing. It is asked before anything is looked up, so that its answer tells nothing of what there is.
 * Anything else that it answers or throws is logged and means no.
 */
export type Authorize = (request: AuthorizationRequest) => boolean | string | Promise<boolean | string>

/** Resolves if the caller may; throws Forbidden otherwise (§13.1). */
export async function checkPermission(authorize: Authorize, logger: Logger, request: AuthorizationRequest): Promise<void> {
  const answer = await answerOf(authorize, logger, request)
  if (answer !== true) throw forbidden(request.operation, answer)
}

async function answerOf(authorize: Authorize, logger: Logger, request: AuthorizationRequest): Promise<boolean | string> {
  const { operation } = request
  try {
    const answer: unknown = await authorize(request)
    if (typeof answer === 'boolean' || typeof answer === 'string') return answer
    throw new TypeError(`authorize has to answer true, false or a reason, not ${typeof answer}`)
  } catch (error) {
    logger.error('authorize failed', { operation, error })
    return false
  }
}

function forbidden(operation: OperationName | 'authorized', reason: string | false): A2AError {
  return new A2AError('Forbidden', reason || `You may not use ${operation} here.`, { metadata: { operation } })
}
