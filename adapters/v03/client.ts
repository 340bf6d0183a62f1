import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Message, Part } from '../../machines/protocol/parts.ts'
import type { TaskPushNotificationConfig } from '../../machines/protocol/push.ts'
import type { SendMessageConfiguration, SendMessageRequest } from '../../machines/protocol/requests.ts'
import { asCurrentCard } from './card.ts'

type Json = Record<string, unknown>

/** A method of 0.3 and its parameters. */
export interface Call03 {
  readonly method: string
  readonly params?: Json
}

/** Marks data that is not an object, which 0.3 needs wrapped as `{ value }`. The official SDK uses the same mark. */
const WRAPPED = 'data_part_compat'

const BY_ID: ReadonlyMap<string, string> = new Map([['GetTask', 'tasks/get'], ['CancelTask', 'tasks/cancel'], ['SubscribeToTask', 'tasks/resubscribe']])

const PUSH: ReadonlyMap<string, string> = new Map([
  ['CreateTaskPushNotificationConfig', 'tasks/pushNotificationConfig/set'], ['GetTaskPushNotificationConfig', 'tasks/pushNotificationConfig/get'],
  ['ListTaskPushNotificationConfigs', 'tasks/pushNotificationConfig/list'], ['DeleteTaskPushNotificationConfig', 'tasks/pushNotificationConfig/delete']
])

/** The 0.3 call for a method of 1.0 and its parameters; `undefined` if 0.3 has none, as for ListTasks. */
export function toCall03(method: string, params: unknown): Call03 | undefined {
  if (method === 'SendMessage') return { method: 'message/send', params: toSend(params as SendMessageRequest, { blocking: true }) }
  if (method === 'SendStreamingMessage') return { method: 'message/stream', params: toSend(params as SendMessageRequest) }
  if (method === 'GetExtendedAgentCard') return { method: 'agent/getAuthenticatedExtendedCard' }
  const push = PUSH.get(method)
  if (push !== undefined) return { method: push, params: toPushParams(method, params as TaskPushNotificationConfig) }
  const named = BY_ID.get(method)
  const { tenant: _, ...others } = params as Json
  return named === undefined ? undefined : { method: named, params: others }
}

function toPushParams(method: string, { taskId, ...config }: TaskPushNotificationConfig): Json {
  if (method.startsWith('Create')) return { taskId, pushNotificationConfig: toWebhook(config) }
  return { id: taskId, ...(config.id !== undefined && { pushNotificationConfigId: config.id }) }
}

/** `defaults` replace a missing configuration, since 0.3 does not define whether a call without one waits. */
function toSend({ message, configuration, metadata }: SendMessageRequest, defaults?: Json): Json {
  const given = configuration ? toConfiguration(configuration) : defaults
  return { message: toMessage(message), ...(given && { configuration: given }), ...(metadata && { metadata }) }
}

function toConfiguration({ returnImmediately = false, taskPushNotificationConfig: push, ...others }: SendMessageConfiguration): Json {
  return { ...others, blocking: !returnImmediately, ...(push && { pushNotificationConfig: toWebhook(push) }) }
}

function toWebhook({ id, url, token, authentication }: TaskPushNotificationConfig): Json {
  const { scheme, ...credentials } = authentication ?? {}
  return { ...(id !== undefined && { id }), url, ...(token !== undefined && { token }), ...(scheme !== undefined && { authentication: { schemes: [scheme], ...credentials } }) }
}

function toMessage({ role, parts, ...others }: Message): Json {
  return { kind: 'message', role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(toPart), ...others }
}

function toPart(part: Part): Json {
  const { metadata } = part
  const more = metadata && { metadata }
  if ('text' in part) return { kind: 'text', text: part.text, ...more }
  if ('data' in part) return isObject(part.data) ? { kind: 'data', data: part.data, ...more } : { kind: 'data', data: { value: part.data }, metadata: { ...metadata, [WRAPPED]: true } }
  const { filename: name, mediaType: mimeType } = part
  const content = 'raw' in part ? { bytes: part.raw } : { uri: part.url }
  return { kind: 'file', file: { ...content, ...(name !== undefined && { name }), ...(mimeType !== undefined && { mimeType }) }, ...more }
}

/**
 * Translates the result of 0.3 for a method of 1.0. Members that do not have the form of 0.3 stay as they are, so that the check of the
 * answer reports them.
 */
export function fromResult03(method: string, result: unknown): unknown {
  if (method === 'ListTaskPushNotificationConfigs' && Array.isArray(result)) return { configs: result.map(fromWebhook) }
  if (!isObject(result)) return result
  if (PUSH.has(method)) return fromWebhook(result)
  if (method === 'GetExtendedAgentCard') return asCurrentCard(result)
  if (method === 'GetTask' || method === 'CancelTask') return fromTask(result)
  if (result.kind === 'status-update') return { statusUpdate: { ...result, status: fromStatus(result.status) } }
  if (result.kind === 'artifact-update') return { artifactUpdate: { ...result, artifact: fromArtifact(result.artifact) } }
  return result.kind === 'message' || Object.hasOwn(result, 'parts') ? { message: fromMessage(result) } : { task: fromTask(result) }
}

function fromWebhook(result: unknown): unknown {
  const { taskId, pushNotificationConfig } = isObject(result) ? result : {}
  if (!isObject(pushNotificationConfig)) return result
  const { authentication, ...config } = pushNotificationConfig
  const { schemes, ...credentials } = isObject(authentication) ? authentication : {}
  return { taskId, ...config, ...(Array.isArray(schemes) && { authentication: { scheme: schemes[0], ...credentials } }) }
}

function fromTask({ status, artifacts, history, ...others }: Json): Json {
  return { ...others, status: fromStatus(status), ...each('artifacts', artifacts, fromArtifact), ...each('history', history, fromMessage) }
}

function fromStatus(status: unknown): unknown {
  if (!isObject(status)) return status
  const { state, message, timestamp, ...others } = status
  return { ...others, state: fromState(state), ...(message !== undefined && { message: fromMessage(message) }), ...(typeof timestamp === 'string' && { timestamp: inUtc(timestamp) }) }
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
  if (!isObject(metadata) || metadata[WRAPPED] !== true || !isObject(data)) return { data, ...(metadata !== undefined && { metadata }) }
  const { [WRAPPED]: __, ...own } = metadata
  return { data: data.value, ...(Object.keys(own).length > 0 && { metadata: own }) }
}

function fromFile({ bytes, uri, name, mimeType }: Json): Json {
  return { ...(bytes === undefined ? { url: uri } : { raw: bytes }), ...(name !== undefined && { filename: name }), ...(mimeType !== undefined && { mediaType: mimeType }) }
}

function each(name: string, list: unknown, change: (item: unknown) => unknown): Json {
  return list === undefined || list === null ? {} : { [name]: Array.isArray(list) ? list.map(change) : list }
}
