import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError, isA2AError } from '../../machines/protocol/errors.ts'
import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { fromWireError } from '../../machines/protocol/wire-errors.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import type { WebhookBody } from '../../runtime/ports/webhook-sender.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { LEGACY_VERSION, sdkContext } from '../a2a-sdk/call-context.ts'
import { toRequestHandler, writeLegacy } from '../a2a-sdk/request-handler.ts'
import { card03, type Card03Options } from '../v03/card.ts'
import type { Event03, PushConfig03 } from '../v03/objects.ts'
import { toError03 } from './errors.ts'
import { BARE, type Method03, params03, writeEvents } from './v03-requests.ts'

type Params = Record<string, unknown>
type Failed = { readonly error: unknown }
type Events = AsyncGenerator<Event03, void, undefined>

/** Answers the methods of 0.3. */
export interface Calls03 {
  answer(method: Method03, params: unknown, call: CallContext): Promise<unknown>
  events(method: Method03, params: unknown, call: CallContext): AsyncGenerator<object, void, undefined>
}

/**
 * The methods of A2A 0.3 over a runtime, according to its JSON schema. The SDK's compatibility layer translates;
 * validation and the ends of streams are added here. A request in the form of later drafts, without `kind`, is answered
 * in that form.
 */
export function createCalls03(runtime: ServedRuntime, options: Card03Options): Calls03 {
  const handler = new LegacyJsonRpcTransportHandler(toRequestHandler(runtime))
  const { capabilities, rejected, jsonLimits: limits } = runtime.settings

  const callSdk = (method: string, params: Params, call: CallContext) =>
    handler.handle({ jsonrpc: '2.0', id: 0, method, params }, sdkContext(call, LEGACY_VERSION))

  const askSdk = async (method: string, params: Params, call: CallContext): Promise<unknown> => {
    const response = await callSdk(method, params, call)
    if ('result' in response) return response.result
    throw toOwnError((response as Failed).error, call)
  }

  async function* streamSdk(method: string, params: Params, call: CallContext): Events {
    const response = await callSdk(method, params, call)
    if (!(Symbol.asyncIterator in response)) throw toOwnError((response as Failed).error, call)
    try {
      for await (const event of response) yield (event as { result: Event03 }).result
    } catch (error) {
      throw toOwnError(LegacyJsonRpcTransportHandler.mapToLegacyJSONRPCError(error), call)
    }
  }

  /** 0.3 answers a subscription to an ended task with the task. */
  async function* resubscribe(params: Params, call: CallContext): Events {
    try {
      yield* streamSdk('tasks/resubscribe', params, call)
    } catch (error) {
      if (!capabilities.streaming || !isA2AError(error) || error.code !== 'UnsupportedOperation') throw error
      yield (await askSdk('tasks/get', params, call)) as Event03
    }
  }

  /** Without an id, returns the first webhook of the task. */
  const firstPushConfig = async (params: Params, call: CallContext): Promise<PushConfig03> => {
    const [first] = (await askSdk('tasks/pushNotificationConfig/list', params, call)) as PushConfig03[]
    if (first) return first
    throw new A2AError('TaskNotFound', `Task ${String(params.id)} has no push notification configuration.`)
  }

  const unary = async (method: Method03, given: unknown, call: CallContext): Promise<unknown> => {
    const { name } = method
    const params = rejected.read(call, given, () => params03(method, given, limits))
    if (name === 'agent/getAuthenticatedExtendedCard')
      return card03(await runtime.getExtendedAgentCard({}, { ...call, version: PROTOCOL_VERSION }), options)
    const isFirst = name === 'tasks/pushNotificationConfig/get' && params.pushNotificationConfigId === undefined
    return isFirst ? firstPushConfig(params, call) : askSdk(name, params, call)
  }

  async function* stream(method: Method03, given: unknown, call: CallContext): Events {
    const params = rejected.read(call, given, () => params03(method, given, limits))
    if (method.name === 'tasks/resubscribe') yield* resubscribe(params, call)
    else for await (const event of streamSdk(method.name, params, call)) yield closing(event)
  }

  const answer = async (method: Method03, params: unknown, call: CallContext) => {
    try {
      return isBare(method, params)
        ? toBare(await unary(method, params, { ...call, dialect: BARE }))
        : await unary(method, params, call)
    } catch (error) {
      throw toError03(error)
    }
  }

  async function* events(
    method: Method03,
    params: unknown,
    call: CallContext
  ): AsyncGenerator<object, void, undefined> {
    try {
      if (isBare(method, params)) yield* writeEvents(stream(method, params, { ...call, dialect: BARE }), toBare)
      else yield* stream(method, params, call)
    } catch (error) {
      throw toError03(error)
    }
  }

  return { answer, events }
}

/** The form of the answer: that of the message, else that of the method's spelling. */
function isBare({ dotted }: Method03, params: unknown): boolean {
  return isBareMessage(params) ?? dotted
}

/** The body of a webhook that a client of 0.3 has registered, in the form of that client. */
export function writeWebhook03(form: string, update: StreamResponse, task: Task): WebhookBody {
  const { type, text } = writeLegacy(update, task)
  return { type, text: form === BARE ? JSON.stringify(toBare(JSON.parse(text))) : text }
}

/** The stream of a message also closes at a question: that event is `final`. */
function closing(event: Event03): Event03 {
  return event.kind === 'status-update' && event.status.state === 'input-required' ? { ...event, final: true } : event
}

/** An error of the SDK's envelope as an A2AError with all details, or the reason of the abort. */
function toOwnError(error: unknown, { signal }: CallContext): unknown {
  return signal?.aborted ? signal.reason : fromWireError(error)
}

/** The members of 0.3's objects that contain other objects of 0.3. None contains the author's data. */
const MEMBERS = new Set(['status', 'message', 'history', 'artifact', 'artifacts', 'parts'])

/** Whether the message in a method's params has no `kind` anywhere; `undefined` without a message. */
function isBareMessage(params: unknown): boolean | undefined {
  const message = isObject(params) ? params.message : undefined
  if (!isObject(message)) return undefined
  const parts: unknown[] = Array.isArray(message.parts) ? message.parts : []
  return ![message, ...parts].some(value => isObject(value) && Object.hasOwn(value, 'kind'))
}

/** Converts an object of 0.3, or a list, to the bare form. */
function toBare(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toBare)
  if (!isObject(value)) return value
  const bare: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    if (name === 'file' && isObject(member)) bare.file = toBareFile(member)
    else if (name !== 'kind') bare[name] = MEMBERS.has(name) ? toBare(member) : member
  }
  return bare
}

function toBareFile({ bytes, uri, mimeType, ...others }: Record<string, unknown>): object {
  return {
    ...others,
    ...(mimeType !== undefined && { mediaType: mimeType }),
    ...(bytes === undefined ? { fileWithUri: uri } : { fileWithBytes: bytes })
  }
}
