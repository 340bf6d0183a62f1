import { signal } from '@preact/signals'
import type { InspectedContext, WatchedMessage } from '../../feed.ts'

/** The maximum number of contexts, as in the hub. */
const MOST_CONTEXTS = 10_000

/** The contexts by id. Readers watch `contextChanges`. */
export const contexts = new Map<string, InspectedContext>()

/** Incremented whenever `contexts` changes. */
export const contextChanges = signal(0)

/** Adds and removes contexts. `isAll`: drops all others. */
export function noteContexts(rows: readonly InspectedContext[], removed: readonly string[], isAll: boolean): void {
  if (isAll) contexts.clear()
  for (const row of rows) {
    contexts.delete(row.contextId)
    contexts.set(row.contextId, row)
  }
  for (const contextId of removed) contexts.delete(contextId)
  for (const contextId of contexts.keys()) {
    if (contexts.size <= MOST_CONTEXTS) break
    contexts.delete(contextId)
  }
  contextChanges.value += 1
}

/** The maximum number of messages of the watched context. */
const MOST_SAID = 1000

/** The messages of the watched context: whole without a task, else their places. */
export const talk = signal<readonly WatchedMessage[]>([])

/** Adds messages. `isAll`: drops all others. */
export function noteTalk(rows: readonly WatchedMessage[], isAll: boolean): void {
  talk.value = [...(isAll ? [] : talk.peek()), ...rows].slice(-MOST_SAID)
}
