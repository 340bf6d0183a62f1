import type { Schema } from '../../machines/protocol/codec/decode.ts'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, invalidParams, isA2AError } from '../../machines/protocol/errors.ts'
import type { Message, Task } from '../../machines/protocol/objects.ts'
import { isReplyEnd, isTerminal } from '../../machines/protocol/states.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { CallContext, ClientKey, KeyTarget } from '../../runtime/access/call-context.ts'
import type { Runtime } from '../../runtime/index.ts'
import type { WebhookBodyWriter } from '../../runtime/ports/webhook-sender.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import { servedRuntime } from '../../runtime/runtime-options.ts'
import type { Dialect, Method } from '../json-rpc/dispatch.ts'
import { toError01, withObjectData } from './errors.ts'
import { checkedParams, type Event01, type Status01 } from './parts.ts'
import { card01, Events01, type Known, toAnswered01, toTask01, toWebhook01 } from './v01-answers.ts'
import { artifactsIn, PastReader, withPast } from './v01-past.ts'
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

/** Options of A2A 0.1. */
export interface Dialect01Options {
  /** How long a client's id of a task is stored after the last message under it, in milliseconds. Default 1 year. */
  readonly idsRememberedMs?: number
}

const OPTIONS: OptionKinds<Dialect01Options> = { idsRememberedMs: true }

const YEAR_MS = 365 * 24 * 60 * 60 * 1000

/**
 * A2A 0.1 over a runtime: its JSON-RPC, on every binding that carries JSON-RPC. Its clients choose the ids of tasks,
 * which are keys in the runtime, of each client its own. A message to an ended task opens another task in the same
 * context, which gets the id; the answer's metadata states it. Throws TypeError for an unknown option, RangeError for
 * an invalid `idsRememberedMs`.
 */
