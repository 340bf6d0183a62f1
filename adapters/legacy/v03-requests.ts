import {
  anyString,
  flag,
  identifier,
  int32,
  list,
  message,
  nonEmptyText,
  optionalId,
  optionalList,
  optionalText,
  presenceField,
  requiredField,
  type Schema,
  struct
} from '../../machines/protocol/codec/decode.ts'
import { isObject, type JsonLimits } from '../../machines/protocol/codec/json.ts'
import type { RestRequest } from '../json-rpc/dispatch.ts'
import { answerTranslator, fromProtoSend, toProtoPush, toProtoPushes, toProtoTask } from '../v03/proto.ts'
import { checkedParams, Part03Schema, word } from './parts.ts'

/** A JSON-RPC method of 0.3. */
export interface Method03 {
  readonly name: string
  readonly streaming: boolean
  readonly params: Schema<unknown>
  /** Whether the name is written with dots. */
  readonly dotted: boolean
}

const Message = message({
  kind: presenceField(word('message')),
  messageId: requiredField(identifier),
  contextId: optionalId,
  taskId: optionalId,
  role: requiredField(word('user', 'agent')),
  parts: requiredField(list(Part03Schema, { min: 1 })),
  metadata: presenceField(struct),
  extensions: optionalList(nonEmptyText),
  referenceTaskIds: optionalList(identifier)
})

const PushConfig = message({
  id: optionalId,
  url: requiredField(nonEmptyText),
  token: optionalText,
  authentication: presenceField(message({ schemes: optionalList(anyString), credentials: optionalText }))
})

const Configuration = message({
  acceptedOutputModes: optionalList(nonEmptyText),
  pushNotificationConfig: presenceField(PushConfig),
  historyLength: presenceField(int32()),
  blocking: presenceField(flag)
})

const SendParams = message({
  message: requiredField(Message),
  configuration: presenceField(Configuration),
  metadata: presenceField(struct)
})
const IdParams = message({ id: requiredField(identifier), metadata: presenceField(struct) })
const GetParams = message({
  id: requiredField(identifier),
  historyLength: presenceField(int32()),
  metadata: presenceField(struct)
})
const SetPushParams = message({ taskId: requiredField(identifier), pushNotificationConfig: requiredField(PushConfig) })
const GetPushParams = message({ id: requiredField(identifier), pushNotificationConfigId: optionalId })
const DeletePushParams = message({ id: requiredField(identifier), pushNotificationConfigId: requiredField(identifier) })

/** The methods of 0.3, each also with dots in its name: the guides once wrote `message.send`. */
const METHODS = new Map<string, Method03>([
  ...method('message/send', SendParams),
  ...method('message/stream', SendParams, true),
  ...method('tasks/get', GetParams),
  ...method('tasks/cancel', IdParams),
  ...method('tasks/resubscribe', IdParams, true),
  ...method('tasks/pushNotificationConfig/set', SetPushParams),
  ...method('tasks/pushNotificationConfig/get', GetPushParams),
  ...method('tasks/pushNotificationConfig/list', IdParams),
  ...method('tasks/pushNotificationConfig/delete', DeletePushParams),
  ...method('agent/getAuthenticatedExtendedCard', message({}))
])

/** The method of a name, in either spelling. */
export function method03(name: string): Method03 | undefined {
  return METHODS.get(name)
}

/** Validates the params of a method, which the SDK does not. Throws InvalidParams with the field names of 0.3. */
export function params03(
  { params: schema, name }: Method03,
  params: unknown,
  limits: JsonLimits
): Record<string, unknown> {
  const given = params === undefined && name === 'agent/getAuthenticatedExtendedCard' ? {} : params
  return withBlocking(checkedParams(schema, given, limits) as Record<string, unknown>)
}

/**
 * Makes `blocking` default to true, with or without a configuration. The SDK treats an empty configuration differently,
 * and so does REST.
 */
function withBlocking(params: Record<string, unknown>): Record<string, unknown> {
  const { configuration } = params
  return configuration ? { ...params, configuration: { blocking: true, ...configuration } } : params
}

