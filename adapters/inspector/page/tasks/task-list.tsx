import { computed, effect, signal } from '@preact/signals'
import { stateText } from '../../../../machines/protocol/states.ts'
import { hello } from '../feed/feed.ts'
import { contextChanges, contexts } from '../feed/known-contexts.ts'
import { missedTasks, taskChanges, tasks } from '../feed/known.ts'
import { copyText } from '../frame/copy-id.tsx'
import { focusOn } from '../frame/focus.ts'
import { Paste, sendLine } from '../frame/paste.tsx'
import { ageText, nowMs } from '../frame/time.ts'
import { countText, shortId } from '../frame/wording.ts'
import { choose, contextId, isNew, phoneView, showTalk, taskId } from '../selection.ts'
import { StateBadge } from '../state-badge.tsx'
import { Examples } from '../talk/talk-panel.tsx'
import { VirtualList } from '../virtual-list.tsx'
import { listRows, rowKey, STATE_GROUPS, type ContextHead, type ListRow, type StateGroup } from './task-rows.ts'

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
          {countText(generation, 'event')}
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
