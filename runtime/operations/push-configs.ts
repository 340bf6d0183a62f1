import { createHash } from 'node:crypto'
import { A2AError, invalidParams, type FieldViolation, taskNotFound } from '../../machines/protocol/errors.ts'
import type { SendMessageRequest } from '../../machines/protocol/objects.ts'
import type {
  CreateTaskPushNotificationConfigRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  TaskPushNotificationConfig
} from '../../machines/protocol/push.ts'
import type { NewWebhook, Webhook, Scope } from '../store/rows.ts'
import type { Store } from '../store/store.ts'
import { readTaskOrThrow } from '../streams/task-stream.ts'
import type { Admitted } from './admission.ts'
import type { ShardSelector } from './cluster.ts'
import { type ChangeKind, runOnOwner } from './deliver.ts'
import type { OperationServices, Push } from './dependencies.ts'

/** Maximum lengths in a configuration, in characters. */
const LONGEST_URL = 2048
const LONGEST_SECRET = 8192

/**
 * Time limit for the check of a webhook's URL. A URL that is not checked in time is accepted; each post checks it
 * again.
 */
const LOOK_MS = 2000

/** Characters of a header value (RFC 9110 §5.5) and of an authentication scheme (§11.1). */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const SCHEME = /^[\w!#$%&'*+.^`|~-]{1,64}$/

/** The agent's push services. Throws PushNotificationNotSupported if it has none. */
export function pushOf({ push }: Pick<OperationServices, 'push'>): Push {
  if (push) return push
  throw new A2AError(
    'PushNotificationNotSupported',
    'This agent sends no push notifications. Leave taskPushNotificationConfig out, and subscribe or poll.'
  )
}

/**
 * The webhook of a message (§3.2.2). Without an id, messages with the same URL share one webhook of the task. Throws
 * InvalidParams for an invalid one, RateLimited if there are too many.
 */
export async function webhookOfMessage(
  services: OperationServices,
  call: Admitted<SendMessageRequest>,
  config: TaskPushNotificationConfig
): Promise<Omit<NewWebhook, 'taskId'>> {
  const place = 'configuration.taskPushNotificationConfig.'
  const { taskId } = call.params.message
  if (config.taskId !== undefined && config.taskId !== taskId)
    throw invalidParams({ field: `${place}taskId`, description: 'must be the task of the message, or be left out' })
  const { scope, dialect: version } = call
  const webhook = await checkedWebhook(services, scope, config, place)
  const id = config.id ?? createHash('sha256').update(webhook.url).digest('base64url').slice(0, 22)
  if (taskId !== undefined) {
    const others = (await services.store.readWebhooks(scope, taskId)).filter(({ row }) => row.id !== id)
    if (others.length >= services.limits.webhooksPerTask) throw tooMany(taskId, services.limits.webhooksPerTask)
  }
  return { id, webhook, version }
}

/**
 * Validates a configuration's webhook. Throws InvalidParams for an invalid one, RateLimited if its principal has too
 * many.
 */
export async function checkedWebhook(
  services: OperationServices,
  scope: Scope,
  { url, token, authentication }: TaskPushNotificationConfig,
  place = ''
): Promise<Webhook> {
  const { webhooks, sender } = pushOf(services)
  const { clock, limits } = services
  const violations = [
    ...violation(`${place}url`, url.length <= LONGEST_URL, `must have at most ${LONGEST_URL} characters`),
    ...secretViolations(`${place}token`, token),
    ...secretViolations(`${place}authentication.credentials`, authentication?.credentials),
    ...violation(
      `${place}authentication.scheme`,
      SCHEME.test(authentication?.scheme ?? 'none'),
      'must be an HTTP authentication scheme such as Bearer'
    )
  ]
  if (violations.length > 0) throw invalidParams(...violations)
  const late = new AbortController()
  const timer = clock.setTimeout(() => late.abort(), LOOK_MS)
  const fault = await sender.faultOf(url, late.signal).finally(() => clock.clearTimeout(timer))
  if (fault !== undefined) throw invalidParams({ field: `${place}url`, description: fault })
  if (webhooks.countOf(scope) >= limits.webhooksPerPrincipal) {
    throw new A2AError(
      'RateLimited',
      `You have ${limits.webhooksPerPrincipal} active push notification configurations, which is the limit. Delete some.`
    )
  }
  return { url, ...(token !== undefined && { token }), ...(authentication && { authentication }) }
}

/** The error for a task that is at its limit of webhooks. */
export function tooMany(taskId: string, limit: number): A2AError {
  return new A2AError(
    'RateLimited',
    `Task ${taskId} has ${limit} push notification configurations, which is the limit. Delete one first.`,
    { metadata: { taskId } }
  )
}

function secretViolations(field: string, secret = ''): FieldViolation[] {
  return violation(
    field,
    secret.length <= LONGEST_SECRET && FIELD_VALUE.test(secret),
    `must be the text of an HTTP header, of at most ${LONGEST_SECRET} characters`
  )
}

function violation(field: string, isGood: boolean, description: string): FieldViolation[] {
  return isGood ? [] : [{ field, description }]
}

/**
 * CreateTaskPushNotificationConfig (§3.1.7): posts the task's events from the next one on. A configuration with an
 * existing id replaces that one, and continues at its position. The answer has the secrets.
 */
export async function createPushConfig(
  services: OperationServices,
  { params, scope, dialect, signal }: Admitted<CreateTaskPushNotificationConfigRequest>
): Promise<TaskPushNotificationConfig> {
  const { id = services.ids() } = params
  const request: WebhookRequest<CreateTaskPushNotificationConfigRequest> = { scope, params: { ...params, id }, dialect }
  return runOnOwner(services, CREATE_PUSH_CONFIG, request, { signal })
}

/** A change of a task's webhooks, as JSON. */
export interface WebhookRequest<Params> {
  readonly scope: Scope
  readonly params: Params
  readonly dialect: string
}

function placeOfTask({ scope, params: { taskId } }: WebhookRequest<{ readonly taskId: string }>): ShardSelector {
  return { scope, taskId }
}

/** Creates a configuration for a task. */
export const CREATE_PUSH_CONFIG: ChangeKind<
  WebhookRequest<CreateTaskPushNotificationConfigRequest>,
  TaskPushNotificationConfig
> = { name: 'createPushConfig', placeOf: placeOfTask, isRepeatable: () => true, run: createPushConfigHere }

async function createPushConfigHere(
  services: OperationServices,
  { params, scope, dialect }: WebhookRequest<CreateTaskPushNotificationConfigRequest>
): Promise<TaskPushNotificationConfig> {
  const { store, limits } = services
  const { taskId, id = '' } = params
  const { webhooks } = pushOf(services)
  const webhook: NewWebhook = { taskId, id, webhook: await checkedWebhook(services, scope, params), version: dialect }
  const outcome = await store.writeWebhook(scope, webhook, limits.webhooksPerTask)
  if (outcome === 'absent') throw taskNotFound(taskId)
  if (outcome === 'full') throw tooMany(taskId, limits.webhooksPerTask)
  await webhooks.refresh(scope, taskId, [id])
  return { ...tenantOf(scope), id, taskId, ...webhook.webhook }
}

/**
 * GetTaskPushNotificationConfig (§3.1.8): a configuration without its secrets. Throws TaskNotFound if it does not
 * exist.
 */
export async function getPushConfig(
  { store }: OperationServices,
  { params: { taskId, id }, scope }: Admitted<GetTaskPushNotificationConfigRequest>
): Promise<TaskPushNotificationConfig> {
  const found = (await configsOf(store, scope, taskId)).find(config => config.id === id)
  if (found) return found
  throw new A2AError('TaskNotFound', `Task ${taskId} has no push notification configuration ${id}.`, {
    metadata: { taskId }
  })
}

/**
 * ListTaskPushNotificationConfigs (§3.1.9): configurations in the order of their first registration, without secrets.
 * Without `pageSize` all are on one page.
 */
export async function listPushConfigs(
  { store }: OperationServices,
  { params, scope }: Admitted<ListTaskPushNotificationConfigsRequest>
): Promise<ListTaskPushNotificationConfigsResponse> {
  const { taskId, pageSize = Infinity, pageToken } = params
  const configs = await configsOf(store, scope, taskId)
  const tokenOf = ({ id }: TaskPushNotificationConfig) =>
    createHash('sha256')
      .update(JSON.stringify([scope.tenant, scope.principal, taskId, id]))
      .digest('base64url')
  const from = pageToken === undefined ? 0 : configs.findIndex(config => tokenOf(config) === pageToken) + 1
  if (pageToken !== undefined && from === 0) throw invalidToken()
  const page = configs.slice(from, from + pageSize)
  const last = page.at(-1)
  return { configs: page, ...(last && from + page.length < configs.length && { nextPageToken: tokenOf(last) }) }
}

/** DeleteTaskPushNotificationConfig (§3.1.10): ends all posts, including pending ones. Idempotent. */
export async function deletePushConfig(
  services: OperationServices,
  { params, scope, dialect, signal }: Admitted<DeleteTaskPushNotificationConfigRequest>
): Promise<Record<string, never>> {
  const request: WebhookRequest<DeleteTaskPushNotificationConfigRequest> = { scope, params, dialect }
  return runOnOwner(services, DELETE_PUSH_CONFIG, request, { signal })
}

/** Deletes a configuration of a task. */
export const DELETE_PUSH_CONFIG: ChangeKind<
  WebhookRequest<DeleteTaskPushNotificationConfigRequest>,
  Record<string, never>
> = { name: 'deletePushConfig', placeOf: placeOfTask, isRepeatable: () => true, run: deletePushConfigHere }

async function deletePushConfigHere(
  services: OperationServices,
  { params: { taskId, id }, scope }: WebhookRequest<DeleteTaskPushNotificationConfigRequest>
): Promise<Record<string, never>> {
  const { store } = services
  const { webhooks } = pushOf(services)
  await readTaskOrThrow(store, scope, taskId)
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
  await readTaskOrThrow(store, scope, taskId)
  return (await store.readWebhooks(scope, taskId)).map(
    ({
      row: {
        id,
        webhook: { url, authentication }
      }
    }) => ({
      ...tenantOf(scope),
      id,
      taskId,
      url,
      ...(authentication && { authentication: { scheme: authentication.scheme } })
    })
  )
}

function tenantOf({ tenant }: Scope): { tenant?: string } {
  return tenant === '' ? {} : { tenant }
}

function invalidToken(): A2AError {
  return invalidParams({
    field: 'pageToken',
    description:
      'must be the nextPageToken of an answer for the same task, whose last configuration is still there. Leave it out to begin again'
  })
}
