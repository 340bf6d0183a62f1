import type { ContextRegistry } from './contexts/context-registry.ts'
import type { Admission } from './operations/admission.ts'
import type { Clock } from './ports/clock.ts'
import type { Store } from './store/store.ts'

/** Whether a runtime can serve calls: what `/readyz` answers. */
export type Health =
  | { readonly isReady: true }
  | {
      readonly isReady: false
      /**
       * `closed`: the runtime is closed. `store stopped`: the store accepts nothing more from this process, because its disk or file is
       * broken or belongs to another process; restart it. `commits refused`: the store refused the newest commit, less than 10 seconds ago.
       */
      readonly reason: 'closed' | 'store stopped' | 'commits refused'
    }

/** How long a refused commit counts. Then requests may come again, because nothing else may show that the store has recovered. */
const REFUSED_MS = 10_000

/** The parts of a runtime that decide whether it is ready. */
export interface HealthParts {
  readonly calls: Pick<Admission, 'isClosed'>
  readonly contexts: Pick<ContextRegistry, 'refusedAtMs'>
  readonly store: Pick<Store, 'status'>
  readonly clock: Clock
}

/** Whether a store is stopped; also if its engine cannot say so. */
function isStopped(store: Pick<Store, 'status'>): boolean {
  try {
    return store.status?.().isStopped ?? false
  } catch {
    return true
  }
}

/** The health of a runtime now. Reads memory only. */
export function healthOf({ calls, contexts, store, clock }: HealthParts): Health {
  if (calls.isClosed) return { isReady: false, reason: 'closed' }
  if (isStopped(store)) return { isReady: false, reason: 'store stopped' }
  if (Math.abs(clock.now() - contexts.refusedAtMs) < REFUSED_MS) return { isReady: false, reason: 'commits refused' }
  return { isReady: true }
}