function method(name: string, params: Schema<unknown>, streaming = false): [string, Method03][] {
  return [false, true].map(dotted => [dotted ? name.replaceAll('/', '.') : name, { name, streaming, params, dotted }])
}

/** A REST call: a method, its params, and the function that writes its result. */
interface Route03 {
  readonly method: Method03
  readonly params: unknown
  readonly write: (result: unknown) => unknown
}

/** A route; the groups of `path` are ids. */
interface Row {
  readonly verb: string
  readonly path: RegExp
  readonly method: string
  readonly params: (request: RestRequest, ids: readonly string[]) => unknown
  readonly write: (body: unknown) => (result: never) => unknown
}

const TASK = String.raw`^/v1/tasks/([^/:]+)`
const PUSH = `${TASK}/pushNotificationConfigs`

const byId: Row['params'] = (_, [id]) => ({ id })
const byIds: Row['params'] = (_, [id, pushNotificationConfigId]) => ({ id, pushNotificationConfigId })
const asItIs = () => (result: unknown) => result

const ROWS: readonly Row[] = [
  row('POST', /^\/v1\/message:send$/, 'message/send', ({ body }) => fromProtoSend(body), answerTranslator),
  row('POST', /^\/v1\/message:stream$/, 'message/stream', ({ body }) => fromProtoSend(body), answerTranslator),
  row(
    'GET',
    new RegExp(`${TASK}$`),
    'tasks/get',
    ({ query }, [id]) => ({ ...Object.fromEntries(query), id }),
    () => toProtoTask
  ),
  row('POST', new RegExp(`${TASK}:cancel$`), 'tasks/cancel', byId, () => toProtoTask),
  row('GET', new RegExp(`${TASK}:subscribe$`), 'tasks/resubscribe', byId, answerTranslator),
  row('POST', new RegExp(`${TASK}:subscribe$`), 'tasks/resubscribe', byId, answerTranslator),
  row(
    'POST',
    new RegExp(`${PUSH}$`),
    'tasks/pushNotificationConfig/set',
    ({ body }, [taskId]) => ({ ...webhookIn(body), taskId }),
    () => toProtoPush
  ),
  row('GET', new RegExp(`${PUSH}$`), 'tasks/pushNotificationConfig/list', byId, () => toProtoPushes),
  row('GET', new RegExp(`${PUSH}/([^/]+)$`), 'tasks/pushNotificationConfig/get', byIds, () => toProtoPush),
  row('DELETE', new RegExp(`${PUSH}/([^/]+)$`), 'tasks/pushNotificationConfig/delete', byIds, asItIs),
  row('GET', /^\/v1\/card$/, 'agent/getAuthenticatedExtendedCard', () => ({}), asItIs)
]

/** The route of a request; `undefined` if there is none. */
export function route03(request: RestRequest): Route03 | undefined {
  for (const { verb, path, method: name, params, write } of ROWS) {
    const match = request.verb === verb ? path.exec(request.path) : null
    const method = method03(name)
    if (!match || !method) continue
    const [, ...ids] = match
    return { method, params: params(request, ids.map(decoded)), write: write(request.body) as Route03['write'] }
  }
  return undefined
}

function row(verb: string, path: RegExp, method: string, params: Row['params'], write: Row['write']): Row {
  return { verb, path, method, params, write }
}

/**
 * The webhook in a body: in `config`, as the proto's request has it, or in the body itself, as the official client
 * sends it.
 */
function webhookIn(body: unknown): object {
  const { config = body } = isObject(body) ? body : {}
  return isObject(config) ? config : {}
}

/** Decodes an id. Invalid percent-encoding is left as it is, and matches no id. */
function decoded(id: string): string {
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}

/**
 * The form of later drafts of 0.3: without `kind`, and with files as `{ name, mediaType, fileWithBytes }`. Webhooks of
 * its clients are stored with this name.
 */
export const BARE = '0.3 without kind'

/** The events of a stream, each written by `write`. */
export async function* writeEvents(
  events: AsyncIterable<unknown>,
  write: (event: unknown) => unknown
): AsyncGenerator<object, void, undefined> {
  for await (const event of events) yield write(event) as object
}
