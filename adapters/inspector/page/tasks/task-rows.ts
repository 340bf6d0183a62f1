import type { TaskRow } from '../../feed.ts'
import { stateText } from '../frame/wording.ts'

/** A row of the list: the heading of a context, or one of its tasks. */
export type ListRow =
  | { readonly kind: 'context'; readonly contextId: string; readonly count: number }
  | { readonly kind: 'task'; readonly task: TaskRow }

/** A filter of tasks. */
export interface ListFilter {
  /** Words that must all occur in a task's title, ids, state or owner. */
  readonly search: string
  /** The states to show. */
  readonly group: StateGroup
}

/** Groups of states. */
export const STATE_GROUPS = {
  all: { label: 'All', has: () => true },
  active: { label: 'Active', has: (state: string) => state === 'submitted' || state === 'working' },
  waiting: { label: 'Waiting', has: (state: string) => state === 'input-required' || state === 'auth-required' },
  done: { label: 'Completed', has: (state: string) => state === 'completed' },
  undone: { label: 'Failed, canceled', has: (state: string) => state === 'failed' || state === 'canceled' || state === 'rejected' }
} as const

export type StateGroup = keyof typeof STATE_GROUPS

/** The rows of the list: contexts by their newest task, newest first, each with its tasks. `others` are contexts without tasks. */
export function listRows(tasks: Iterable<TaskRow>, { search, group }: ListFilter, others: readonly string[]): ListRow[] {
  const words = search.toLowerCase().split(/\s+/).filter(word => word !== '')
  const byContext = new Map<string, TaskRow[]>(others.map(contextId => [contextId, []]))
  for (const task of tasks) {
    if (!fits(task, words, group)) continue
    const known = byContext.get(task.contextId)
    if (known) known.push(task)
    else byContext.set(task.contextId, [task])
  }
  const contexts = Array.from(byContext, ([contextId, all]) => ({ contextId, all: newestFirst(all), openedMs: Math.max(...all.map(({ openedMs }) => openedMs)) }))
  const sorted = contexts.toSorted((one, other) => (one.all.length === 0 ? -1 : other.all.length === 0 ? 1 : other.openedMs - one.openedMs))
  return sorted.flatMap(({ contextId, all }) => [{ kind: 'context', contextId, count: all.length }, ...all.map(task => ({ kind: 'task', task }) as const)])
}

/** A unique key of a row. */
export function rowKey(row: ListRow): string {
  return row.kind === 'context' ? `context ${row.contextId}` : row.task.taskId
}

function newestFirst(tasks: TaskRow[]): TaskRow[] {
  return tasks.length < 2 ? tasks : tasks.toSorted((one, other) => other.openedMs - one.openedMs)
}

function fits({ title, taskId, contextId, state, owner }: TaskRow, words: readonly string[], group: StateGroup): boolean {
  const name = stateText(state)
  if (!STATE_GROUPS[group].has(name)) return false
  if (words.length === 0) return true
  const text = `${title} ${taskId} ${contextId} ${name} ${owner.tenant} ${owner.principal}`.toLowerCase()
  return words.every(word => text.includes(word))
}
