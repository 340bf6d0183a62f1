import type { OperationMethod } from '../../../machines/protocol/operations.ts'

type Json = Record<string, unknown>

/** A webhook in the form of 0.3, where it may have several schemes. */
export function toWebhook03({ authentication, ...others }: Json): Json {
  if (authentication === undefined) return others
  const { scheme, ...credentials } = authentication as Json
  return { ...others, authentication: { schemes: [scheme], ...credentials } }
}

/** What an operation of webhooks gives, in the form of 1.0; `undefined` for other operations. */
export function fromPush03(operation: OperationMethod, result: unknown): Json | undefined {
  if (operation === 'DeleteTaskPushNotificationConfig') return {}
  if (operation === 'CreateTaskPushNotificationConfig' || operation === 'GetTaskPushNotificationConfig')
    return fromConfig(result as Json)
  if (operation !== 'ListTaskPushNotificationConfigs') return undefined
  const configs = Array.isArray(result) ? result : (result as { configs: unknown[] }).configs
  return { configs: configs.map(config => fromConfig(config as Json)) }
}

/** In REST the task is named by the resource. */
function fromConfig({ taskId, name, pushNotificationConfig }: Json): Json {
  const { authentication, ...others } = pushNotificationConfig as Json
  const { schemes = [], ...credentials } = (authentication ?? {}) as { schemes?: unknown[] }
  return {
    ...others,
    taskId: taskId ?? String(name).split('/')[1],
    ...(authentication !== undefined && { authentication: { scheme: schemes[0], ...credentials } })
  }
}
