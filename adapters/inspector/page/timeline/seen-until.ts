import type { Step } from '../../feed.ts'

/**
 * The steps that led to a generation, as far as they were seen: up to the last one that belongs to it or to an earlier one.
 * Steps of which the hub does not know the generation belong to the next that it knows. `isNewest`: all of them led there.
 */
export function seenUntil(steps: readonly Step[], generation: number, isNewest: boolean): readonly Step[] {
  if (isNewest) return steps
  const last = steps.findLastIndex(step => step.generation !== undefined && step.generation <= generation)
  return steps.slice(0, last + 1)
}
