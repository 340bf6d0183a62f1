import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Message, Part, SendMessageConfiguration, SendMessageRequest } from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import type { TaskPushNotificationConfig } from '../../machines/protocol/push.ts'
import { asCurrentCard } from './card.ts'

type Json = Record<string, unknown>

/** A method of 0.3 and its parameters. */
export interface Call03 {
  readonly method: string
  readonly params?: Json
}

/** Marks data that is not an object, which 0.3 needs wrapped as `{ value }`. The official SDK uses the same mark. */
const WRAPPED = 'data_part_compat'

/** A method of 1.0 in 0.3: its name, its parameters, if it has any, and the form of 1.0 of its result. */
interface Method03 {
  readonly method: string
  readonly to?: (params: Json) => Json
  readonly from: (result: unknown) => unknown
}

/** The methods of 1.0 in 0.3, which has no ListTasks. */
const METHODS: Readonly<Record<OperationMethod, Method03 | undefined>> = {
  SendMessage: { method: 'message/send', to: params => toSend(params, { blocking: true }), from: fromEvent },
  SendStreamingMessage: { method: 'message/stream', to: params => toSend(params), from: fromEvent },
  GetTask: { method: 'tasks/get', to: toTask, from: fromTask },
  ListTasks: undefined,
  CancelTask: { method: 'tasks/cancel', to: toTask, from: fromTask },
  SubscribeToTask: { method: 'tasks/resubscribe', to: toTask, from: fromEvent },
  GetExtendedAgentCard: { method: 'agent/getAuthenticatedExtendedCard', from: asCurrentCard },
  CreateTaskPushNotificationConfig: { method: 'tasks/pushNotificationConfig/set', to: toWebhookOf, from: fromWebhook },
  GetTaskPushNotificationConfig: { method: 'tasks/pushNotificationConfig/get', to: toWebhookId, from: fromWebhook },
  ListTaskPushNotificationConfigs: {
    method: 'tasks/pushNotificationConfig/list',
    to: ({ taskId }) => ({ id: taskId }),
    from: fromWebhooks
  },
  DeleteTaskPushNotificationConfig: {
    method: 'tasks/pushNotificationConfig/delete',
    to: toWebhookId,
    from: result => result
  }
}

/** The 0.3 call for a method of 1.0 and its parameters; `undefined` if 0.3 has none, as for ListTasks. */
export function toCall03(name: OperationMethod, params: unknown): Call03 | undefined {
  const found = METHODS[name]
  return found && { method: found.method, ...(found.to && { params: found.to(params as Json) }) }
}

function toTask(params: Json): Json {
  const { tenant: _, ...others } = params
  return others
}

function toWebhookId({ taskId, id }: Json): Json {
  return { id: taskId, pushNotificationConfigId: id }
}

function toWebhookOf(params: Json): Json {
  return { taskId: params.taskId, pushNotificationConfig: toWebhook(params as unknown as TaskPushNotificationConfig) }
}

/** `defaults` replace a missing configuration, since 0.3 does not define whether a call without one waits. */
function toSend(params: Json, defaults?: Json): Json {
  const { message, configuration, metadata } = params as unknown as SendMessageRequest
  const given = configuration ? toConfiguration(configuration) : defaults
  return { message: toMessage(message), ...(given && { configuration: given }), ...(metadata && { metadata }) }
}

function toConfiguration({
  returnImmediately = false,
  taskPushNotificationConfig: push,
  ...others
}: SendMessageConfiguration): Json {
  return { ...others, blocking: !returnImmediately, ...(push && { pushNotificationConfig: toWebhook(push) }) }
}

function toWebhook({ id, url, token, authentication }: TaskPushNotificationConfig): Json {
  const { scheme, ...credentials } = authentication ?? {}
  return {
    ...(id !== undefined && { id }),
    url,
    ...(token !== undefined && { token }),
    ...(scheme !== undefined && { authentication: { schemes: [scheme], ...credentials } })
  }
}

function toMessage({ role, parts, ...others }: Message): Json {
  return { kind: 'message', role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(toPart), ...others }
}

function toPart(part: Part): Json {
  const { metadata } = part
  const more = metadata && { metadata }
  if ('text' in part) return { kind: 'text', text: part.text, ...more }
  if ('data' in part)
    return isObject(part.data)
      ? { kind: 'data', data: part.data, ...more }
      : { kind: 'data', data: { value: part.data }, metadata: { ...metadata, [WRAPPED]: true } }
  const { filename: name, mediaType: mimeType } = part
  const content = 'raw' in part ? { bytes: part.raw } : { uri: part.url }
  return {
    kind: 'file',
    file: { ...content, ...(name !== undefined && { name }), ...(mimeType !== undefined && { mimeType }) },
    ...more
  }
}

