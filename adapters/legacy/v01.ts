import type { Schema } from '../../machines/protocol/codec/decode.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { type CallContext, readOrCount } from '../../runtime/access/call-context.ts'
import { jsonLimitsOf } from '../../runtime/access/limits.ts'
import type { Runtime } from '../../runtime/index.ts'
import type { WebhookBodyWriter } from '../../runtime/ports/webhook-sender.ts'
import { servedRuntime } from '../../runtime/runtime-options.ts'
import type { Dialect, Method } from '../json-rpc/dialect.ts'
import { toError01 } from './errors.ts'
import { checkedParams, type Event01, type Status01 } from './parts.ts'
import {
  artifactsIn,
  card01,
  Events01,
  type Known,
  negotiatedIn,
  toAnswered01,
  toTask01,
  toWebhook01,
  withPast
} from './v01-answers.ts'
import {
  cancellation,
  GetParams01,
  IdParams01,
  SendParams01,
  SetPushParams01,
  requestedTaskIdOf,
  toSendMessage,
  toWebhook,
  webhookIdOf
} from './v01-requests.ts'

const VERSION_01 = '0.1'

/** The status of an id whose first message the agent is negotiating. */
const SUBMITTED: Status01 = { state: 'submitted' }

type Events = AsyncGenerator<Event01, void, undefined>

/**
 * A2A 0.1 over a runtime: its JSON-RPC, on every binding that carries JSON-RPC. Its clients choose the ids of tasks,
 * which are names in the runtime and local to their clients. A message to an ended task opens another task in the same
 * context, which gets the id; the answer's metadata states it.
 */
