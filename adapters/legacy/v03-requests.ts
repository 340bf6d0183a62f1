import {
  list,
  optionalId,
  optionalList,
  optionalText,
  present,
  required
} from '../../machines/protocol/codec/fields.ts'
import type { JsonLimits } from '../../machines/protocol/codec/json.ts'
import { message } from '../../machines/protocol/codec/message.ts'
import {
  flag,
  identifier,
  int32,
  nonEmptyText,
  struct,
  text,
  type Schema
} from '../../machines/protocol/codec/values.ts'
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
  kind: present(word('message')),
  messageId: required(identifier),
  contextId: optionalId,
  taskId: optionalId,
  role: required(word('user', 'agent')),
  parts: required(list(Part03Schema, { min: 1 })),
  metadata: present(struct),
  extensions: optionalList(nonEmptyText),
  referenceTaskIds: optionalList(identifier)
})

const PushConfig = message({
  id: optionalId,
  url: required(nonEmptyText),
  token: optionalText,
  authentication: present(message({ schemes: optionalList(text), credentials: optionalText }))
})

const Configuration = message({
  acceptedOutputModes: optionalList(nonEmptyText),
  pushNotificationConfig: present(PushConfig),
  historyLength: present(int32()),
  blocking: present(flag)
})

const SendParams = message({
  message: required(Message),
  configuration: present(Configuration),
  metadata: present(struct)
})
const IdParams = message({ id: required(identifier), metadata: present(struct) })
const GetParams = message({ id: required(identifier), historyLength: present(int32()), metadata: present(struct) })
const SetPushParams = message({ taskId: required(identifier), pushNotificationConfig: required(PushConfig) })
const GetPushParams = message({ id: required(identifier), pushNotificationConfigId: optionalId })
const DeletePushParams = message({ id: required(identifier), pushNotificationConfigId: required(identifier) })

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

/** Makes `blocking` default to true, with or without a configuration. The SDK treats an empty configuration differently, and so does REST. */
function withBlocking(params: Record<string, unknown>): Record<string, unknown> {
  const { configuration } = params
  return configuration ? { ...params, configuration: { blocking: true, ...configuration } } : params
}

function method(name: string, params: Schema<unknown>, streaming = false): [string, Method03][] {
  return [false, true].map(dotted => [dotted ? name.replaceAll('/', '.') : name, { name, streaming, params, dotted }])
}
