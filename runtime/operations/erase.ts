import { ANONYMOUS } from '../access/call-context.ts'
import type { ContextRegistry } from '../contexts/context-registry.ts'
import { taskNotFound } from '../contexts/errors.ts'
import { rejectUnknown } from '../primitives/options.ts'
import type { Erasure, Store } from '../store/store.ts'
import type { TaskSubscriptions } from '../streams/subscriptions.ts'
import type { Push } from './dependencies.ts'

/** The data to erase: all of a principal, or one of its contexts. */
export interface DataToErase {
  /** Default: the tenant with the empty name. */
  readonly tenant?: string
  /** Default `anonymous`. */
  readonly principal?: string
  /** Default: everything of the principal. */
  readonly contextId?: string
}

/** Erases a context or a scope, first in memory, then in the store, or with `eraseRows`. Streams of its tasks end with TaskNotFound. Gives whether there was anything. */
export async function erase(
  {
    store,
    contexts,
    feeds,
    push
  }: { store: Store; contexts: ContextRegistry; feeds: TaskSubscriptions; push?: Push | undefined },
  whose: Erasure,
  eraseRows = () => store.erase(whose)
): Promise<boolean> {
  return contexts.withhold(whose, async () => {
    const wasThere = await eraseRows()
    await push?.webhooks.erased(whose)
    for (const taskId of feeds.tasksOf(whose)) {
      const stored = await store.readTask(whose, taskId, { historyLength: 0, artifacts: false })
      if (!stored) feeds.end(whose, taskId, taskNotFound(taskId))
    }
    return wasThere
  })
}

/** Fills in the defaults. Throws TypeError for a member that is present but no string, such as `undefined`, since a default would erase too much. */
export function erasureOf(data: DataToErase): Erasure {
  rejectUnknown(data, ['tenant', 'principal', 'contextId'], 'erase')
  for (const [name, value] of Object.entries(data)) {
    if (typeof value !== 'string')
      throw new TypeError(`erase: ${name} has to be a text, not ${String(value)}. Leave it out for its default.`)
  }
  return { tenant: '', principal: ANONYMOUS, ...data }
}
