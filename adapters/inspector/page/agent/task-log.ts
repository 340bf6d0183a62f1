import { batch, computed, effect, signal } from '@preact/signals'
import type { Message, StreamResponse, Task } from '../../../../machines/protocol/objects.ts'
import { isTerminal } from '../../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../../runtime/store/store.ts'
import {
  applyEvent,
  ArtifactList,
  newTaskRecord,
  projectTask,
  type TaskRecord
} from '../../../../runtime/store/task-record.ts'
import type { AgentClient } from '../../../client/agent-client.ts'
import { taskReferenceOf } from '../../../client/requests.ts'
import { EXAMPLE_ID, type RecordedExample } from '../../feed.ts'
import { example } from '../feed/feed.ts'
import { contextChanges, contexts, forgetWatched, noteSteps, talk, taskChanges, tasks } from '../feed/known.ts'
import { noteTime, onNextFrame } from '../page.ts'
import { contextId, isNew, phoneView, taskId } from '../selection.ts'
import { errorText } from '../wording.ts'
import { agent } from './agent.ts'

/** The maximum number of separate events of a task. */
const MOST_EVENTS = 5000

/** The number of events that are folded at once above it. */
const FOLDED_AT_ONCE = 1000

/** The events of a task: `folded` is the task after the oldest events. */
interface TaskEvents {
  readonly taskId: string
  readonly contextId: string
  readonly folded: TaskRecord
  /** In order. */
  readonly events: readonly TaskEvent[]
}

/** An unknown task. */
function noEvents(taskId: string, contextId: string): TaskEvents {
  return { taskId, contextId, folded: newTaskRecord({ tenant: '', principal: '', contextId }, taskId), events: [] }
}

/** Adds events to those of a task; known ones are ignored. */
function withEvents(before: TaskEvents, more: readonly TaskEvent[]): TaskEvents {
  const last = lastGeneration(before)
  const events = [...before.events, ...more.filter(({ generation }) => generation > last)]
  if (events.length <= MOST_EVENTS) return { ...before, events }
  const folded = copyOf(before.folded)
  for (const event of events.slice(0, FOLDED_AT_ONCE)) applyEvent(folded, event)
  return { ...before, folded, events: events.slice(FOLDED_AT_ONCE) }
}

/** The generation of the last event; 0 before the first. */
export function lastGeneration({ folded, events }: TaskEvents): number {
  return events.at(-1)?.generation ?? folded.generation
}

/** The earliest generation at which the task can be shown. */
export function firstGeneration({ folded, events }: TaskEvents): number {
  return folded.generation > 0 ? folded.generation : (events[0]?.generation ?? 0)
}

/** The task at a generation. Its history has only the agent's messages; `historyAt` adds the client's. */
export function taskAt({ folded, events }: TaskEvents, generation: number): Task {
  const record = copyOf(folded)
  for (const event of events) if (event.generation <= generation) applyEvent(record, event)
  return projectTask(record).task
}

/**
 * The messages up to a generation. `said` is the current history, oldest first. A client's message has no generation:
 * it is shown from the generation after the agent's message before it.
 */
export function historyAt({ folded, events }: TaskEvents, said: readonly Message[], generation: number): Message[] {
  const saidAt = new Map<string, number>()
  for (const { messageId } of folded.said) saidAt.set(messageId, folded.generation)
  for (const { generation, update } of events) {
    const message = 'statusUpdate' in update ? update.statusUpdate.status.message : undefined
    if (message) saidAt.set(message.messageId, generation)
  }
  let before = 0
  return said.filter(message => {
    const at = message.role === 'ROLE_AGENT' ? (saidAt.get(message.messageId) ?? before) : before + 1
    if (message.role === 'ROLE_AGENT') before = at
    return at <= generation
  })
}

function copyOf(record: TaskRecord): TaskRecord {
  const artifacts = record.artifacts && new ArtifactList()
  for (const artifact of record.artifacts?.copies() ?? []) artifacts?.set(artifact)
  return { ...record, artifacts, said: [...record.said] }
}

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