export function dialect01(given: Runtime, options: Dialect01Options = {}): Dialect {
  const runtime = servedRuntime(given, 'dialect01')
  checkOptions(options, OPTIONS, 'dialect01', 'dialect01(runtime, { idsRememberedMs: 86_400_000 })')
  const { idsRememberedMs: storedMs = YEAR_MS } = options
  if (!(storedMs > 0 && storedMs < Infinity))
    throw new RangeError(`idsRememberedMs has to be milliseconds above 0, not ${String(storedMs)}.`)
  const { capabilities, rejected, opensTasks, jsonLimits: limits } = runtime.settings
  const past = new PastReader(runtime)
  runtime.writesWebhooks(VERSION_01, webhookWriter(past))

  const answered = <Params extends { id: string }>(
    schema: Schema<Params>,
    run: (params: Params, call: CallContext) => Promise<unknown>
  ): Method => ({
    streaming: false,
    answer: async (given, call) => {
      try {
        return await run(
          rejected.read(call, given, () => checkedParams(schema, given, limits)),
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
          rejected.read(call, given, () => checkedParams(schema, given, limits)),
          { ...call, version: PROTOCOL_VERSION, dialect: VERSION_01 }
        )
      } catch (error) {
        throw toError01(error, given)
      }
    }
  })

  /** The task of a client's id, the reply that was the answer instead of a task, or that there is no answer yet. */
  const findTarget = async (id: string, call: CallContext) => (await runtime.findByKey(id, call)) ?? { taskId: id }

  /** The key of a message, and the ended task that its task follows, once it is addressed. */
  const keyOf = (params: IdAndSession): { readonly key: ClientKey; readonly follows: () => string | undefined } => {
    let address: ReturnType<ClientKey['address']> = {}
    const key: ClientKey = { name: params.id, storedMs, address: target => (address = addressOf(params, target)) }
    return { key, follows: () => address.referenceTaskIds?.[0] }
  }

  /** The runtime's id of a task. */
  const ownTaskId = async (id: string, call: CallContext): Promise<string> => {
    const named = await findTarget(id, call)
    return 'taskId' in named ? named.taskId : id
  }

  const answeredWith = async (
    reply: Message,
    { id, historyLength }: { readonly id: string; readonly historyLength?: number | undefined },
    call: CallContext
  ) =>
    toAnswered01(
      reply,
      { id, opensTasks },
      await past.negotiated(id, { contextId: reply.contextId }, call),
      historyLength
    )

  const shown = async (
    task: Task,
    { id, follows, historyLength }: Known & { readonly historyLength?: number | undefined },
    call: CallContext
  ) => toTask01(withPast(task, await past.of(task, id, call), id, historyLength), { id, follows })

  /** A task's known content, and then its events; for an ended task only its content. */
  async function* resubscribed({ id, taskId }: { id: string; taskId: string }, call: CallContext): Events {
    const events = new Events01({ id }, isTerminal)
    const read = () => runtime.getTask({ id: taskId, historyLength: 0 }, { ...call, conditions: {} })
    const known = await read()
    events.numberFrom(artifactsIn(await past.earlierTasks(known, id, call)))
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
        const { key, follows } = keyOf(params)
        const answer = await runtime.sendMessage(toSendMessage(params), { ...call, key })
        return 'task' in answer
          ? shown(answer.task, { id, follows: follows(), historyLength }, call)
          : answeredWith(answer.message, params, call)
      })
    ],
    [
      'tasks/sendSubscribe',
      streamed(SendParams01, async function* (params, call) {
        const { id } = params
        const { key, follows } = keyOf(params)
        const events = new Events01({ id, opensTasks }, isReplyEnd)
        const sent = runtime.sendStreamingMessage(toSendMessage(params), { ...call, key })
        for await (const event of sent) {
          if ('task' in event) events.numberFrom(artifactsIn(await past.earlierTasks(event.task, id, call)))
          yield* events.from(event, follows())
        }
      })
    ],
    [
      'tasks/get',
      answered(GetParams01, async ({ id, historyLength }, call) => {
        const named = await findTarget(id, call)
        if ('isPending' in named) return { id, status: SUBMITTED }
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
        if (!opensTasks && 'reply' in (await findTarget(id, call)))
          throw new A2AError('TaskNotCancelable', `Task ${id} is completed and cannot be canceled.`)
        const keyToCancel = { name: id, storedMs, message: cancellation(params) }
        return shown(await runtime.cancelTask({ id }, { ...call, keyToCancel }), { id }, call)
      })
    ],
    [
      'tasks/resubscribe',
      streamed(GetParams01, async function* ({ id }, call) {
        const named = await findTarget(id, call)
        if ('isPending' in named) yield { id, status: SUBMITTED, final: true }
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
      (await runtime.findByKey(params.id, { ...call, version: PROTOCOL_VERSION })) !== undefined,
    refusal: withObjectData,
    card: card01
  }
}

/** The id of a task and the session in a request. */
interface IdAndSession {
  readonly id: string
  readonly sessionId?: string | undefined
}

/**
 * Where a message under an id goes: to its task, or after its end to the same session, where it opens the next one. A
 * task under the runtime's own id keeps that, and is not followed.
 */
function addressOf({ id, sessionId }: IdAndSession, target: KeyTarget | undefined): ReturnType<ClientKey['address']> {
  if (!target) return {}
  if ('taskId' in target && target.taskId === id) return { taskId: id }
  const { contextId } = target
  if (sessionId !== undefined && sessionId !== contextId)
    throw invalidParams({ field: 'sessionId', description: `must be the session of task ${id}, or be left out` })
  if ('reply' in target) return { contextId }
  return isTerminal(target.state) ? { contextId, referenceTaskIds: [target.taskId] } : { taskId: target.taskId }
}

/** Writes the webhook body of 0.1: the complete task after each update, with its client's id. */
const webhookWriter =
  (past: PastReader): WebhookBodyWriter =>
  async (_, task, { id: webhookId, tenant, principal }) => {
    const id = requestedTaskIdOf(webhookId)
    const shown = withPast(task, await past.of(task, id, { tenant, principal }), id)
    return { type: 'application/json', text: JSON.stringify(toTask01(shown, { id })) }
  }
