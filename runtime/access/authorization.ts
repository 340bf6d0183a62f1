import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { OperationName, OperationRequests } from '../../machines/protocol/operations.ts'
import type { GetTaskRequest } from '../../machines/protocol/requests.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { Caller } from './authentication.ts'
import type { Limits } from './limits.ts'
import { inTime } from './time-limit.ts'

interface AuthorizedRequests extends OperationRequests {
  /** `runtime.authorized`, by which an out-of-band authorization reaches a task. */
  authorized: GetTaskRequest
}

/** An operation that somebody wants done: who, which, and with what parameters, which are good as far as their form goes. */
export type AuthorizationRequest = { [Name in keyof AuthorizedRequests]: Caller & { readonly operation: Name; readonly params: AuthorizedRequests[Name] } }[keyof AuthorizedRequests]

/**
 * Says whether a caller may do what it asks for: `true`, `false`, or the reason why not, which the client is told, such as
 * the scope that is missing. It is asked before anything is looked up, so that its answer tells nothing of what there is.
 * Anything else that it answers or throws is logged and means no. `Overloaded`, an `A2AError`, says that nobody can tell just now,
 * as does an answer that has not come within `limits.accessMs`.
 */
export type Authorize = (request: AuthorizationRequest) => boolean | string | Promise<boolean | string>

/** What asks for permission works with. */
interface Asking {
  readonly logger: Logger
  readonly clock: Clock
  readonly limits: Limits
}

/** Resolves if the caller may; throws Forbidden otherwise (§13.1). */
export async function checkPermission(authorize: Authorize, services: Asking, request: AuthorizationRequest): Promise<void> {
  const answer = await answerOf(authorize, services, request)
  if (answer !== true) throw forbidden(request.operation, answer)
}

async function answerOf(authorize: Authorize, { logger, clock, limits }: Asking, request: AuthorizationRequest): Promise<boolean | string> {
  const { operation } = request
  try {
    const answer: unknown = await inTime<unknown>(authorize(request), limits.accessMs, 'authorize', clock)
    if (typeof answer === 'boolean' || typeof answer === 'string') return answer
    throw new TypeError(`authorize has to answer true, false or a reason, not ${typeof answer}`)
  } catch (error) {
    logger.error('authorize failed', { operation, error })
    if (isA2AError(error) && error.code === 'Overloaded') throw error
    return false
  }
}

function forbidden(operation: OperationName | 'authorized', reason: string | false): A2AError {
  return new A2AError('Forbidden', reason || `You may not use ${operation} here.`, { metadata: { operation } })
}
