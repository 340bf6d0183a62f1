import { ANONYMOUS } from '../access/call-context.ts'
import type { ContextRegistry } from '../contexts/context-registry.ts'
import { taskNotFound } from '../contexts/errors.ts'
import { rejectUnknown } from '../primitives/options.ts'
import type { Erasure, Store } from '../store/store.ts'
import type { TaskSubscriptions } from '../streams/subscriptions.ts'
import type { Push } from './dependencies.ts'

/** Whose data to erase: all that a principal has, or one context of it. */
export interface DataToErase {
  /** Default the empty one. */
  readonly tenant?: string
  /** Default `anonymous`. */
  readonly principal?: string
  /** Without it everything of the principal goes. */
  readonly contextId?: string
}

/** Erases everything of a context or scope, what is in memory first. Who still follows one of its tasks gets TaskNotFound. */
export async function erase({ store, contexts, feeds, push }: { store: Store; contexts: ContextRegistry; feeds: TaskSubscriptions; push?: Push | undefined }, whose: Erasure): Promise<boolean> {
  return contexts.withhold(whose, async () => {
    const wasThere = await store.erase(whose)
    await push?.webhooks.erased(whose)
    for (const taskId of feeds.tasksOf(whose)) {
      const stored = await store.readTask(whose, taskId, { historyLength: 0, artifacts: false })
      if (!stored) feeds.end(whose, taskId, taskNotFound(taskId))
    }
    return wasThere
  })
}

/** The data that somebody names. Throws TypeError for a name that is there but no text: one that got lost must not erase more than was meant. */
export function erasureOf(data: DataToErase): Erasure {
  rejectUnknown(data, ['tenant', 'principal', 'contextId'], 'erase')
  for (const [name, value] of Object.entries(data)) {
    if (typeof value !== 'string') throw new TypeError(`erase: ${name} has to be a text, not ${String(value)}. Leave it out for its default.`)
  }
  return { tenant: '', principal: ANONYMOUS, ...data }
}
