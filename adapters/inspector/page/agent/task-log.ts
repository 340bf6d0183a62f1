import { batch, effect, signal } from '@preact/signals'
import type { StreamResponse } from '../../../../machines/protocol/objects.ts'
import type { Message } from '../../../../machines/protocol/parts.ts'
import type { TaskEvent } from '../../../../runtime/store/store.ts'
import type { AgentClient } from '../../../client/connect.ts'
import { placeOf } from '../../../client/requests.ts'
import { onNextFrame } from '../frame/next-frame.ts'
import { errorText } from '../frame/wording.ts'
import { contextId, taskId } from '../selection.ts'
import { agent } from './agent.ts'
import { noEvents, withEvents, type TaskEvents } from './task-events.ts'

/** The events of the chosen task. */
export const log = signal<TaskEvents | undefined>(undefined)

/** The messages of the chosen task, of both sides, oldest first. */
export const said = signal<readonly Message[]>([])

/** Why the chosen task cannot be read. */
export const logError = signal<string | undefined>(undefined)

/** Loads the log whenever a task is chosen. */
export function followTask(): void {
  effect(() => {
    const client = agent.value
    const id = taskId.value
    const leave = new AbortController()
    batch(() => {
      log.value = id === undefined ? undefined : noEvents(id, contextId.peek() ?? '')
      said.value = []
      logError.value = undefined
    })
    if (client && id !== undefined) follow(client, id, leave.signal).catch(error => !leave.signal.aborted && (logError.value = errorText(error)))
    return () => leave.abort()
  })
}

async function follow(client: AgentClient, id: string, signal: AbortSignal): Promise<void> {
  let waiting: TaskEvent[] = []
  const readSaid = oneAtATime(async () => {
    const { history = [], status } = await client.getTask({ id }, { signal })
    if (!signal.aborted) said.value = status.message ? [...history, status.message] : history
  })
  const takeAll = onNextFrame(() => {
    const taken = waiting
    waiting = []
    const before = log.peek()
    if (signal.aborted || !before) return
    log.value = withEvents(before, taken)
    // The client's messages are not in events, only in the task.
    if (taken.some(({ update }) => 'statusUpdate' in update)) readSaid().catch(error => !signal.aborted && (logError.value = errorText(error)))
  })
  for await (const event of client.subscribeToTask({ id }, { afterGeneration: 0, signal })) {
    const logged = loggedEvent(event)
    if (logged) waiting.push(logged)
    takeAll()
  }
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
  const { taskId = '', generation = 0 } = placeOf(event)
  return 'statusUpdate' in event || 'artifactUpdate' in event ? { taskId, generation, update: event } : undefined
}
