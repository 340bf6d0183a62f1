import type { Translation } from '../../../adapters/conformance/callers/exchange.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { fromPush03, toWebhook03 } from './v03-push.ts'

type Json = Record<string, unknown>

const METHODS: Readonly<Record<OperationMethod, string>> = {
  SendMessage: 'message/send',
  SendStreamingMessage: 'message/stream',
  GetTask: 'tasks/get',
  ListTasks: 'tasks/list',
  CancelTask: 'tasks/cancel',
  SubscribeToTask: 'tasks/resubscribe',
  CreateTaskPushNotificationConfig: 'tasks/pushNotificationConfig/set',
  GetTaskPushNotificationConfig: 'tasks/pushNotificationConfig/get',
  ListTaskPushNotificationConfigs: 'tasks/pushNotificationConfig/list',
  DeleteTaskPushNotificationConfig: 'tasks/pushNotificationConfig/delete',
  GetExtendedAgentCard: 'agent/getAuthenticatedExtendedCard'
}

/** The operations that give a task, a message or an event. */
const EVENTS: readonly OperationMethod[] = ['SendMessage', 'SendStreamingMessage', 'SubscribeToTask']

/** A2A 0.3 as its JSON-RPC has it (§9.3). Members that it does not know go through as they are, both ways. */
export const inJson03: Translation = {
  extensionsHeader: 'x-a2a-extensions',
  method: operation => METHODS[operation],
  params: (operation, params) =>
    operation === 'SendMessage' || operation === 'SendStreamingMessage'
      ? toSend(params as Json)
      : toIds(operation, params as Json),
  result: (operation, result) => fromResult(operation, result as Json)
}

function toSend({ message, configuration, ...others }: Json): Json {
  return {
    ...others,
    message: toMessage(message as Json),
    ...(configuration !== undefined && { configuration: toConfiguration(configuration as Json) })
  }
}

function toIds(operation: OperationMethod, { taskId, id, ...others }: Json): Json {
  if (operation === 'CreateTaskPushNotificationConfig')
    return { taskId, pushNotificationConfig: toWebhook03({ ...(id !== undefined && { id }), ...others }) }
  return taskId === undefined
    ? { id, ...others }
    : { id: taskId, ...(id !== undefined && { pushNotificationConfigId: id }), ...others }
}

function toConfiguration({ returnImmediately, taskPushNotificationConfig, ...others }: Json): Json {
  return {
    ...others,
    ...(returnImmediately !== undefined && { blocking: !returnImmediately }),
    ...(taskPushNotificationConfig !== undefined && {
      pushNotificationConfig: toWebhook03(taskPushNotificationConfig as Json)
    })
  }
}

function toMessage({ role, parts, ...others }: Json): Json {
  return {
    ...others,
    kind: 'message',
    ...(role !== undefined && { role: role === 'ROLE_AGENT' ? 'agent' : 'user' }),
    ...(parts !== undefined && { parts: (parts as Json[]).map(toPart) })
  }
}

function toPart({ raw, url, mediaType, filename, ...others }: Json): Json {
  if (raw === undefined && url === undefined) return { ...others, kind: 'data' in others ? 'data' : 'text' }
  return {
    ...others,
    kind: 'file',
    file: { ...(raw === undefined ? { uri: url } : { bytes: raw }), name: filename, mimeType: mediaType }
  }
}

function fromResult(operation: OperationMethod, result: Json): unknown {
  if (EVENTS.includes(operation)) return fromEvent(result)
  return operation === 'GetTask' || operation === 'CancelTask'
    ? fromTask(result)
    : (fromPush03(operation, result) ?? result)
}

function fromEvent({ kind, ...event }: Json): Json {
  if (kind === 'task') return { task: fromTask(event) }
  if (kind === 'message') return { message: fromMessage(event) }
  if (kind === 'artifact-update')
    return { artifactUpdate: { ...event, artifact: fromArtifact(event.artifact as Json) } }
  const { final: _, status, ...others } = event
  return { statusUpdate: { ...others, status: fromStatus(status as Json) } }
}

function fromTask({ status, artifacts, history, ...others }: Json): Json {
  return {
    ...withoutKind(others),
    status: fromStatus(status as Json),
    ...(artifacts !== undefined && { artifacts: (artifacts as Json[]).map(fromArtifact) }),
    ...(history !== undefined && { history: (history as Json[]).map(fromMessage) })
  }
}

function fromStatus({ state, message, ...others }: Json): Json {
  return {
    state: `TASK_STATE_${String(state).toUpperCase().replaceAll('-', '_')}`,
    ...(message !== undefined && { message: fromMessage(message as Json) }),
    ...others
  }
}

function fromMessage({ role, parts, ...others }: Json): Json {
  return { ...withoutKind(others), role: `ROLE_${String(role).toUpperCase()}`, parts: (parts as Json[]).map(fromPart) }
}

function fromArtifact({ parts, ...others }: Json): Json {
  return { ...others, parts: (parts as Json[]).map(fromPart) }
}

function fromPart({ kind, file, ...others }: Json): Json {
  if (kind !== 'file') return others
  const { bytes, uri, name, mimeType } = file as Json
  return {
    ...others,
    ...(bytes === undefined ? { url: uri } : { raw: bytes }),
    ...(name !== undefined && { filename: name }),
    ...(mimeType !== undefined && { mediaType: mimeType })
  }
}

function withoutKind(object: Json): Json {
  const { kind: _, ...others } = object
  return others
}
