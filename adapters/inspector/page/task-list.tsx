import { computed, effect, signal } from '@preact/signals'
import { stateText, type TaskState } from '../../../machines/protocol/states.ts'
import type { InspectedContext, InspectedTask } from '../feed.ts'
import { hello } from './feed/feed.ts'
import { contextChanges, contexts, missedTasks, taskChanges, tasks } from './feed/known.ts'
import { focusOn, nowMs } from './page.ts'
import { copyText, Paste, sendLine, StateBadge } from './parts.tsx'
import { choose, contextId, isNew, phoneView, showTalk, taskId } from './selection.ts'
import { Examples } from './talk/talk-panel.tsx'
import { VirtualList } from './virtual-list.tsx'
import { ageText, countText, shortId } from './wording.ts'

const CONTEXT_HEIGHT = 26

const TASK_HEIGHT = 48

const search = signal('')

const group = signal<StateGroup>('all')

const rows = computed(() => {
  void taskChanges.value
  void contextChanges.value
  return listRows(tasks.values(), contexts, { search: search.value, group: group.value })
})

const counts = computed(() => {
  void taskChanges.value
  const byState = new Map<string, number>()
  for (const { state } of tasks.values()) byState.set(stateText(state), (byState.get(stateText(state)) ?? 0) + 1)
  void contextChanges.value
  const withTask = new Set(Array.from(tasks.values(), ({ contextId }) => contextId))
  const withoutTask = [...contexts.keys()].filter(id => !withTask.has(id)).length
  return (wanted: StateGroup) =>
    [...byState].reduce((sum, [state, count]) => sum + (STATE_GROUPS[wanted].has(state) ? count : 0), 0) +
    (wanted === 'all' ? withoutTask : 0)
})

/** Chooses the first context or task that arrives, unless one is chosen. */
export function chooseFirst(): void {
  effect(() => {
    const [first] = rows.value
    if (contextId.peek() === undefined && !isNew.peek() && first) chooseRow(first)
  })
}

/** The live list of contexts and tasks. */
export function TaskList() {
  const chosen = taskId.value ?? (contextId.value === undefined ? undefined : `context ${contextId.value}`)
  return (
    <nav class="tasks" aria-label="Contexts and tasks">
      <div class="tasks-tools">
        <input
          type="search"
          id="search"
          placeholder="Search (/)"
          aria-label="Search tasks"
          value={search.value}
          onInput={event => (search.value = event.currentTarget.value)}
        />
        <button type="button" onClick={() => startNew()} title="Begin a new context (n)">
          New
        </button>
        <select
          aria-label="Which states"
          value={group.value}
          onChange={event => (group.value = event.currentTarget.value as StateGroup)}
        >
          {(Object.keys(STATE_GROUPS) as StateGroup[]).map(name => (
            <option key={name} value={name}>
              {name === 'all' && counts.value(name) === 0
                ? STATE_GROUPS.all.label
                : `${STATE_GROUPS[name].label} (${counts.value(name)})`}
            </option>
          ))}
        </select>
      </div>
      {missedTasks.value > 0 && (
        <p class="quiet tasks-missed">{`${countText(missedTasks.value, 'more task')}, not listed: too many came at once`}</p>
      )}
      <VirtualList
        label="Tasks"
        items={rows.value}
        keyOf={rowKey}
        heightOf={heightOf}
        activeKey={chosen}
        isHeading={isTasksHead}
        choose={chooseRow}
        open={() => (phoneView.value = 'task')}
        row={row => (row.kind === 'task' ? <TaskLine {...row} /> : <ContextLine {...row} />)}
        empty={<NoTasks />}
      />
    </nav>
  )
}

function chooseRow(row: ListRow): void {
  if (row.kind === 'task') choose(row.task.contextId, row.task.taskId)
  else choose(row.contextId, tasksOf(row.contextId))
}

/** Opens the conversation for the first message of a new context. */
export function startNew(): void {
  isNew.value = true
  choose(undefined)
  showTalk()
  focusOn('#composer')
}

function heightOf(row: ListRow): number {
  return row.kind === 'task' || row.count === 0 ? TASK_HEIGHT : CONTEXT_HEIGHT
}

function isTasksHead(row: ListRow): boolean {
  return row.kind === 'context' && row.count > 0
}

