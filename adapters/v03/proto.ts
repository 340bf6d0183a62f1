import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Artifact03, Event03, File03, Message03, Part03, PushConfig03, Status03, Task03 } from './objects.ts'

type Json = Record<string, unknown>

const ROLES: ReadonlyMap<unknown, string> = new Map([
  ['ROLE_USER', 'user'],
  ['ROLE_AGENT', 'agent']
])

/**
 * Translates a body of SendMessage from the JSON form of 0.3's proto to the parameters of `message/send`. A body may
 * also have the form of JSON-RPC, with `parts`. Invalid input is unchanged.
 */
export function fromProtoSend(body: unknown): unknown {
  if (!isObject(body)) return body ?? {}
  if (isPlain(body))
    return { ...body, ...(isObject(body.configuration) && { configuration: withBlocking(body.configuration) }) }
  const { message, request = message, configuration, ...others } = body
  return {
    ...others,
    message: isObject(request) ? fromProtoMessage(request) : request,
    configuration: isObject(configuration) ? withBlocking(fromProtoConfiguration(configuration)) : configuration
  }
}

/** The JSON of a proto leaves `false` out. */
function withBlocking(configuration: Json): Json {
  return { ...configuration, blocking: configuration.blocking ?? false }
}

/** Translates an answer to the form of the request's body. */
export function answerTranslator(body: unknown): (event: Event03) => unknown {
  return isPlain(body) ? event => event : toProtoEvent
}

/** A task in the JSON form of 0.3's proto. */
export function toProtoTask(task: Task03): Json {
  const { status, artifacts, history } = task
  return {
    ...withoutKind(task),
    status: toProtoStatus(status),
    ...(artifacts && { artifacts: artifacts.map(toProtoArtifact) }),
    ...(history && { history: history.map(toProtoMessage) })
  }
}

/** A webhook in the JSON form of 0.3's proto, with its resource name. */
export function toProtoPush({ taskId, pushNotificationConfig }: PushConfig03): Json {
  return { name: `tasks/${taskId}/pushNotificationConfigs/${pushNotificationConfig.id ?? ''}`, pushNotificationConfig }
}

/** The webhooks of a task in the JSON form of 0.3's proto. */
export function toProtoPushes(configs: readonly PushConfig03[]): Json {
  return { configs: configs.map(toProtoPush) }
}

/** Whether the message of a body has JSON-RPC's `parts`, not the proto's `content`. */
function isPlain(body: unknown): boolean {
  return isObject(body) && isObject(body.message) && Object.hasOwn(body.message, 'parts')
}

function fromProtoMessage({ content, role, ...others }: Json): Json {
  return {
    ...others,
    role: ROLES.get(role) ?? role,
    parts: Array.isArray(content) ? content.map(fromProtoPart) : content
  }
}

/** In the proto, a missing number equals 0. */
function fromProtoConfiguration({ pushNotification, historyLength, ...others }: Json): Json {
  return { ...others, ...(historyLength !== 0 && { historyLength }), pushNotificationConfig: pushNotification }
}

function fromProtoPart(part: unknown): unknown {
  if (!isObject(part)) return part
  const { text, file, data, ...others } = part
  if (data !== undefined) return { ...others, kind: 'data', data: isObject(data) ? (data.data ?? {}) : data }
  if (file === undefined) return { ...others, kind: 'text', text }
  return { ...others, kind: 'file', file: isObject(file) ? fromProtoFile(file) : file }
}

function fromProtoFile({ fileWithBytes, fileWithUri, ...others }: Json): Json {
  return {
    ...others,
    ...(fileWithBytes !== undefined && { bytes: fileWithBytes }),
    ...(fileWithUri !== undefined && { uri: fileWithUri })
  }
}

