import { computed, effect, signal } from '@preact/signals'
import { taskChanges, tasks } from '../feed/known.ts'
import { ageText, nowMs } from '../frame/time.ts'
import { counted, shortId, stateText } from '../frame/wording.ts'
import { hello } from '../feed/feed.ts'
import { choose, contextId, taskId } from '../selection.ts'
import { StateBadge } from '../state-badge.tsx'
import { spokenContexts } from '../talk/sending.ts'
import { VirtualList } from '../virtual-list.tsx'
import { listRows, rowKey, STATE_GROUPS, type ListRow, type StateGroup } from './task-rows.ts'

const CONTEXT_HEIGHT = 26
const TASK_HEIGHT = 48

const search = signal('')
const group = signal<StateGroup>('all')

const rows = computed(() => {
  void taskChanges.value
  const withTasks = new Set(Array.from(tasks.values(), ({ contextId }) => contextId))
  return listRows(tasks.values(), { search: search.value, group: group.value }, spokenContexts.value.filter(id => !withTasks.has(id)))
})

const counts = computed(() => {
  void taskChanges.value
  const byState = new Map<string, number>()
  for (const { state } of tasks.values()) byState.set(stateText(state), (byState.get(stateText(state)) ?? 0) + 1)
  return (wanted: StateGroup) => [...byState].reduce((sum, [state, count]) => sum + (STATE_GROUPS[wanted].has(state) ? count : 0), 0)
})

/** Chooses the first task that arrives, unless one is chosen. */
export function chooseFirst(): void {
  effect(() => {
    const first = rows.value.find(row => row.kind === 'task')
    if (contextId.peek() === undefined && first?.kind === 'task') choose(first.task.contextId, first.task.taskId)
  })
}

/** The live list of contexts and tasks. */
export function TaskList() {
  const chosen = taskId.value ?? (contextId.value === undefined ? undefined : `context ${contextId.value}`)
  return (
    <nav class="tasks" aria-label="Contexts and tasks">
      <div class="tasks-tools">
        <input type="search" id="search" placeholder="Search tasks  ( / )" aria-label="Search tasks" value={search.value} onInput={event => (search.value = event.currentTarget.value)} />
        <select aria-label="Which states" value={group.value} onChange={event => (group.value = event.currentTarget.value as StateGroup)}>
          {(Object.keys(STATE_GROUPS) as StateGroup[]).map(name => (
            <option key={name} value={name}>{`${STATE_GROUPS[name].label} (${counts.value(name)})`}</option>
          ))}
        </select>
      </div>
      <VirtualList label="Tasks" items={rows.value} keyOf={rowKey} heightOf={heightOf} activeKey={chosen} isHeading={isTasksHead}
        choose={row => (row.kind === 'task' ? choose(row.task.contextId, row.task.taskId) : choose(row.contextId, tasksOf(row.contextId)))}
        row={row => (row.kind === 'task' ? <TaskLine {...row} /> : <ContextLine {...row} />)} empty={<NoTasks />} />
    </nav>
  )
}

function heightOf(row: ListRow): number {
  return row.kind === 'task' ? TASK_HEIGHT : CONTEXT_HEIGHT
}

function isTasksHead(row: ListRow): boolean {
  return row.kind === 'context' && row.count > 0
}

/** The newest task of a context in the list. */
function tasksOf(context: string): string | undefined {
  const row = rows.peek().find(row => row.kind === 'task' && row.task.contextId === context)
  return row?.kind === 'task' ? row.task.taskId : undefined
}

function ContextLine({ contextId, count }: Extract<ListRow, { kind: 'context' }>) {
  return (
    <>
      <span class="context-name" title={`Context ${contextId}`}>{shortId(contextId)}</span>
      <span class="quiet">{count === 0 ? 'no task' : counted(count, 'task')}</span>
    </>
  )
}

function TaskLine({ task: { title, state, generation, openedMs, taskId } }: Extract<ListRow, { kind: 'task' }>) {
  return (
    <>
      <span class="task-title" title={title}>{title || <span class="quiet">no text</span>}</span>
      <span class="task-facts">
        <StateBadge state={state} />
        <span title={`Task ${taskId}`} class="mono">{shortId(taskId)}</span>
        <span class="task-age" title={`Opened ${new Date(openedMs).toLocaleString()}`}>{ageText(openedMs, nowMs.value)}</span>
        <span title={`Generation ${generation}: its last event`} class="generation">{`g${generation}`}</span>
      </span>
    </>
  )
}

function NoTasks() {
  if (tasks.size > 0) return <p>No task matches. Change the search, or show all states.</p>
  return (
    <>
      <p>No task yet. Send a message under <b>Talk</b>, or in a terminal:</p>
      <pre class="paste">{`npx taskchart send ${hello.value?.url ?? 'ws://…'} 'hello'`}</pre>
    </>
  )
}
