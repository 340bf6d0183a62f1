import { isA2AError } from '../../../machines/protocol/errors.ts'
import type { ActorHost } from '../../../runtime/commits/actor-host.ts'
import { onAbort } from '../../../runtime/primitives/promises.ts'
import type { PooledClient } from './pooled-client.ts'

/** A task of another agent that nobody wants any more. */
export interface Unwanted {
  readonly host: ActorHost
  /** Our task. */
  readonly taskId: string
  readonly agent: PooledClient
  /** The id of theirs, once it is known: it may just be opened; `undefined` if there is none. */
  readonly known: Promise<string | undefined>
  /** Ends everything else that is under way with the agent. */
  readonly halt: () => void
}

/** How long it is tried to cancel a task. */
const CANCEL_WITHIN_MS = 5000

/** Cancels a task of another agent, if that can be done soon. Never rejects: what went wrong is logged. */
export async function cancelRemote(unwanted: Unwanted): Promise<void> {
  const { host: { clock, logger }, taskId, agent, halt } = unwanted
  const limit = new AbortController()
  const timer = clock.setTimeout(() => limit.abort(new DOMException(`It could not be canceled within ${CANCEL_WITHIN_MS} ms.`, 'TimeoutError')), CANCEL_WITHIN_MS)
  const tooLate = new Promise<never>((_, reject) => void onAbort(limit.signal, () => reject(limit.signal.reason)))
  try {
    await Promise.race([canceled(unwanted, limit.signal), tooLate])
  } catch (error) {
    // It has ended meanwhile.
    if (isA2AError(error) && error.code === 'TaskNotCancelable') return
    logger.warn('a task of another agent was not canceled', { taskId, agent: agent.title, error })
  } finally {
    clock.clearTimeout(timer)
    halt()
  }
}

async function canceled({ agent, known, halt }: Unwanted, signal: AbortSignal): Promise<void> {
  const id = await known
  if (id === undefined) return
  await agent.use(async client => {
    halt()
    await client.cancelTask({ id }, { signal })
  }, { isPatient: false, signal })
}
