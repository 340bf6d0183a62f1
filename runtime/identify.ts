import { isA2AError } from '../machines/protocol/errors.ts'
import type { Authenticate, Credentials, Principal } from './authentication.ts'
import type { Clock } from './clock.ts'
import { inTime } from './in-time.ts'
import type { Limits } from './limits.ts'
import type { Logger } from './logger.ts'

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
