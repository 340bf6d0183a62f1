import { batch, computed, effect, signal } from '@preact/signals'
import type { Message, StreamResponse } from '../../../../machines/protocol/objects.ts'
import { isTerminal } from '../../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../../runtime/store/store.ts'
import type { AgentClient } from '../../../client/agent-client.ts'
import { taskReferenceOf } from '../../../client/requests.ts'
import { EXAMPLE_ID, type RecordedExample } from '../../feed.ts'
import { example } from '../feed/feed.ts'
import { contextChanges, contexts, talk } from '../feed/known-contexts.ts'
import { forgetWatched, noteSteps, taskChanges, tasks } from '../feed/known.ts'
import { onNextFrame } from '../frame/next-frame.ts'
import { noteTime } from '../frame/time.ts'
import { errorText } from '../frame/wording.ts'
import { contextId, isNew, phoneView, taskId } from '../selection.ts'
import { agent } from './agent.ts'
import { noEvents, withEvents, type TaskEvents } from './task-events.ts'

/** One task of the chosen context: its events and messages as far as they were read. */
export interface TaskLog {
  readonly events: TaskEvents
  /** The messages of both sides, oldest first. */
  readonly said: readonly Message[]
  /** Why it cannot be read. */
  readonly error?: string
  /** Whether its newest events were left out. */
  readonly isPast?: boolean
}

/** The number of tasks of a context that are followed, the newest. */
const MOST_FOLLOWED = 30

/** The number of open tasks that are followed over HTTP, where each takes one of the browser's few connections. */
const MOST_OVER_HTTP = 4

/** The tasks of the chosen context, by id, in the order of their opening. */
export const logs = signal<ReadonlyMap<string, TaskLog>>(new Map())

/** The id of the shown task: of the chosen one, or of the recorded example. */
export const shownTaskId = computed(() => taskId.value ?? (logs.value.has(EXAMPLE_ID) ? EXAMPLE_ID : undefined))

const shownLog = computed(() => logs.value.get(shownTaskId.value ?? ''))

/** The events of the shown task. */
export const log = computed(() => shownLog.value?.events)

/** The messages of the shown task, of both sides, oldest first. */
export const said = computed(() => shownLog.value?.said ?? [])

/** Why the shown task cannot be read. */
export const logError = computed(() => shownLog.value?.error)

/** The tasks to follow, oldest first. */
const wanted = computed(() => {
  void taskChanges.value
  const here = Array.from(tasks.values())
    .filter(task => task.contextId === contextId.value)
    .toSorted((one, other) => one.openedMs - other.openedMs)
    .slice(-MOST_FOLLOWED)
  const isHttp = agent.value !== undefined && agent.value.binding !== 'WEBSOCKET'
  const skipped = here.filter(({ state }) => !isTerminal(state)).slice(0, isHttp ? -MOST_OVER_HTTP : 0)
  const ids = here.filter(task => !skipped.includes(task)).map(task => task.taskId)
  return taskId.value === undefined || ids.includes(taskId.value) ? ids : [...ids, taskId.value]
})

/** Follows the tasks of the chosen context. */
export function followTasks(): void {
  let leave = new AbortController()
  let followed: { readonly client: AgentClient | undefined; readonly context: string } | undefined
  effect(() => {
    const [client, context, ids] = [agent.value, contextId.value ?? '', wanted.value]
    if (followed?.client !== client || followed?.context !== context) {
      leave.abort()
      leave = new AbortController()
      followed = { client, context }
      logs.value = new Map()
    }
    const missing = ids.filter(id => !logs.peek().has(id))
    if (!client || missing.length === 0) return
    logs.value = new Map<string, TaskLog>([
      ...logs.peek(),
      ...missing.map(id => [id, { events: noEvents(id, context), said: [] }] as const)
    ])
    for (const id of missing)
      follow(client, id, leave.signal).catch(error => note(id, leave.signal, () => ({ error: errorText(error) })))
  })
}

/**
 * Shows the recorded example until the first context or task is there, or a new one is begun. Nothing is asked of the
 * agent.
 */
export function showExample(): void {
  effect(() => {
    void taskChanges.value
    void contextChanges.value
    const run = contextId.value === undefined && !isNew.value && tasks.size + contexts.size === 0 && example.value
    const isShown = logs.value.has(EXAMPLE_ID)
    if (!run && !isShown) return
    batch(() => {
      if (run && shownRun === run && isShown) return
      forgetWatched()
      shownRun = run || undefined
      logs.value = new Map()
      if (!run) return
      const events = withEvents(noEvents(EXAMPLE_ID, EXAMPLE_ID), run.events)
      logs.value = new Map([[EXAMPLE_ID, { events, said: run.said }]])
      noteSteps(run.steps)
      phoneView.value = 'task'
    })
  })
}

let shownRun: RecordedExample | undefined

function note(id: string, { aborted }: AbortSignal, change: (log: TaskLog) => Partial<TaskLog>): void {
  const before = logs.peek().get(id)
  if (!aborted && before) logs.value = new Map(logs.peek()).set(id, { ...before, ...change(before) })
}

async function follow(client: AgentClient, id: string, signal: AbortSignal): Promise<void> {
  let waiting: TaskEvent[] = []
  const readSaid = oneAtATime(async () => {
    const { history = [], status } = await client.getTask({ id }, { signal })
    note(id, signal, () => ({ said: status.message ? [...history, status.message] : history }))
  })
  const read = () => readSaid().catch(error => note(id, signal, () => ({ error: errorText(error) })))
  const takeAll = onNextFrame(() => {
    const taken = waiting
    waiting = []
    batch(() => note(id, signal, ({ events }) => ({ events: withEvents(events, taken) })))
    // The client's messages are not in events, only in the task.
    if (!signal.aborted && taken.some(({ update }) => 'statusUpdate' in update)) void read()
  })
  // A message that changes no status is only told by the feed.
  let count = 0
  const stop = effect(() => {
    const now = talk.value.filter(one => one.taskId === id).length
    if (now > count && count > 0) void read()
    count = now
  })
  signal.addEventListener('abort', stop, { once: true })
  for await (const event of client.subscribeToTask({ id }, { afterGeneration: 0, signal })) {
    const logged = loggedEvent(event)
    if (logged) waiting.push(logged)
    if ('statusUpdate' in event) noteTime(Date.parse(event.statusUpdate.status.timestamp ?? ''))
    takeAll()
  }
  stop()
}

/** Runs `work`. Calls during a run lead to exactly one more run. */
function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let isUnderWay = false
  let isDue = false
  return async () => {
    isDue = true
    if (isUnderWay) return
    isUnderWay = true
    try {
      while (isDue) {
        isDue = false
        await work()
      }
    } finally {
      isUnderWay = false
    }
  }
}

function loggedEvent(event: StreamResponse): TaskEvent | undefined {
  const { taskId = '', generation = 0 } = taskReferenceOf(event)
  return 'statusUpdate' in event || 'artifactUpdate' in event ? { taskId, generation, update: event } : undefined
}
