import { createHash } from 'node:crypto'
import type * as z from 'zod'
import {
  identifier,
  int32,
  list,
  message,
  nonEmptyText,
  optionalId,
  optionalText,
  presenceField,
  requiredField,
  struct
} from '../../machines/protocol/codec/decode.ts'
import type { Message as Message10, SendMessageRequest } from '../../machines/protocol/objects.ts'
import type { CreateTaskPushNotificationConfigRequest } from '../../machines/protocol/push.ts'
import { randomIds } from '../../runtime/ports/ids.ts'
import { fromPart01, Part01Schema, word } from './parts.ts'

const WEBHOOK_PREFIX = '0.1/'

/** The id of a task's only webhook in 0.1, which contains the client's id of the task. */
export function webhookIdOf(id: string): string {
  return `${WEBHOOK_PREFIX}${id}`
}

/** The client's id of the task of a webhook of 0.1. */
export function requestedTaskIdOf(webhookId: string): string {
  return webhookId.slice(WEBHOOK_PREFIX.length)
}

/**
 * Begins the ids of the messages that a client sends under its id of a task, which 0.1 does not number: so the messages
 * of a negotiation are found.
 */
export function messagePrefixOf(id: string): string {
  return `${createHash('sha256').update(id).digest('base64url').slice(0, 16)}.`
}

const CANCELED = 'canceled.'

/** The message of a task that only ends a negotiation. Its client has not sent it. */
export function cancellation({ id, metadata }: z.output<typeof IdParams01>): Message10 {
  return {
    messageId: `${messagePrefixOf(id)}${CANCELED}${randomIds()}`,
    role: 'ROLE_USER',
    parts: [{ text: 'The client has canceled the negotiation.' }],
    ...(metadata && { metadata })
  }
}

/** Whether a message is one of `cancellation`. */
export function isCancellation({ messageId }: Pick<Message10, 'messageId'>, id: string): boolean {
  return messageId.startsWith(`${messagePrefixOf(id)}${CANCELED}`)
}

const Message = message({
  role: requiredField(word('user')),
  parts: requiredField(list(Part01Schema, { min: 1 })),
  metadata: presenceField(struct)
})

const PushConfig = message({
  url: requiredField(nonEmptyText),
  token: optionalText,
  authentication: presenceField(
    message({ schemes: requiredField(list(nonEmptyText, { min: 1 })), credentials: optionalText })
  )
})

/** The params of `tasks/send` and `tasks/sendSubscribe`. */
export const SendParams01 = message({
  id: requiredField(identifier),
  sessionId: optionalId,
  message: requiredField(Message),
  pushNotification: presenceField(PushConfig),
  historyLength: presenceField(int32()),
  metadata: presenceField(struct)
})

/** The params of `tasks/get` and `tasks/resubscribe`. */
export const GetParams01 = message({
  id: requiredField(identifier),
  historyLength: presenceField(int32()),
  metadata: presenceField(struct)
})

/** The params of `tasks/cancel` and `tasks/pushNotification/get`. */
export const IdParams01 = message({ id: requiredField(identifier), metadata: presenceField(struct) })

/** The params of `tasks/pushNotification/set`. */
export const SetPushParams01 = message({
  id: requiredField(identifier),
  pushNotificationConfig: requiredField(PushConfig)
})

/** Converts a message of 0.1 to SendMessage. It gets an id, which 0.1 lacks; the session is the context. */
export function toSendMessage({
  id,
  sessionId,
  message,
  pushNotification,
  historyLength,
  metadata
}: z.output<typeof SendParams01>): SendMessageRequest {
  const { parts, metadata: messageMetadata } = message
  return {
    message: {
      messageId: `${messagePrefixOf(id)}${randomIds()}`,
      role: 'ROLE_USER',
      parts: parts.map(fromPart01),
      ...(sessionId !== undefined && { contextId: sessionId }),
      ...(messageMetadata && { metadata: messageMetadata })
    },
    configuration: {
      ...(historyLength !== undefined && { historyLength }),
      ...(pushNotification && { taskPushNotificationConfig: toWebhook(id, pushNotification) })
    },
    ...(metadata && { metadata })
  }
}

/** Converts a webhook of 0.1. Of several authentication schemes, 1.0 keeps the first. */
export function toWebhook(
  taskId: string,
  { url, token, authentication }: z.output<typeof PushConfig>
): Omit<CreateTaskPushNotificationConfigRequest, 'taskId'> {
  const { schemes: [scheme = ''] = [], credentials } = authentication ?? {}
  return {
    id: webhookIdOf(taskId),
    url,
    ...(token !== undefined && { token }),
    ...(authentication && { authentication: { scheme, ...(credentials !== undefined && { credentials }) } })
  }
}
