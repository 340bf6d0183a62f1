import { signal } from '@preact/signals'
import type { ActorRow, ActorStep, InspectedContext, InspectedTask, TrafficFrame, WatchedMessage } from '../../feed.ts'

/** The maximum number of frames. */
const MOST_FRAMES = 2000

/** The newest frames, in order. */
export const frames = signal<readonly TrafficFrame[]>([])

/** The number of frames that were dropped because this page was too slow. */
export const missedFrames = signal(0)

/** Adds frames; known ones are ignored. */
export function noteFrames(more: readonly TrafficFrame[]): void {
  const last = frames.peek().at(-1)?.n ?? 0
  frames.value = [...frames.peek(), ...more.filter(({ n }) => n > last)].slice(-MOST_FRAMES)
}

/** Drops all frames. */
export function forgetFrames(): void {
  frames.value = []
  missedFrames.value = 0
}

/** The maximum number of tasks, as in the hub; those opened first are dropped first. */
const MOST_TASKS = 10_000

/** The tasks by id. Readers watch `taskChanges`. */
export const tasks = new Map<string, InspectedTask>()

/** The number of tasks that were not listed because too many were opened. */
export const missedTasks = signal(0)

/** Incremented whenever `tasks` changes. */
export const taskChanges = signal(0)

/** Adds and removes tasks. `isAll`: drops all others. */
export function noteTasks(rows: readonly InspectedTask[], removed: readonly string[], isAll: boolean): void {
  if (isAll) tasks.clear()
  for (const row of rows) tasks.set(row.taskId, row)
  for (const taskId of removed) tasks.delete(taskId)
  if (tasks.size > MOST_TASKS) forgetOldest()
  taskChanges.value += 1
}

function forgetOldest(): void {
  const newestFirst = [...tasks.values()].toSorted((one, other) => other.openedMs - one.openedMs)
  for (const { taskId } of newestFirst.slice(MOST_TASKS)) tasks.delete(taskId)
}

/** The maximum number of steps, as in the hub. */
const MOST_STEPS = 2000

/** The actors of the watched context, including ended ones that the hub keeps. */
export const actors = signal<readonly ActorRow[]>([])

/** The steps of the watched context, in order. */
export const steps = signal<readonly ActorStep[]>([])

/** The number of missing steps of the watched context: too many for this page, or too old. */
export const missedSteps = signal(0)

/** Whether the hub has told the actors of the watched context, even if there are none. */
export const areActorsKnown = signal(false)

/** Drops everything, for another context or process. */
export function forgetWatched(): void {
  actors.value = []
  areActorsKnown.value = false
  steps.value = []
  missedSteps.value = 0
}

/** Adds and removes actors. `isAll`: drops all others. */
export function noteActors(rows: readonly ActorRow[], gone: readonly string[], isAll: boolean): void {
  const known = new Map((isAll ? [] : actors.peek()).map(actor => [actor.sessionId, actor]))
  for (const row of rows) known.set(row.sessionId, row)
  for (const sessionId of gone) known.delete(sessionId)
  actors.value = [...known.values()]
  areActorsKnown.value = true
}

/** Adds steps; known ones are ignored. */
export function noteSteps(more: readonly ActorStep[]): void {
  const last = steps.peek().at(-1)?.n ?? 0
  const fresh = more.filter(({ n }) => n > last)
  if (fresh.length > 0) steps.value = [...steps.peek(), ...fresh].slice(-MOST_STEPS)
}

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
