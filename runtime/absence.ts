import { FIRST_RETRY_MS, LAST_RETRY_MS } from './wakes.ts'

/** Why a context is not in memory: it broke. */
export interface Absence {
  /** How long it stays away, since the store refused a commit of it; 0 if it comes back at once. */
  readonly awayMs: number
  /** What brings it back. */
  timer: unknown
}

/** How long a context stays away whose commit was refused: a second, or twice as long as before if it came back less than a minute ago. */
export function awayAfter(before: Absence | undefined, presentMs: number): number {
  if (!before || presentMs >= LAST_RETRY_MS) return FIRST_RETRY_MS
  return Math.min(Math.max(2 * before.awayMs, FIRST_RETRY_MS), LAST_RETRY_MS)
}