export function dialect01(given: Runtime): Dialect {
  const runtime = servedRuntime(given, 'dialect01')
  const { capabilities, countRejected: countRejection, negotiates, opensTasks } = runtime.settings
  const limits = jsonLimitsOf(runtime.settings.limits)
  runtime.writesWebhooks(VERSION_01, webhookWriter(negotiates))

  const answered = <Params extends { id: string }>(
    schema: Schema<Params>,
    run: (params: Params, call: CallContext) => Promise<unknown>
  ): Method => ({
    streaming: false,
    answer: async (given, call) => {
      try {
        return await run(
          readOrCount(countRejection, call, given, () => checkedParams(schema, given, limits)),
          { ...call, version: PROTOCOL_VERSION, dialect: VERSION_01 }
        )
      } catch (error) {
        throw toError01(error, given)
      }
    }
  })

  const streamed = <Params extends { id: string }>(
    schema: Schema<Params>,
    run: (params: Params, call: CallContext) => Events
  ): Method => ({
    streaming: true,
    async *events(given, call) {
      try {
        yield* run(
          readOrCount(countRejection, call, given, () => checkedParams(schema, given, limits)),
          { ...call, version: PROTOCOL_VERSION, dialect: VERSION_01 }
        )
      } catch (error) {
        throw toError01(error, given)
      }
    }
  })

  /** The task of a client's id, the reply that was the answer instead of a task, or that there is no answer yet. */
  const meant = async (id: string, call: CallContext) => (await runtime.taskNamed(id, call)) ?? { taskId: id }

  /** The runtime's id of a task. */
  const ownTaskId = async (id: string, call: CallContext): Promise<string> => {
    const named = await meant(id, call)
    return 'taskId' in named ? named.taskId : id
  }

  /** The messages of an id's negotiation, before a task or up to now. */
  const negotiated = async (id: string, contextId: string | undefined, taskId: string | undefined, call: CallContext) =>
    negotiates && contextId !== undefined && taskId !== id
      ? negotiatedIn(await runtime.messagesBefore({ contextId, taskId }, call), id)
      : []

  const answeredWith = async (
    reply: Message,
    { id, historyLength }: { readonly id: string; readonly historyLength?: number | undefined },
    call: CallContext
  ) => toAnswered01(reply, { id, opensTasks }, await negotiated(id, reply.contextId, undefined, call), historyLength)

  /** The earlier tasks with the same client id. */
  const earlier = async ({ id: taskId }: Task, id: string, call: CallContext) =>
    taskId === id ? [] : runtime.roundsBefore(taskId, call)

  const shown = async (
    task: Task,
    { id, follows, historyLength }: Known & { readonly historyLength?: number | undefined },
    call: CallContext
  ) => {
    const rounds = await earlier(task, id, call)
    const [first = task] = rounds
    return toTask01(
      withPast(
        task,
        { earlierTasks: rounds, negotiated: await negotiated(id, task.contextId, first.id, call) },
        id,
        historyLength
      ),
      { id, follows }
    )
  }

  /** A task's known content, and then its events; for an ended task only its content. */
  async function* resubscribed({ id, taskId }: { id: string; taskId: string }, call: CallContext): Events {
    const events = new Events01({ id }, isTerminal)
    const read = () => runtime.getTask({ id: taskId, historyLength: 0 }, { ...call, conditions: {} })
    const known = await read()
    events.numberFrom(artifactsIn(await earlier(known, id, call)))
    events.number(known)
    try {
      for await (const event of runtime.subscribeToTask({ id: taskId }, call)) yield* events.from(event)
    } catch (error) {
      if (!capabilities.streaming || !isA2AError(error) || error.code !== 'UnsupportedOperation') throw error
      yield* events.from({ task: await read() })
    }
  }

  const methods = new Map<string, Method>([
    [
      'tasks/send',
      answered(SendParams01, async (params, call) => {
        const { id, historyLength } = params
        let follows: string | undefined
        const answer = await runtime.sendMessage(toSendMessage(params), {
          ...call,
          taskName: { name: id, continuesAfter: taskId => void (follows = taskId) }
        })
        return 'task' in answer
          ? shown(answer.task, { id, follows, historyLength }, call)
          : answeredWith(answer.message, params, call)
      })
    ],
    [
      'tasks/sendSubscribe',
      streamed(SendParams01, async function* (params, call) {
        const { id } = params
        let follows: string | undefined
        const events = new Events01({ id, opensTasks }, isPause)
        const sent = runtime.sendStreamingMessage(toSendMessage(params), {
          ...call,
          taskName: { name: id, continuesAfter: taskId => void (follows = taskId) }
        })
        for await (const event of sent) {
          if ('task' in event) events.numberFrom(artifactsIn(await earlier(event.task, id, call)))
          yield* events.from(event, follows)
        }
      })
    ],
    [
      'tasks/get',
      answered(GetParams01, async ({ id, historyLength }, call) => {
        const named = await meant(id, call)
        if ('isAnswered' in named) return { id, status: SUBMITTED }
        if ('reply' in named) return answeredWith(named.reply, { id, historyLength }, call)
        return shown(
          await runtime.getTask({ id: named.taskId, ...(historyLength !== undefined && { historyLength }) }, call),
          { id, historyLength },
          call
        )
      })
    ],
    [
      'tasks/cancel',
      answered(IdParams01, async (params, call) => {
        const { id } = params
        if (!opensTasks && 'reply' in (await meant(id, call)))
          throw new A2AError('TaskNotCancelable', `Task ${id} is completed and cannot be canceled.`)
        return shown(await runtime.cancelNamed(id, cancellation(params), call), { id }, call)
      })
    ],
    [
      'tasks/resubscribe',
      streamed(GetParams01, async function* ({ id }, call) {
        const named = await meant(id, call)
        if ('isAnswered' in named) yield { id, status: SUBMITTED, final: true }
        else if ('reply' in named) yield* new Events01({ id, opensTasks }, isTerminal).from({ message: named.reply })
        else yield* resubscribed({ id, taskId: named.taskId }, call)
      })
    ],
    [
      'tasks/pushNotification/set',
      answered(SetPushParams01, async ({ id, pushNotificationConfig }, call) => {
        const taskId = await ownTaskId(id, call)
        return toWebhook01(
          await runtime.createTaskPushNotificationConfig({ taskId, ...toWebhook(id, pushNotificationConfig) }, call),
          { id }
        )
      })
    ],
    [
      'tasks/pushNotification/get',
      answered(IdParams01, async ({ id }, call) => {
        const taskId = await ownTaskId(id, call)
        return toWebhook01(await runtime.getTaskPushNotificationConfig({ taskId, id: webhookIdOf(id) }, call), { id })
      })
    ]
  ])

  return {
    version: VERSION_01,
    method: name => methods.get(name),
    claims: async (params, call) =>
      isObject(params) &&
      typeof params.id === 'string' &&
      (await runtime.taskNamed(params.id, { ...call, version: PROTOCOL_VERSION })) !== undefined,
    card: card01
  }
}

/** Writes the webhook body of 0.1: the complete task after each update, with its client's id. */
const webhookWriter =
  (negotiates: boolean): WebhookBodyWriter =>
  async (_, task, webhookId, before) => {
    const id = requestedTaskIdOf(webhookId)
    const rounds = task.id === id ? [] : await before.rounds()
    const [first = task] = rounds
    const negotiated = negotiates && task.id !== id ? negotiatedIn(await before.messages(first), id) : []
    const shown = withPast(task, { earlierTasks: rounds, negotiated }, id)
    return { type: 'application/json', text: JSON.stringify(toTask01(shown, { id })) }
  }

/** The stream of a message also closes at a question. */
function isPause(state: TaskState): boolean {
  return isTerminal(state) || state === 'TASK_STATE_INPUT_REQUIRED'
}
