import type { Coverage, Share } from './coverage.ts'
import type { Plan } from './plan.ts'

/** Where the chart itself throws, as lines to print. */
export function crashLines(crashes: Plan['crashes']): string[] {
  return crashes.map(({ way, error }) => `the chart throws, ${way}: ${String(error)}`)
}

/** Coverage as lines to print. */
export function coverageLines({ states, transitions, tags, guards }: Coverage): string[] {
  const line = (what: string, { total, reached }: Share) => `${what}: ${reached} of ${total}`
  const missing = [...states.missing.map(state => `${state} is never entered`), ...transitions.missing, ...tags.missing, ...guards.missing]
  return [line('states', states), line('transitions', transitions), line('tags', tags), line('guard outcomes', guards), ...missing.map(one => `not reached: ${one}`)]
}
