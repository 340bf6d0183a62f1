import type * as z from 'zod'
import {
  defaultList,
  identifier,
  int32,
  message,
  nonEmptyText,
  optionalField,
  optionalId,
  optionalText,
  presenceField,
  requiredField
} from './codec/decode.ts'

/** How the server authenticates to a webhook (§4.3.2). */
export const AuthenticationInfoSchema = message({ scheme: requiredField(nonEmptyText), credentials: optionalText })

/** How the server authenticates to a webhook (§4.3.2); `scheme` is an HTTP one such as `Bearer`, in any case. */
export interface AuthenticationInfo extends z.output<typeof AuthenticationInfoSchema> {}

const configFields = {
  tenant: optionalText,
  id: optionalId,
  taskId: optionalId,
  url: requiredField(nonEmptyText),
  token: optionalText,
  authentication: presenceField(AuthenticationInfoSchema)
}

/** A webhook that receives the events of a task (§4.3.1). */
export const TaskPushNotificationConfigSchema = message(configFields)

/** A webhook that receives the events of a task (§4.3.1). Without `id` the server gives it one. */
export interface TaskPushNotificationConfig extends z.output<typeof TaskPushNotificationConfigSchema> {}

/** Parameters of CreateTaskPushNotificationConfig (§3.1.7): a configuration that names its task. */
export const CreateTaskPushNotificationConfigRequestSchema = message({
  ...configFields,
  taskId: requiredField(identifier)
})

/** Parameters of CreateTaskPushNotificationConfig (§3.1.7): a TaskPushNotificationConfig with its `taskId`. */
export interface CreateTaskPushNotificationConfigRequest extends z.output<
  typeof CreateTaskPushNotificationConfigRequestSchema
> {}

const configNameFields = { tenant: optionalText, taskId: requiredField(identifier), id: requiredField(identifier) }

/** Parameters of GetTaskPushNotificationConfig (§3.1.8). */
export const GetTaskPushNotificationConfigRequestSchema = message(configNameFields)

/** Parameters of GetTaskPushNotificationConfig (§3.1.8). */
export interface GetTaskPushNotificationConfigRequest extends z.output<
  typeof GetTaskPushNotificationConfigRequestSchema
> {}

/** Parameters of DeleteTaskPushNotificationConfig (§3.1.10). */
export const DeleteTaskPushNotificationConfigRequestSchema = message(configNameFields)

/** Parameters of DeleteTaskPushNotificationConfig (§3.1.10). */
export interface DeleteTaskPushNotificationConfigRequest extends z.output<
  typeof DeleteTaskPushNotificationConfigRequestSchema
> {}

/** Parameters of ListTaskPushNotificationConfigs (§3.1.9). */
export const ListTaskPushNotificationConfigsRequestSchema = message({
  tenant: optionalText,
  taskId: requiredField(identifier),
  pageSize: optionalField(int32(1, 100), value => value === 0 || value === '0'),
  pageToken: optionalText
})

/** Parameters of ListTaskPushNotificationConfigs (§3.1.9). `pageSize` is 1 to 100; with 0 the server chooses. */
export interface ListTaskPushNotificationConfigsRequest extends z.output<
  typeof ListTaskPushNotificationConfigsRequestSchema
> {}

/** One page of a task's webhooks (§3.1.9). */
export const ListTaskPushNotificationConfigsResponseSchema = message({
  configs: defaultList(TaskPushNotificationConfigSchema),
  nextPageToken: optionalText
})

/** One page of a task's webhooks (§3.1.9); the last page has no `nextPageToken`. */
export interface ListTaskPushNotificationConfigsResponse extends z.output<
  typeof ListTaskPushNotificationConfigsResponseSchema
> {}
