import type { Actor } from 'xstate'
import type { ContextLogic } from './context-logic.ts'
import { persistContext } from './persistence.ts'

/** A context actor's snapshot as text, and what it was made of. */
export interface SavedContext {
  readonly context: unknown
  readonly value: unknown
  readonly snapshot: string
}

/** The context actor's snapshot as text, made anew only when the actor changed since `saved`. */
export function savedContext(root: Actor<ContextLogic>, saved: SavedContext | undefined): SavedContext {
  const { context, value } = root.getSnapshot()
  if (saved && saved.context === context && saved.value === value) return saved
  return { context, value, snapshot: persistContext(root) }
}
