import { batch, effect, signal } from '@preact/signals'

/** The parts of the page beside the list. */
export const PARTS = ['chart', 'sequence', 'timeline', 'frames', 'talk', 'paths'] as const

/** One part of the page. */
export type PartName = (typeof PARTS)[number]

const given = new URLSearchParams(location.hash.slice(1))
const wantedPart = PARTS.find(part => part === given.get('part'))

/** The context that is looked at. */
export const contextId = signal(given.get('context') ?? undefined)

/** The task that is looked at; none in a context without one. */
export const taskId = signal(given.get('task') ?? undefined)

/** The part that is shown. */
export const part = signal<PartName>(wantedPart ?? 'chart')

/** Looks at a context, and at a task in it. */
export function choose(context: string | undefined, task?: string): void {
  batch(() => {
    contextId.value = context
    taskId.value = task
  })
}

/** Keeps the address of the page in step, so that it can be reloaded and given to others. */
export function keepAddress(): void {
  effect(() => {
    const now = new URLSearchParams({
      part: part.value,
      ...(contextId.value !== undefined && { context: contextId.value }),
      ...(taskId.value !== undefined && { task: taskId.value })
    })
    history.replaceState(null, '', `#${now}`)
  })
}