function toProtoEvent(event: Event03): Json {
  if (event.kind === 'task') return { task: toProtoTask(event) }
  if (event.kind === 'message') return { message: toProtoMessage(event) }
  if (event.kind === 'status-update')
    return { statusUpdate: { ...withoutKind(event), status: toProtoStatus(event.status) } }
  return { artifactUpdate: { ...withoutKind(event), artifact: toProtoArtifact(event.artifact) } }
}

function withoutKind(object: object & { readonly kind?: unknown }): Json {
  const { kind: _, ...others } = object
  return others
}

function toProtoStatus({ state, message, ...others }: Status03): Json {
  const name = state === 'canceled' ? 'CANCELLED' : state.toUpperCase().replaceAll('-', '_')
  return { ...others, state: `TASK_STATE_${name}`, ...(message && { message: toProtoMessage(message) }) }
}

function toProtoMessage(message: Message03): Json {
  const { parts, ...others } = message
  return {
    ...withoutKind(others),
    role: message.role === 'user' ? 'ROLE_USER' : 'ROLE_AGENT',
    content: parts.map(toProtoPart)
  }
}

function toProtoArtifact({ parts, ...others }: Artifact03): Json {
  return { ...others, parts: parts.map(toProtoPart) }
}

function toProtoPart(part: Part03): Json {
  const others = withoutKind(part)
  if (part.kind === 'file') return { ...others, file: toProtoFile(part.file) }
  return part.kind === 'data' ? { ...others, data: { data: part.data } } : others
}

function toProtoFile({ bytes, uri, ...others }: File03): Json {
  return { ...others, ...(bytes === undefined ? { fileWithUri: uri } : { fileWithBytes: bytes }) }
}

/** Parameters of `message/send` as a body of REST. */
export function toProtoSend({ message, configuration, ...others }: Json): Json {
  return {
    ...others,
    message: toProtoMessage(message as Message03),
    ...(isObject(configuration) && { configuration: toProtoConfiguration(configuration) })
  }
}

function toProtoConfiguration({ pushNotificationConfig, ...others }: Json): Json {
  return { ...others, ...(pushNotificationConfig !== undefined && { pushNotification: pushNotificationConfig }) }
}

/**
 * Translates an answer to SendMessage, or an event of a stream, from the JSON form of 0.3's proto to that of JSON-RPC.
 * Values in another form than that of 0.3 are unchanged.
 */
export function fromProtoEvent(event: Json): unknown {
  const { task, message, msg = message, statusUpdate, artifactUpdate } = event
  if (isObject(task)) return { kind: 'task', ...fromProtoTask(task) }
  if (isObject(msg)) return { kind: 'message', ...fromProtoMessage(msg) }
  if (isObject(statusUpdate))
    return { kind: 'status-update', ...statusUpdate, status: fromProtoStatus(statusUpdate.status) }
  if (isObject(artifactUpdate))
    return { kind: 'artifact-update', ...artifactUpdate, artifact: fromProtoArtifact(artifactUpdate.artifact) }
  return event
}

/** A task in the JSON form of 0.3's proto, translated to that of JSON-RPC. */
export function fromProtoTask({ status, artifacts, history, ...others }: Json): Json {
  return {
    ...others,
    status: fromProtoStatus(status),
    ...(Array.isArray(artifacts) && { artifacts: artifacts.map(fromProtoArtifact) }),
    ...(Array.isArray(history) && {
      history: history.map(message => (isObject(message) ? fromProtoMessage(message) : message))
    })
  }
}

function fromProtoStatus(status: unknown): unknown {
  if (!isObject(status)) return status
  const { state, message, ...others } = status
  const name =
    typeof state === 'string'
      ? state.replace('TASK_STATE_', '').replace('CANCELLED', 'CANCELED').toLowerCase().replaceAll('_', '-')
      : state
  return { ...others, state: name, ...(isObject(message) && { message: fromProtoMessage(message) }) }
}

function fromProtoArtifact(artifact: unknown): unknown {
  return isObject(artifact) && Array.isArray(artifact.parts)
    ? { ...artifact, parts: artifact.parts.map(fromProtoPart) }
    : artifact
}
