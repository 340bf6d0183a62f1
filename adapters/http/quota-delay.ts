import { isA2AError } from '../../machines/protocol/errors.ts'
import { jitter } from '../../runtime/primitives/jitter.ts'
import type { Runtime } from '../../runtime/runtime.ts'

/** How long a client whose quota is used up waits for that answer, in milliseconds: meanwhile nothing else comes over its connection. */
const heldMs = jitter(200)

/** Holds the answer to a request back for a moment if a quota refuses it, so that clients that go on all the same get others no work. */
export async function delayRefusal(error: unknown, { clock }: Runtime['settings']): Promise<void> {
  if (!isA2AError(error) || error.metadata['quota'] === undefined) return
  await new Promise<void>(resolve => void clock.setTimeout(resolve, heldMs()))
}