/** The newest task of a context in the list. */
function tasksOf(context: string): string | undefined {
  const row = rows.peek().find(row => row.kind === 'task' && row.task.contextId === context)
  return row?.kind === 'task' ? row.task.taskId : undefined
}

function ContextLine({ contextId, count, title, state, offer, changedMs }: ContextHead) {
  const stands =
    offer && offer.expiresMs > nowMs.value ? (
      <span class="state state-offer">offer stands</span>
    ) : state && count > 1 ? (
      <StateBadge state={state} />
    ) : undefined
  if (count > 0) {
    return (
      <>
        <span class="context-name" title={`Context ${contextId}: ${title}`}>
          {title || `Context ${shortId(contextId)}`}
        </span>
        {stands}
        <span class="quiet">{countText(count, 'task')}</span>
      </>
    )
  }
  return (
    <>
      <span class="task-title" title={title}>
        {title || <span class="quiet">no text</span>}
      </span>
      <span class="task-facts">
        {stands ?? <span class="state">answered</span>}
        <IdText what="context" id={contextId} />
        <span class="task-age" title={`Last message ${new Date(changedMs).toLocaleString()}`}>
          {ageText(changedMs, nowMs.value)}
        </span>
        <span class="quiet no-task">no task</span>
      </span>
    </>
  )
}

function TaskLine({
  task: { title, state, generation, openedMs, taskId },
  nth,
  isAlone
}: Extract<ListRow, { kind: 'task' }>) {
  return (
    <>
      <span class={isAlone ? 'task-title task-alone' : 'task-title'} title={title}>
        {title || <span class="quiet">no text</span>}
        {nth > 0 && <span class="quiet">{` (${nth})`}</span>}
      </span>
      <span class="task-facts">
        <StateBadge state={state} />
        <IdText what="task" id={taskId} />
        <span class="task-age" title={`Opened ${new Date(openedMs).toLocaleString()}`}>
          {ageText(openedMs, nowMs.value)}
        </span>
        <span title={`Its newest event is generation ${generation}`} class="generation">
          {countText(generation, 'moment')}
        </span>
      </span>
    </>
  )
}

/**
 * An id in a row, which copies the whole one when it is clicked. By keys it is copied in Talk, for a row has no
 * buttons.
 */
function IdText({ what, id }: { readonly what: string; readonly id: string }) {
  return (
    <span class="mono id-text" title={`Click to copy the ${what}’s id, ${id}`} onClick={() => void copyText(id)}>
      {shortId(id)}
    </span>
  )
}

function NoTasks() {
  if (tasks.size > 0) return <p>No task matches. Change the search, or show all states.</p>
  if (!hello.value) return <p class="quiet">Waiting for the agent…</p>
  const {
    agent: { examples = [] }
  } = hello.value
  return (
    <>
      <p>{examples.length > 0 ? 'No task yet. Send an example:' : 'No task yet.'}</p>
      <Examples />
      <p>
        <button type="button" class={examples.length > 0 ? undefined : 'main'} onClick={() => startNew()}>
          Write a message
        </button>
      </p>
      <p class="quiet">Or in a terminal:</p>
      <Paste line={sendLine(hello.value)} />
    </>
  )
}

/** A row of the list: the heading of a context, or one of its tasks. */
type ListRow =
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
interface ContextHead {
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
interface ListFilter {
  /** Words that must all occur in a task's title, ids, state or owner. */
  readonly search: string
  /** The states to show. */
  readonly group: StateGroup
}

/** Groups of states. */
const STATE_GROUPS = {
  all: { label: 'All', has: () => true },
  active: { label: 'Active', has: (state: string) => state === 'submitted' || state === 'working' },
  waiting: { label: 'Waiting', has: (state: string) => state === 'input-required' || state === 'auth-required' },
  done: { label: 'Completed', has: (state: string) => state === 'completed' },
  undone: {
    label: 'Failed, canceled',
    has: (state: string) => state === 'failed' || state === 'canceled' || state === 'rejected'
  }
} as const

type StateGroup = keyof typeof STATE_GROUPS

/** The rows of the list: contexts by their newest task or message, newest first, each with its tasks. */
function listRows(
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
function rowKey(row: ListRow): string {
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