/**
 * Translates the result of 0.3 for a method of 1.0. Members that do not have the form of 0.3 are unchanged, so that the
 * check of the answer reports them.
 */
export function fromResult03(name: OperationMethod, result: unknown): unknown {
  return METHODS[name]?.from(result)
}

function fromEvent(result: unknown): unknown {
  if (!isObject(result)) return result
  if (result.kind === 'status-update') return { statusUpdate: { ...result, status: fromStatus(result.status) } }
  if (result.kind === 'artifact-update')
    return { artifactUpdate: { ...result, artifact: fromArtifact(result.artifact) } }
  return result.kind === 'message' || Object.hasOwn(result, 'parts')
    ? { message: fromMessage(result) }
    : { task: fromTask(result) }
}

/** The webhooks of a task: JSON-RPC answers with a list, the proto with an object. */
function fromWebhooks(result: unknown): unknown {
  const configs = isObject(result) ? result.configs : result
  return { configs: Array.isArray(configs) ? configs.map(fromWebhook) : configs }
}

/** A webhook of a task in either form of 0.3: JSON-RPC names the task, the proto a resource below it. */
function fromWebhook(config: unknown): unknown {
  if (!isObject(config) || !isObject(config.pushNotificationConfig)) return config
  const {
    name,
    taskId = typeof name === 'string' ? name.split('/')[1] : undefined,
    pushNotificationConfig: { authentication, ...others }
  } = config
  const { schemes, ...credentials } = isObject(authentication) ? authentication : {}
  const scheme: unknown = Array.isArray(schemes) ? schemes[0] : undefined
  return {
    ...others,
    ...(taskId !== undefined && { taskId }),
    ...(scheme !== undefined && { authentication: { scheme, ...credentials } })
  }
}

function fromTask(task: unknown): unknown {
  if (!isObject(task)) return task
  const { status, artifacts, history, ...others } = task
  return {
    ...others,
    status: fromStatus(status),
    ...each('artifacts', artifacts, fromArtifact),
    ...each('history', history, fromMessage)
  }
}

function fromStatus(status: unknown): unknown {
  if (!isObject(status)) return status
  const { state, message, timestamp, ...others } = status
  return {
    ...others,
    state: fromState(state),
    ...(message !== undefined && { message: fromMessage(message) }),
    ...(typeof timestamp === 'string' && { timestamp: inUtc(timestamp) })
  }
}

function fromState(state: unknown): unknown {
  return typeof state === 'string' ? `TASK_STATE_${state.toUpperCase().replaceAll('-', '_')}` : state
}

/** Some agents of 0.3 write times without a zone, and mean UTC. */
function inUtc(timestamp: string): string {
  return /T[\d:.]+$/.test(timestamp) ? `${timestamp}Z` : timestamp
}

function fromArtifact(artifact: unknown): unknown {
  return isObject(artifact) ? { ...artifact, ...each('parts', artifact.parts, fromPart) } : artifact
}

function fromMessage(message: unknown): unknown {
  if (!isObject(message)) return message
  const role = message.role === 'user' ? 'ROLE_USER' : message.role === 'agent' ? 'ROLE_AGENT' : message.role
  return { ...message, role, ...each('parts', message.parts, fromPart) }
}

function fromPart(part: unknown): unknown {
  if (!isObject(part)) return part
  const { kind: _, file, data, metadata, ...others } = part
  if (isObject(file)) return { ...fromFile(file), ...(metadata !== undefined && { metadata }) }
  if (data === undefined) return { ...others, ...(metadata !== undefined && { metadata }) }
  if (!isObject(metadata) || metadata[WRAPPED] !== true || !isObject(data))
    return { data, ...(metadata !== undefined && { metadata }) }
  const { [WRAPPED]: __, ...own } = metadata
  return { data: data.value, ...(Object.keys(own).length > 0 && { metadata: own }) }
}

function fromFile({ bytes, uri, name, mimeType }: Json): Json {
  return {
    ...(bytes === undefined ? { url: uri } : { raw: bytes }),
    ...(name !== undefined && { filename: name }),
    ...(mimeType !== undefined && { mediaType: mimeType })
  }
}

function each(name: string, list: unknown, change: (item: unknown) => unknown): Json {
  return list === undefined || list === null ? {} : { [name]: Array.isArray(list) ? list.map(change) : list }
}
