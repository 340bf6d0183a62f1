import type * as z from 'zod'
import { list, optionalId, optionalText, present, required } from '../../machines/protocol/codec/fields.ts'
import { message } from '../../machines/protocol/codec/message.ts'
import { identifier, int32, nonEmptyText, struct } from '../../machines/protocol/codec/values.ts'
import type { CreateTaskPushNotificationConfigRequest } from '../../machines/protocol/push.ts'
import type { SendMessageRequest } from '../../machines/protocol/requests.ts'
import { randomIds } from '../../runtime/ports/ids.ts'
import { Part01Schema, word } from './parts.ts'
import { fromPart01 } from './v01-parts.ts'

const WEBHOOK_PREFIX = '0.1/'

/** The id of the one webhook that a task has in 0.1: it says under which id its client knows the task. */
export function webhookIdOf(id: string): string {
  return `${WEBHOOK_PREFIX}${id}`
}

/** Under which id the client knows the task that a webhook of 0.1 is told of. */
export function taskIdOf(webhookId: string): string {
  return webhookId.slice(WEBHOOK_PREFIX.length)
}

const Message = message({ role: required(word('user')), parts: required(list(Part01Schema, { min: 1 })), metadata: present(struct) })

const PushConfig = message({
  url: required(nonEmptyText),
  token: optionalText,
  authentication: present(message({ schemes: required(list(nonEmptyText, { min: 1 })), credentials: optionalText }))
})

/** What `tasks/send` and `tasks/sendSubscribe` take. */
export const SendParams01 = message({
  id: required(identifier),
  sessionId: optionalId,
  message: required(Message),
  pushNotification: present(PushConfig),
  historyLength: present(int32()),
  metadata: present(struct)
})

/** What `tasks/get` and `tasks/resubscribe` take. */
export const GetParams01 = message({ id: required(identifier), historyLength: present(int32()), metadata: present(struct) })

/** What `tasks/cancel` and `tasks/pushNotification/get` take. */
export const IdParams01 = message({ id: required(identifier), metadata: present(struct) })

/** What `tasks/pushNotification/set` takes. */
export const SetPushParams01 = message({ id: required(identifier), pushNotificationConfig: required(PushConfig) })

/** A message of 0.1 as SendMessage takes it. It has no id there, so that it gets one; the session is the context. */
export function toSendMessage({ id, sessionId, message, pushNotification, historyLength, metadata }: z.output<typeof SendParams01>): SendMessageRequest {
  const { parts, metadata: said } = message
  return {
    message: { messageId: randomIds(), role: 'ROLE_USER', parts: parts.map(fromPart01), ...(sessionId !== undefined && { contextId: sessionId }), ...(said && { metadata: said }) },
    configuration: { ...(historyLength !== undefined && { historyLength }), ...(pushNotification && { taskPushNotificationConfig: toWebhook(id, pushNotification) }) },
    ...(metadata && { metadata })
  }
}

/** A webhook of 0.1, which may know several ways to authenticate, as 1.0 has it: with the first. */
export function toWebhook(taskId: string, { url, token, authentication }: z.output<typeof PushConfig>): Omit<CreateTaskPushNotificationConfigRequest, 'taskId'> {
  const { schemes: [scheme = ''] = [], credentials } = authentication ?? {}
  return { id: webhookIdOf(taskId), url, ...(token !== undefined && { token }), ...(authentication && { authentication: { scheme, ...(credentials !== undefined && { credentials }) } }) }
}
