import type { Actor } from 'xstate'
import type { ContextLogic } from './context-logic.ts'
import { persistContext } from './persistence.ts'

/** A context actor's snapshot as text, and the context that it was made of. */
export interface SavedContext {
  readonly context: unknown
  readonly snapshot: string
}

/** The context actor's snapshot as text, made anew only when the actor changed since `saved`. */
export function savedContext(root: Actor<ContextLogic>, saved: SavedContext | undefined): SavedContext {
  const { context } = root.getSnapshot()
  return saved?.context === context ? saved : { context, snapshot: persistContext(root) }
}
