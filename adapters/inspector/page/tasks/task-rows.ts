import { stateText, type TaskState } from '../../../../machines/protocol/states.ts'
import type { InspectedContext, InspectedTask } from '../../feed.ts'

/** A row of the list: the heading of a context, or one of its tasks. */
export type ListRow =
  | ContextHead
  | {
      readonly kind: 'task'
      readonly task: InspectedTask
      /** Which one it is of the tasks with its title in its context, from 1; 0 if there is no other. */
      readonly nth: number
      /** Whether it has no heading: it is the only task of its context, and has its title. */
      readonly isAlone: boolean
    }

/** A context in the list. */
export interface ContextHead {
  readonly kind: 'context'
  readonly contextId: string
  /** The start of its first message; empty if unknown. */
  readonly title: string
  /** The number of its tasks that are listed. */
  readonly count: number
  /** When it was last changed, in milliseconds since 1970. */
  readonly changedMs: number
  /** Its standing offer. */
  readonly offer?: InspectedContext['offer']
  /** The state of its newest task. */
  readonly state?: TaskState
}

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
  undone: {
    label: 'Failed, canceled',
    has: (state: string) => state === 'failed' || state === 'canceled' || state === 'rejected'
  }
} as const

export type StateGroup = keyof typeof STATE_GROUPS

/** The rows of the list: contexts by their newest task or message, newest first, each with its tasks. */
export function listRows(
  tasks: Iterable<InspectedTask>,
  contexts: ReadonlyMap<string, InspectedContext>,
  { search, group }: ListFilter
): ListRow[] {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter(word => word !== '')
  const byContext = new Map<string, InspectedTask[]>()
  const withTasks = new Set<string>()
  for (const task of tasks) {
    withTasks.add(task.contextId)
    if (!fits(task, contexts.get(task.contextId)?.title ?? '', words, group)) continue
    const known = byContext.get(task.contextId)
    if (known) known.push(task)
    else byContext.set(task.contextId, [task])
  }
  const heads = Array.from(byContext, ([contextId, all]) =>
    headOf(contextId, newestFirst(all), contexts.get(contextId))
  )
  const alone =
    group === 'all'
      ? [...contexts.values()]
          .filter(
            context => !withTasks.has(context.contextId) && isFound(`${context.title} ${context.contextId}`, words)
          )
          .map(context => headOf(context.contextId, [], context))
      : []
  const sorted = [...heads, ...alone].toSorted((one, other) => other.sortMs - one.sortMs)
  return sorted.flatMap(({ head, all }) => {
    const isAlone = isSaidBy(head, all)
    const rows = all.map((task, i) => ({ kind: 'task', task, nth: nthOf(all, i), isAlone }) as const)
    return isAlone ? rows : [head, ...rows]
  })
}

/** A heading and its tasks. Contexts stay in the order of their opening, so that they do not jump while they work. */
function headOf(
  contextId: string,
  all: readonly InspectedTask[],
  context: InspectedContext | undefined
): { readonly head: ContextHead; readonly all: readonly InspectedTask[]; readonly sortMs: number } {
  const [newest] = all
  const head: ContextHead = {
    kind: 'context',
    contextId,
    count: all.length,
    title: context?.title || (all.at(-1)?.title ?? ''),
    changedMs: Math.max(context?.changedMs ?? 0, newest?.changedMs ?? 0),
    ...(newest && { state: newest.state }),
    ...(context?.offer && { offer: context.offer })
  }
  return { head, all, sortMs: newest?.openedMs ?? context?.openedMs ?? 0 }
}

/** Whether the row of a context's only task says all that the heading says. */
function isSaidBy({ title, offer }: ContextHead, [task, ...others]: readonly InspectedTask[]): boolean {
  return task !== undefined && others.length === 0 && !offer && task.title.startsWith(title)
}

/** Which of the tasks with the same title a task is, oldest first. */
function nthOf(all: readonly InspectedTask[], index: number): number {
  if (all.length < 2) return 0
  const same = all.filter(({ title }) => title === all[index]?.title)
  return same.length < 2 ? 0 : same.length - same.indexOf(all[index] as InspectedTask)
}

/** A unique key of a row. */
export function rowKey(row: ListRow): string {
  return row.kind === 'context' ? `context ${row.contextId}` : row.task.taskId
}

function newestFirst(tasks: InspectedTask[]): InspectedTask[] {
  return tasks.length < 2 ? tasks : tasks.toSorted((one, other) => other.openedMs - one.openedMs)
}

function fits(
  { title, taskId, contextId, state, owner }: InspectedTask,
  about: string,
  words: readonly string[],
  group: StateGroup
): boolean {
  const name = stateText(state)
  if (!STATE_GROUPS[group].has(name)) return false
  return (
    words.length === 0 ||
    isFound(`${title} ${about} ${taskId} ${contextId} ${name} ${owner.tenant} ${owner.principal}`, words)
  )
}

function isFound(text: string, words: readonly string[]): boolean {
  const lower = words.length === 0 ? '' : text.toLowerCase()
  return words.every(word => lower.includes(word))
}
