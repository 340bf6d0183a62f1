import { isA2AError } from '../../../machines/protocol/errors.ts'
import type { ActorHost } from '../../../runtime/commits/actor-host.ts'
import { onAbort } from '../../../runtime/primitives/promises.ts'
import type { PooledClient } from './pooled-client.ts'

/** A task of another agent that is no longer needed. */
export interface Unwanted {
  readonly host: ActorHost
  /** The id of the delegating task. */
  readonly taskId: string
  readonly agent: PooledClient
  /** Resolves with the id of the agent's task when it is known; with `undefined` if there is none. */
  readonly known: Promise<string | undefined>
  /** Aborts all other requests of the delegation. */
  readonly halt: () => void
}

/** The time limit for canceling a task. */
const CANCEL_WITHIN_MS = 5000

/** Cancels a task of another agent, within the time limit. Never rejects: errors are logged. */
export async function cancelRemote(unwanted: Unwanted): Promise<void> {
  const {
    host: { clock, logger },
    taskId,
    agent,
    halt
  } = unwanted
  const limit = new AbortController()
  const timer = clock.setTimeout(
    () => limit.abort(new DOMException(`It could not be canceled within ${CANCEL_WITHIN_MS} ms.`, 'TimeoutError')),
    CANCEL_WITHIN_MS
  )
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
  await agent.use(
    async client => {
      halt()
      await client.cancelTask({ id }, { signal })
    },
    { isPatient: false, signal }
  )
}
