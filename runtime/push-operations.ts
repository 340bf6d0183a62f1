import { createHash } from 'node:crypto'
import { A2AError, invalidParams } from '../machines/protocol/errors.ts'
import type {
  CreateTaskPushNotificationConfigRequest, DeleteTaskPushNotificationConfigRequest, GetTaskPushNotificationConfigRequest, ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse, TaskPushNotificationConfig
} from '../machines/protocol/push.ts'
import type { Admitted } from './call.ts'
import type { OperationServices } from './operation-services.ts'
import type { Scope, Store } from './store.ts'
import { taskNotFound } from './task-not-found.ts'
import { checkedWebhook, pushOf, tooMany } from './webhook-registration.ts'
import type { NewWebhook } from './webhook-rows.ts'

/**
 * CreateTaskPushNotificationConfig (§3.1.7): the task's updates are posted from its next event on. A configuration with
 * the id of another takes its place, and goes on where that one is. Gives it with its secrets.
 */
export async function createPushConfig(services: OperationServices, { params, scope, dialect }: Admitted<CreateTaskPushNotificationConfigRequest>): Promise<TaskPushNotificationConfig> {
  const { store, limits, ids } = services
  const { taskId, id = ids() } = params
  const { webhooks } = pushOf(services)
  const webhook: NewWebhook = { taskId, id, webhook: await checkedWebhook(services, scope, params), version: dialect }
  const outcome = await store.writeWebhook(scope, webhook, limits.webhooksPerTask)
  if (outcome === 'absent') throw taskNotFound(taskId)
  if (outcome === 'full') throw tooMany(taskId, limits.webhooksPerTask)
  await webhooks.refresh(scope, taskId, [id])
  return { ...tenantOf(scope), id, taskId, ...webhook.webhook }
}

/** GetTaskPushNotificationConfig (§3.1.8): without its secrets. Throws TaskNotFound if there is none. */
export async function getPushConfig({ store }: OperationServices, { params: { taskId, id }, scope }: Admitted<GetTaskPushNotificationConfigRequest>): Promise<TaskPushNotificationConfig> {
  const found = (await configsOf(store, scope, taskId)).find(config => config.id === id)
  if (found) return found
  throw new A2AError('TaskNotFound', `Task ${taskId} has no push notification configuration ${id}.`, { metadata: { taskId } })
}

/** ListTaskPushNotificationConfigs (§3.1.9): in the order in which they were first registered, without their secrets. All on one page, unless `pageSize` wants fewer. */
export async function listPushConfigs({ store }: OperationServices, { params, scope }: Admitted<ListTaskPushNotificationConfigsRequest>): Promise<ListTaskPushNotificationConfigsResponse> {
  const { taskId, pageSize = Infinity, pageToken } = params
  const configs = await configsOf(store, scope, taskId)
  const tokenOf = ({ id }: TaskPushNotificationConfig) => createHash('sha256').update(JSON.stringify([scope.tenant, scope.principal, taskId, id])).digest('base64url')
  const from = pageToken === undefined ? 0 : configs.findIndex(config => tokenOf(config) === pageToken) + 1
  if (pageToken !== undefined && from === 0) throw notOurs()
  const page = configs.slice(from, from + pageSize)
  const last = page.at(-1)
  return { configs: page, ...(last && from + page.length < configs.length && { nextPageToken: tokenOf(last) }) }
}

/** DeleteTaskPushNotificationConfig (§3.1.10): nothing more is posted, also nothing that is under way. Deleting twice is as deleting once. */
export async function deletePushConfig(services: OperationServices, { params: { taskId, id }, scope }: Admitted<DeleteTaskPushNotificationConfigRequest>): Promise<Record<string, never>> {
  const { store } = services
  const { webhooks } = pushOf(services)
  await checkTask(store, scope, taskId)
  webhooks.drop(taskId, id)
  try {
    await store.deleteWebhook(scope, taskId, id)
    webhooks.drop(taskId, id)
  } catch (error) {
    await webhooks.refresh(scope, taskId, [])
    throw error
  }
  return {}
}

async function configsOf(store: Store, scope: Scope, taskId: string): Promise<TaskPushNotificationConfig[]> {
  await checkTask(store, scope, taskId)
  return (await store.readWebhooks(scope, taskId)).map(({ row: { id, webhook: { url, authentication } } }) => ({
    ...tenantOf(scope), id, taskId, url, ...(authentication && { authentication: { scheme: authentication.scheme } })
  }))
}

async function checkTask(store: Store, scope: Scope, taskId: string): Promise<void> {
  if (!(await store.readTask(scope, taskId, { historyLength: 0, artifacts: false }))) throw taskNotFound(taskId)
}

function tenantOf({ tenant }: Scope): { tenant?: string } {
  return tenant === '' ? {} : { tenant }
}

function notOurs(): A2AError {
  return invalidParams({ field: 'pageToken', description: 'must be the nextPageToken of an answer for the same task, whose last configuration is still there. Leave it out to begin again' })
}
