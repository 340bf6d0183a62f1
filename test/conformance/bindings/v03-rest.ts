import type { Shape } from '../../../adapters/conformance/callers/http-callers.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { fromPush03, toWebhook03 } from './v03-push.ts'

type Json = Record<string, unknown>

/** A2A 0.3 as its REST has it: the JSON of its proto (§9.3), below /v1. */
export const inRest03: Shape = {
  prefix: '/v1',
  extendedCard: '/card',
  mediaType: 'application/json',
  extensionsHeader: 'x-a2a-extensions',
  body: ({ message, configuration, id, url, token, authentication, ...others }) => ({
    ...others,
    ...(url !== undefined && { pushNotificationConfig: toWebhook03({ id, url, token, authentication }) }),
    ...(message !== undefined && { message: toMessage(message as Json) }),
    ...(configuration !== undefined && { configuration: toConfiguration(configuration as Json) })
  }),
  result: (operation, result) => fromResult(operation, result as Json)
}

function toMessage({ parts, ...others }: Json): Json {
  return { ...others, ...(parts !== undefined && { content: (parts as Json[]).map(toPart) }) }
}

function toConfiguration({ returnImmediately, taskPushNotificationConfig, ...others }: Json): Json {
  return {
    ...others,
    blocking: returnImmediately !== true,
    ...(taskPushNotificationConfig !== undefined && {
      pushNotification: toWebhook03(taskPushNotificationConfig as Json)
    })
  }
}

function toPart({ raw, url, mediaType, filename, data, ...others }: Json): Json {
  if (data !== undefined) return { ...others, data: { data } }
  if (raw === undefined && url === undefined) return others
  return {
    ...others,
    file: {
      ...(raw === undefined ? { fileWithUri: url } : { fileWithBytes: raw }),
      name: filename,
      mimeType: mediaType
    }
  }
}

function fromResult(operation: OperationMethod, result: Json): unknown {
  if (operation === 'GetTask' || operation === 'CancelTask') return fromTask(result)
  const pushed = fromPush03(operation, result)
  if (pushed) return pushed
  const { task, message, statusUpdate, artifactUpdate, ...others } = result as Record<string, Json>
  if (task) return { ...others, task: fromTask(task) }
  if (message) return { ...others, message: fromMessage(message) }
  if (artifactUpdate)
    return { ...others, artifactUpdate: { ...artifactUpdate, artifact: fromArtifact(artifactUpdate.artifact as Json) } }
  if (!statusUpdate) return result
  const { final: _, ...update } = statusUpdate
  return { ...others, statusUpdate: { ...update, status: fromStatus(statusUpdate.status as Json) } }
}

function fromTask({ status, artifacts, history, ...others }: Json): Json {
  return {
    ...others,
    status: fromStatus(status as Json),
    ...(artifacts !== undefined && { artifacts: (artifacts as Json[]).map(fromArtifact) }),
    ...(history !== undefined && { history: (history as Json[]).map(fromMessage) })
  }
}

function fromStatus({ state, message, ...others }: Json): Json {
  return {
    state: String(state).replace('CANCELLED', 'CANCELED'),
    ...(message !== undefined && { message: fromMessage(message as Json) }),
    ...others
  }
}

function fromMessage({ content, ...others }: Json): Json {
  return { ...others, parts: (content as Json[]).map(fromPart) }
}

function fromArtifact({ parts, ...others }: Json): Json {
  return { ...others, parts: (parts as Json[]).map(fromPart) }
}

function fromPart({ file, data, ...others }: Json): Json {
  if (data !== undefined) return { ...others, data: (data as Json).data }
  if (file === undefined) return others
  const { fileWithBytes, fileWithUri, name, mimeType } = file as Json
  return {
    ...others,
    ...(fileWithBytes === undefined ? { url: fileWithUri } : { raw: fileWithBytes }),
    ...(name !== undefined && { filename: name }),
    ...(mimeType !== undefined && { mediaType: mimeType })
  }
}
