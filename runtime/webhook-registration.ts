import { createHash } from 'node:crypto'
import { A2AError, invalidParams, type FieldViolation } from '../machines/protocol/errors.ts'
import type { TaskPushNotificationConfig } from '../machines/protocol/push.ts'
import type { SendMessageRequest } from '../machines/protocol/requests.ts'
import type { Admitted } from './call.ts'
import type { OperationServices, Push } from './operation-services.ts'
import type { Scope } from './store.ts'
import type { NewWebhook, Webhook } from './webhook-rows.ts'

/** Lengths of what a registration may hold, in characters. */
const LONGEST_URL = 2048
const LONGEST_SECRET = 8192

/** How long the address of a webhook is looked at. One about which nothing is found out in time is looked at again before each post. */
const LOOK_MS = 2000

/** What a header may hold (RFC 9110 §5.5), and how a scheme is written (§11.1). */
const FIELD_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/
const SCHEME = /^[\w!#$%&'*+.^`|~-]{1,64}$/

/** The services of an agent that pushes. Throws PushNotificationNotSupported if it does not. */
export function pushOf({ push }: Pick<OperationServices, 'push'>): Push {
  if (push) return push
  throw new A2AError('PushNotificationNotSupported', 'This agent sends no push notifications. Leave taskPushNotificationConfig out, and subscribe or poll.')
}

/**
 * The webhook that comes with a message (§3.2.2). Without an id one address is one webhook of the task, however many
 * messages bring it. Throws InvalidParams for one that cannot be told, RateLimited if there are too many.
 */
export async function webhookOfMessage(services: OperationServices, call: Admitted<SendMessageRequest>, config: TaskPushNotificationConfig): Promise<Omit<NewWebhook, 'taskId'>> {
  const place = 'configuration.taskPushNotificationConfig.'
  const { taskId } = call.params.message
  if (config.taskId !== undefined && config.taskId !== taskId) throw invalidParams({ field: `${place}taskId`, description: 'must be the task of the message, or be left out' })
  const { scope, dialect: version } = call
  const webhook = await checkedWebhook(services, scope, config, place)
  const id = config.id ?? createHash('sha256').update(webhook.url).digest('base64url').slice(0, 22)
  if (taskId !== undefined) {
    const others = (await services.store.readWebhooks(scope, taskId)).filter(({ row }) => row.id !== id)
    if (others.length >= services.limits.webhooksPerTask) throw tooMany(taskId, services.limits.webhooksPerTask)
  }
  return { id, webhook, version }
}

/** What a configuration says of its webhook. Throws InvalidParams for one that cannot be told, RateLimited if its principal has too many. */
export async function checkedWebhook(services: OperationServices, scope: Scope, { url, token, authentication }: TaskPushNotificationConfig, place = ''): Promise<Webhook> {
  const { webhooks, sender } = pushOf(services)
  const { clock, limits } = services
  const violations = [
    ...violation(`${place}url`, url.length <= LONGEST_URL, `must have at most ${LONGEST_URL} characters`),
    ...secretViolations(`${place}token`, token),
    ...secretViolations(`${place}authentication.credentials`, authentication?.credentials),
    ...violation(`${place}authentication.scheme`, SCHEME.test(authentication?.scheme ?? 'none'), 'must be an HTTP authentication scheme such as Bearer')
  ]
  if (violations.length > 0) throw invalidParams(...violations)
  const late = new AbortController()
  const timer = clock.setTimeout(() => late.abort(), LOOK_MS)
  const fault = await sender.faultOf(url, late.signal).finally(() => clock.clearTimeout(timer))
  if (fault !== undefined) throw invalidParams({ field: `${place}url`, description: fault })
  if (webhooks.countOf(scope) >= limits.webhooksPerPrincipal) {
    throw new A2AError('RateLimited', `You have ${limits.webhooksPerPrincipal} push notification configurations that are still told, which is the most. Delete some.`)
  }
  return { url, ...(token !== undefined && { token }), ...(authentication && { authentication }) }
}

/** The error for a task that has as many webhooks as it may. */
export function tooMany(taskId: string, limit: number): A2AError {
  return new A2AError('RateLimited', `Task ${taskId} has ${limit} push notification configurations, which is the most. Delete one first.`, { metadata: { taskId } })
}

function secretViolations(field: string, secret = ''): FieldViolation[] {
  return violation(field, secret.length <= LONGEST_SECRET && FIELD_VALUE.test(secret), `must be the text of an HTTP header, of at most ${LONGEST_SECRET} characters`)
}

function violation(field: string, isGood: boolean, description: string): FieldViolation[] {
  return isGood ? [] : [{ field, description }]
}
