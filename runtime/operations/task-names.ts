import { isA2AError } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { TaskName } from '../access/call-context.ts'
import { taskNameKey } from '../store/rows.ts'
import type { Scope } from '../store/store.ts'
import { oneAtATime } from './deduplication.ts'
import type { OperationServices } from './dependencies.ts'
import { otherContext, routeMessage, type Outcome, type SendTerms } from './route-message.ts'

/** What a name stands for: its newest task, or the message that was the answer in place of one. */
export type NamedTask = { readonly taskId: string } | { readonly reply: Message }

/** What a client has given a name, if that is remembered. */
export async function readNamed({ store, clock }: OperationServices, scope: Scope, name: string): Promise<NamedTask | undefined> {
  const atMs = clock.now()
  const row = await store.readSend(scope, taskNameKey(name, atMs, 0).key)
  return row && row.expiresAtMs > atMs ? row : undefined
}

/**
 * Brings a message to the task of a name, as long as that has not ended. After its end, and where there is none yet, the
 * message goes to the context, of the last task if there was one, and what it opens has the name from then on: that is one
 * commit. Messages under one name wait for each other until they are placed. An id that we gave is no name: it keeps its task.
 */
export async function placeNamed(
  services: OperationServices,
  scope: Scope,
  message: Message,
  { name, continuesAfter }: TaskName,
  terms: Omit<SendTerms, 'send'>
): Promise<Outcome> {
  const { clock, limits, sendsUnderWay } = services
  const send = taskNameKey(name, clock.now(), limits.taskNamesRememberedMs)
  const open = (more: Partial<Message> = {}) => routeMessage(services, scope, { ...message, ...more }, { ...terms, send })
  return oneAtATime(sendsUnderWay, scope, send, async () => {
    const named = await readNamed(services, scope, name)
    const taskId = named && 'taskId' in named ? named.taskId : name
    const last = named && 'reply' in named ? answered(named.reply) : await taskFor(services, scope, taskId)
    if (!last) return open()
    if (!named) return routeMessage(services, scope, { ...message, taskId }, terms)
    const { contextId, isOver } = last
    if (message.contextId !== undefined && message.contextId !== contextId) throw otherContext(name)
    const begin = () => {
      if ('reply' in named) return open({ contextId })
      continuesAfter?.(taskId)
      return open({ contextId, referenceTaskIds: [taskId] })
    }
    if (isOver) return begin()
    try {
      return await open({ taskId })
    } catch (error) {
      // It may have ended since it was looked at.
      if (!isA2AError(error) || error.code !== 'UnsupportedOperation' || !(await taskFor(services, scope, taskId))?.isOver) throw error
      return begin()
    }
  })
}

/** What a message under a name comes after: a task, or an answer that was none. */
interface Last {
  readonly contextId: string
  readonly isOver: boolean
}

async function taskFor({ store }: OperationServices, scope: Scope, taskId: string): Promise<Last | undefined> {
  const stored = await store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
  return stored && { contextId: stored.task.contextId, isOver: isTerminal(stored.task.status.state) }
}

/** Every reply says its context. */
function answered(reply: Message): Last {
  return { contextId: (reply as Message & { contextId: string }).contextId, isOver: true }
}
