import type { AgentCard } from '../../machines/protocol/card.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { GetTaskRequest } from '../../machines/protocol/objects.ts'
import type { OperationName, OperationRequests } from '../../machines/protocol/operations.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { Limits } from './limits.ts'
import { inTime } from './time-limit.ts'

/**
 * Credentials of a connection or a request. Header names are lower-case. The URL is not part of them: credentials in
 * URLs end up in logs, so they are refused.
 */
export interface Credentials {
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** An authenticated caller. */
export interface Principal {
  /** Identifies the caller in every call; never empty. Other callers cannot see its tasks and contexts. */
  readonly id: string
  /** Claims of the credentials, such as those of a token, for `authorize` and `extendedCard`. Never stored. */
  readonly claims?: Readonly<Record<string, unknown>>
  /** When the credentials expire, in milliseconds since 1970; from then on every frame is refused. Default never. */
  readonly expiresAtMs?: number
}

/**
 * Identifies a caller by its credentials; gives `undefined` if they are invalid. Errors are logged, and refuse the
 * caller as invalid credentials do. The `A2AError` `Overloaded` means that the check is unavailable: the client is
 * refused, and may retry.
 *
 * Its members describe it: `securitySchemes` and `securityRequirements` go into the card, and `challenge` is the
 * `WWW-Authenticate` of a refusal. The default is one challenge per scheme in the card, or `Bearer`.
 */
export interface Authenticate {
  (credentials: Credentials): Principal | undefined | Promise<Principal | undefined>
  readonly securitySchemes?: AgentCard['securitySchemes']
  readonly securityRequirements?: AgentCard['securityRequirements']
  readonly challenge?: string
}

/** Default `WWW-Authenticate` of a refusal. */
export const DEFAULT_CHALLENGE = 'Bearer'

/**
 * A caller, as the author's functions get it. Without `authenticate` the principal is `anonymous`, and `claims` is
 * empty.
 */
export interface Caller {
  readonly principal: string
  readonly claims: Readonly<Record<string, unknown>>
  readonly tenant: string
}

/**
 * Calls `authenticate` for a server. Gives `undefined` if the caller is to be refused. Errors are logged and refuse it
 * too, except Overloaded, which is thrown.
 */
export async function identify(
  {
    authenticate,
    logger,
    limits,
    clock
  }: { readonly authenticate: Authenticate; readonly logger: Logger; readonly limits: Limits; readonly clock: Clock },
  credentials: Credentials
): Promise<Principal | undefined> {
  try {
    const principal = await inTime(authenticate(credentials), limits.accessMs, 'authenticate', clock)
    if (!principal) return undefined
    // A principal without an id would share the tasks of all anonymous callers.
    if (typeof principal.id !== 'string' || principal.id === '')
      throw new TypeError('authenticate gave a principal without an id')
    return principal
  } catch (error) {
    logger.error('authenticate failed', { error })
    if (isA2AError(error) && error.code === 'Overloaded') throw error
    return undefined
  }
}

interface AuthorizedRequests extends OperationRequests {
  /** `runtime.authorized`, which brings an out-of-band authorization to a task. */
  authorized: GetTaskRequest
}

/** A call to authorize: its caller, its operation and its validated parameters. */
export type AuthorizationRequest = {
  [Name in keyof AuthorizedRequests]: Caller & { readonly operation: Name; readonly params: AuthorizedRequests[Name] }
}[keyof AuthorizedRequests]

/**
 * Decides whether a caller may run an operation: `true`, `false`, or a reason for the client why not, such as a missing
 * scope. It is called before anything is read, so a refusal does not reveal what exists. Any other answer, or an error,
 * is logged and refuses the call. The `A2AError` `Overloaded`, or no answer within `limits.accessMs`, means that the
 * check is unavailable.
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
  const answer = await askAuthorize(authorize, services, request)
  if (answer !== true) throw forbidden(request.operation, answer)
}

/** The answer of `authorize`; false if it fails. */
async function askAuthorize(
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
