import * as z from 'zod'
import {
  optionalField,
  optionalFlag,
  optionalId,
  optionalList,
  optionalText,
  presenceField,
  requiredField
} from './codec/fields.ts'
import { message } from './codec/message.ts'
import { flag, identifier, int32, nonEmptyText, struct, timestamp, type Metadata } from './codec/values.ts'
import { TaskStateSchema } from './objects.ts'
import { MessageSchema, type Message } from './parts.ts'
import { TaskPushNotificationConfigSchema } from './push.ts'

const historyLength = presenceField(int32())

/** How a client wants its message answered (§3.2.2). */
export const SendMessageConfigurationSchema = message({
  acceptedOutputModes: optionalList(nonEmptyText),
  taskPushNotificationConfig: presenceField(TaskPushNotificationConfigSchema),
  historyLength,
  returnImmediately: optionalFlag
})

/**
 * How a message wants to be answered (§3.2.2). Without `returnImmediately` the answer waits until the task is
 * terminal or interrupted. Without `historyLength` the answer has the whole history, with 0 none of it.
 */
export interface SendMessageConfiguration extends z.output<typeof SendMessageConfigurationSchema> {}

const fromUser = (message: Message) => message.role === 'ROLE_USER'
const UserMessageSchema = MessageSchema.check(
  z.refine(fromUser, { path: ['role'], error: 'must be ROLE_USER in a message from a client' })
)

/** Parameters of SendMessage and SendStreamingMessage (§3.2.1); the message must be of `ROLE_USER`. */
export const SendMessageRequestSchema = message({
  tenant: optionalText,
  message: requiredField(UserMessageSchema),
  configuration: presenceField(SendMessageConfigurationSchema),
  metadata: presenceField(struct)
})

/** Parameters of SendMessage and SendStreamingMessage (§3.2.1). */
export interface SendMessageRequest extends z.output<typeof SendMessageRequestSchema> {}

/**
 * The metadata and configuration of a request (§3.2.1), as work gets them: without the webhook, which has secrets.
 */
export interface RequestDetails extends Pick<
  SendMessageConfiguration,
  'acceptedOutputModes' | 'returnImmediately' | 'historyLength'
> {
  readonly metadata?: Metadata
}

/** Parameters of GetTask (§3.1.3). */
export const GetTaskRequestSchema = message({ tenant: optionalText, id: requiredField(identifier), historyLength })

/** Parameters of GetTask (§3.1.3). Without `historyLength` the answer has the whole history, with 0 none of it. */
export interface GetTaskRequest extends z.output<typeof GetTaskRequestSchema> {}

/** Parameters of ListTasks (§3.1.4). */
export const ListTasksRequestSchema = message({
  tenant: optionalText,
  contextId: optionalId,
  status: optionalField(TaskStateSchema, value => value === 0 || value === 'TASK_STATE_UNSPECIFIED'),
  pageSize: presenceField(int32(1, 100)),
  pageToken: optionalText,
  historyLength,
  statusTimestampAfter: presenceField(timestamp),
  includeArtifacts: presenceField(flag)
})

/** Parameters of ListTasks (§3.1.4). `pageSize` is 1 to 100, by default 50; `statusTimestampAfter` is inclusive. */
export interface ListTasksRequest extends z.output<typeof ListTasksRequestSchema> {}

/** Parameters of CancelTask (§3.1.5). */
export const CancelTaskRequestSchema = message({
  tenant: optionalText,
  id: requiredField(identifier),
  metadata: presenceField(struct)
})

/** Parameters of CancelTask (§3.1.5). */
export interface CancelTaskRequest extends z.output<typeof CancelTaskRequestSchema> {}

/** Parameters of SubscribeToTask (§3.1.6). */
export const SubscribeToTaskRequestSchema = message({ tenant: optionalText, id: requiredField(identifier) })

/** Parameters of SubscribeToTask (§3.1.6). */
export interface SubscribeToTaskRequest extends z.output<typeof SubscribeToTaskRequestSchema> {}

/** Parameters of GetExtendedAgentCard (§3.1.11). */
export const GetExtendedAgentCardRequestSchema = message({ tenant: optionalText })

/** Parameters of GetExtendedAgentCard (§3.1.11). */
export interface GetExtendedAgentCardRequest extends z.output<typeof GetExtendedAgentCardRequestSchema> {}
