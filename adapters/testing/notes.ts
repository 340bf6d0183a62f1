import type { Coverage, CoverageCount } from './coverage.ts'
import type { Plan } from './plan/plan.ts'

/** Where the chart itself throws, as lines to print, with what to write if that may come of a result that no case gives. */
export function crashLines(crashes: Plan['crashes']): string[] {
  const lines = crashes.map(({ way, error }) => `the chart throws, ${way}: ${String(error)}`)
  const guessed = new Set(crashes.flatMap(({ guessed }) => guessed))
  return [...lines, ...Array.from(guessed, src => `${src} ended without an output, as no case says what it gives. Add to the module: export const cases = { results: { ${propertyName(src)}: { 'a result': … } } }`)]
}

function propertyName(src: string): string {
  return /^[\p{L}_$][\p{L}\d_$]*$/u.test(src) ? src : `'${src}'`
}

/** Coverage as lines to print. */
export function coverageLines({ states, transitions, tags, guards }: Coverage): string[] {
  const line = (what: string, { total, reached }: CoverageCount) => `${what}: ${reached} of ${total}`
  return [line('states', states), line('transitions', transitions), line('tags', tags), line('guard outcomes', guards), ...missingIn({ states, transitions, tags, guards }).map(one => `not reached: ${one}`)]
}

/** What of a chart was not reached, each with the reason. */
export function missingIn({ states, transitions, tags, guards }: Coverage): string[] {
  return [...states.missing.map(state => `${state} is never entered`), ...transitions.missing, ...tags.missing, ...guards.missing]
}
