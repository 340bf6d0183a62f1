import type { AgentCard } from '../../machines/protocol/card.ts'
import { isA2AError } from '../../machines/protocol/errors.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import type { Limits } from './limits.ts'
import { inTime } from './time-limit.ts'

/**
 * What a connection or a request brings to show who calls. Header names are lower-case. There is nothing of the address:
 * credentials in addresses end up in logs and are refused.
 */
export interface Credentials {
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** Who calls. */
export interface Principal {
  /** Names the caller, the same at every call, never empty. Its tasks and contexts are seen by nobody else. */
  readonly id: string
  /** What the credentials say of the caller, such as the claims of its token: for `authorize` and `extendedCard`. Never stored. */
  readonly claims?: Readonly<Record<string, unknown>>
  /** When the credentials run out, in milliseconds since 1970; from then on every frame is refused. Default never. */
  readonly expiresAtMs?: number
}

/**
 * Tells who calls, or nothing if the credentials do not say so. An error is logged and counts as nothing. `Overloaded`, an
 * `A2AError`, says that nobody can tell just now: the client hears that it may try again, and is not let in.
 *
 * Beside being called it may say how one shows who one is: `securitySchemes` and `securityRequirements` go into the card,
 * `challenge` is the `WWW-Authenticate` of a refusal, by default one for each scheme in the card, or `Bearer`.
 */
export interface Authenticate {
  (credentials: Credentials): Principal | undefined | Promise<Principal | undefined>
  readonly securitySchemes?: AgentCard['securitySchemes']
  readonly securityRequirements?: AgentCard['securityRequirements']
  readonly challenge?: string
}

/** The `WWW-Authenticate` of a refusal where `authenticate` names none. */
export const DEFAULT_CHALLENGE = 'Bearer'

/** Who calls, as functions of the author's are told: `anonymous` without `authenticate`, and no claims if there are none. */
export interface Caller {
  readonly principal: string
  readonly claims: Readonly<Record<string, unknown>>
  readonly tenant: string
}

/**
 * Asks `authenticate` who calls, on behalf of a server. Gives nothing if the credentials are not good: the client is not to
 * be let in. What goes wrong is logged and gives nothing too, but for Overloaded, which is thrown.
 */
export async function identify(
  { authenticate, logger, limits, clock }: { readonly authenticate: Authenticate; readonly logger: Logger; readonly limits: Limits; readonly clock: Clock },
  credentials: Credentials
): Promise<Principal | undefined> {
  try {
    const principal = await inTime(authenticate(credentials), limits.accessMs, 'authenticate', clock)
    if (!principal) return undefined
    // Without an id it would share the tasks of everybody whom nobody knows.
    if (typeof principal.id !== 'string' || principal.id === '') throw new TypeError('authenticate gave a principal without an id')
    return principal
  } catch (error) {
    logger.error('authenticate failed', { error })
    if (isA2AError(error) && error.code === 'Overloaded') throw error
    return undefined
  }
}
