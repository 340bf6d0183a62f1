import { batch, effect, signal } from '@preact/signals'

/** The tabs of the page. */
export const PARTS = ['story', 'chart', 'sequence', 'timeline', 'frames', 'talk', 'paths', 'nodes'] as const

export type PartName = (typeof PARTS)[number]

const given = new URLSearchParams(location.hash.slice(1))
const wantedPart = PARTS.find(part => part === given.get('part'))

/** The chosen context. */
export const contextId = signal(given.get('context') ?? undefined)

/** The chosen task; `undefined` in a context without one. */
export const taskId = signal(given.get('task') ?? undefined)

/** The open tab. */
export const part = signal<PartName>(wantedPart ?? 'story')

/** Whether a new context was asked for, so that none is chosen before its first message. */
export const isNew = signal(false)

/** The half of the page that a small screen shows: the list, or the chosen task. */
export const phoneView = signal<'list' | 'task'>(contextId.peek() === undefined ? 'list' : 'task')

/** The half of the story that a phone shows. */
export const storyHalf = signal<'talk' | 'chart'>('talk')

/** Shows the conversation, in the story or in a part of its own. */
export function showTalk(): void {
  if (part.peek() !== 'talk') part.value = 'story'
  storyHalf.value = 'talk'
  phoneView.value = 'task'
}

/** Chooses a context, and a task in it. */
export function choose(context: string | undefined, task?: string): void {
  batch(() => {
    if (context !== undefined) isNew.value = false
    contextId.value = context
    taskId.value = task
  })
}

/** Keeps the URL of the page up to date, so that it can be reloaded and shared. */
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
