import { isA2AError } from '../../machines/protocol/errors.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { TaskName } from '../access/call-context.ts'
import { taskNameKey } from '../store/rows.ts'
import type { Scope } from '../store/store.ts'
import { oneAtATime } from './deduplication.ts'
import type { OperationServices } from './dependencies.ts'
import { otherContext, routeMessage, type Outcome, type SendTerms } from './route-message.ts'

/** The target of a name: its newest task, or the agent's answer if there was no task. */
export type NamedTask = { readonly taskId: string } | { readonly reply: Message }

/** The task or answer that a client's name refers to; `undefined` if it is unknown or expired. */
export async function readNamed({ store, clock }: OperationServices, scope: Scope, name: string): Promise<NamedTask | undefined> {
  const atMs = clock.now()
  const row = await store.readSend(scope, taskNameKey(name, atMs, 0).key)
  return row && row.expiresAtMs > atMs ? row : undefined
}

/**
 * Routes a message to the task of a name, if that has not ended. Otherwise the message goes to a context: that of the last task, if there
 * was one. The task that it opens gets the name in the same commit. Messages for one name are routed one at a time. A task id made by the
 * server is not a name: it keeps its task.
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
      // The task may have ended since it was read.
      if (!isA2AError(error) || error.code !== 'UnsupportedOperation' || !(await taskFor(services, scope, taskId))?.isOver) throw error
      return begin()
    }
  })
}

/** The predecessor of a message under a name: a task, or an answer without a task. */
interface Last {
  readonly contextId: string
  readonly isOver: boolean
}

async function taskFor({ store }: OperationServices, scope: Scope, taskId: string): Promise<Last | undefined> {
  const stored = await store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
  return stored && { contextId: stored.task.contextId, isOver: isTerminal(stored.task.status.state) }
}

/** Every reply of an agent has a contextId. */
function answered(reply: Message): Last {
  return { contextId: (reply as Message & { contextId: string }).contextId, isOver: true }
}
