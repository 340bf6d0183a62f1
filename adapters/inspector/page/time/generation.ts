import { computed, effect, signal } from '@preact/signals'
import type { ActorStep } from '../../feed.ts'
import { firstGeneration, historyAt, lastGeneration, taskAt } from '../agent/task-events.ts'
import { log, said } from '../agent/task-log.ts'
import { taskId } from '../selection.ts'

/** The chosen generation; `undefined` for the newest. */
const chosen = signal<number | undefined>(undefined)

/** The generations at which the chosen task can be shown; 0 to 0 without a task. */
export const range = computed(() =>
  log.value ? { first: firstGeneration(log.value), last: lastGeneration(log.value) } : { first: 0, last: 0 }
)

/** The generation at which every view shows the chosen task. */
export const generation = computed(() => Math.min(chosen.value ?? range.value.last, range.value.last))

/** Whether the views follow the newest generation. */
export const isNewest = computed(() => chosen.value === undefined)

/** The chosen task at that generation. */
export const taskThen = computed(() => log.value && taskAt(log.value, generation.value))

/** The messages of the chosen task at that generation. */
export const historyThen = computed(() => (log.value ? historyAt(log.value, said.value, generation.value) : []))

/** The event of that generation; `undefined` if it is older than those that are shown one by one. */
export const eventThen = computed(() => log.value?.events.find(event => event.generation === generation.value))

/** Shows the task at a generation; beyond the last one, follows the newest. */
export function goTo(to: number): void {
  const { first, last } = range.peek()
  chosen.value = to >= last ? undefined : Math.max(first, to)
}

/** Shows the task some generations later or, if negative, earlier. */
export function step(by: number): void {
  goTo(generation.peek() + by)
}

/** Resets to the newest generation when another task is chosen. */
export function startAtNewest(): void {
  effect(() => {
    void taskId.value
    chosen.value = undefined
  })
}

/**
 * The steps up to the shown generation: up to the last one of it or of an earlier one. Steps without a known generation
 * belong to the next known one.
 */
export function stepsUntilThen(steps: readonly ActorStep[]): readonly ActorStep[] {
  if (isNewest.value) return steps
  const last = steps.findLastIndex(({ generation: of }) => of !== undefined && of <= generation.value)
  return steps.slice(0, last + 1)
}
