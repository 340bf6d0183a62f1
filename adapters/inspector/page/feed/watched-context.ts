import { signal } from '@preact/signals'
import type { ActorRow, Step } from '../../feed.ts'

/** How many steps are kept, as the hub keeps them. */
const MOST_STEPS = 2000

/** The actors of the watched context, also those that have ended, as far as the hub remembers them. */
export const actors = signal<readonly ActorRow[]>([])

/** The steps of the watched context, in order. */
export const steps = signal<readonly Step[]>([])

/** How many steps of the watched context are missing here, because this page was too slow or they are too old. */
export const missedSteps = signal(0)

/** Forgets everything: another context is watched, or another process. */
export function forgetWatched(): void {
  actors.value = []
  steps.value = []
  missedSteps.value = 0
}

/** Notes how actors are, and which are forgotten. `isAll`: there are no others any more. */
export function noteActors(rows: readonly ActorRow[], gone: readonly string[], isAll: boolean): void {
  const known = new Map((isAll ? [] : actors.peek()).map(actor => [actor.sessionId, actor]))
  for (const row of rows) known.set(row.sessionId, row)
  for (const sessionId of gone) known.delete(sessionId)
  actors.value = [...known.values()]
}

/** Notes steps; those that are known already count for nothing. */
export function noteSteps(more: readonly Step[]): void {
  const last = steps.peek().at(-1)?.n ?? 0
  const fresh = more.filter(({ n }) => n > last)
  if (fresh.length > 0) steps.value = [...steps.peek(), ...fresh].slice(-MOST_STEPS)
}
