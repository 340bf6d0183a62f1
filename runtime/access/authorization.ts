import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { OperationName, OperationRequests } from '../../machines/protocol/operations.ts'
import type { GetTaskRequest } from '../../machines/protocol/requests.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { Caller } from './authentication.ts'
import type { Limits } from './limits.ts'
import { inTime } from './time-limit.ts'

interface AuthorizedRequests extends OperationRequests {
  /** `runtime.authorized`, which brings an out-of-band authorization to a task. */
  authorized: GetTaskRequest
}

/** A call to authorize: its caller, its operation and its validated parameters. */
export type AuthorizationRequest = {
  [Name in keyof AuthorizedRequests]: Caller & { readonly operation: Name; readonly params: AuthorizedRequests[Name] }
}[keyof AuthorizedRequests]

/**
 * Decides whether a caller may run an operation: `true`, `false`, or a reason for the client why not, such as a missing scope. It is
 * called before anything is read, so a refusal does not reveal what exists. Any other answer, or an error, is logged and refuses
 * the call. The `A2AError` `Overloaded`, or no answer within `limits.accessMs`, means that the check is unavailable.
 */
export type Authorize = (request: AuthorizationRequest) => boolean | string | Promise<boolean | string>

interface AuthorizationServices {
  readonly logger: Logger
  readonly clock: Clock
  readonly limits: Limits
}

/** Resolves if the call is authorized; throws Forbidden otherwise (§13.1). */
export async function checkPermission(
  authorize: Authorize,
  services: AuthorizationServices,
  request: AuthorizationRequest
): Promise<void> {
  const answer = await answerOf(authorize, services, request)
  if (answer !== true) throw forbidden(request.operation, answer)
}

async function answerOf(
  authorize: Authorize,
  { logger, clock, limits }: AuthorizationServices,
  request: AuthorizationRequest
): Promise<boolean | string> {
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
