import * as z from 'zod'
import {
  anyString,
  bytes,
  defaultField,
  defaultList,
  defaultText,
  enumeration,
  flag,
  identifier,
  int32,
  json,
  list,
  message,
  nonEmptyText,
  nullableField,
  oneOf,
  optionalField,
  optionalFlag,
  optionalId,
  optionalList,
  optionalText,
  presenceField,
  requiredField,
  struct,
  timestamp
} from './codec/decode.ts'
import { isObject } from './codec/json.ts'
import { TaskPushNotificationConfigSchema } from './push.ts'
import { TASK_STATES } from './states.ts'

/** The roles with their numbers in the proto (§4.1.5), without `ROLE_UNSPECIFIED`, which is never sent. */
export const ROLES = { ROLE_USER: { number: 1 }, ROLE_AGENT: { number: 2 } } as const

/** The sender of a message: the client or the agent (§4.1.5). */
export type Role = keyof typeof ROLES

/** A part of a message or an artifact (§4.1.6): exactly one of `text`, `raw`, `url` and `data`. */
export const PartSchema = oneOf(
  {
    text: requiredField(anyString),
    raw: requiredField(bytes),
    url: requiredField(nonEmptyText),
    data: nullableField(json)
  },
  { metadata: presenceField(struct), filename: optionalText, mediaType: optionalText }
)

/**
 * A part of a message or an artifact (§4.1.6). Narrow it with `'text' in part` and the like; `raw` is base64, `data`
 * any JSON value, including null.
 */
export type Part = z.output<typeof PartSchema>

/** One or more parts. */
export const partsField = requiredField(list(PartSchema, { min: 1, simple: textAlone }))

/** One message of a client or an agent (§4.1.4). */
export const MessageSchema = message({
  messageId: requiredField(identifier),
  contextId: optionalId,
  taskId: optionalId,
  role: requiredField(enumeration(ROLES)),
  parts: partsField,
  metadata: presenceField(struct),
  extensions: optionalList(nonEmptyText),
  referenceTaskIds: optionalList(identifier)
})

/** One message of a client or an agent (§4.1.4). The sender makes the `messageId`. */
export interface Message extends z.output<typeof MessageSchema> {}

/**
 * Fast path for a part that has only `text`, as most have: decoding it would take nearly as long as the rest of its
 * message.
 */
function textAlone(part: unknown): Part | undefined {
  if (!isObject(part) || Object.keys(part).length !== 1) return undefined
  const { text } = part
  return typeof text === 'string' && Object.hasOwn(part, 'text') ? { text } : undefined
}

/** A task's state by its name or number on the wire (§4.1.3). */
export const TaskStateSchema = enumeration(TASK_STATES)

/** An output of a task (§4.1.7). A refined version, made by a later task, has the same name and a new id. */
export const ArtifactSchema = message({
  artifactId: requiredField(identifier),
  name: optionalText,
  description: optionalText,
  parts: partsField,
  metadata: presenceField(struct),
  extensions: optionalList(nonEmptyText)
})

/** An output of a task (§4.1.7). `artifactId` is unique within its task only. */
export interface Artifact extends z.output<typeof ArtifactSchema> {}

/** A task's state, with the agent's message about it and when it was recorded (§4.1.2). */
export const TaskStatusSchema = message({
  state: requiredField(TaskStateSchema),
  message: presenceField(MessageSchema),
  timestamp: presenceField(timestamp)
})

/** A task's state, with the agent's message about it and when it was recorded (§4.1.2). */
export interface TaskStatus extends z.output<typeof TaskStatusSchema> {}

/** A task (§4.1.1). */
export const TaskSchema = message({
  id: requiredField(identifier),
  contextId: optionalId,
  status: requiredField(TaskStatusSchema),
  artifacts: optionalList(ArtifactSchema),
  history: optionalList(MessageSchema),
  metadata: presenceField(struct)
})

/** A task (§4.1.1). `history` is oldest first; `artifacts` are in the order of their first event. */
export interface Task extends z.output<typeof TaskSchema> {}

/** Brings the new status of a task, or progress in the same one (§4.2.1). */
export const TaskStatusUpdateEventSchema = message({
  taskId: requiredField(identifier),
  contextId: requiredField(identifier),
  status: requiredField(TaskStatusSchema),
  metadata: presenceField(struct)
})

/** Brings the new status of a task, or progress in the same one (§4.2.1). */
export interface TaskStatusUpdateEvent extends z.output<typeof TaskStatusUpdateEventSchema> {}

/** Brings an artifact, or a chunk of one (§4.2.2). */
export const TaskArtifactUpdateEventSchema = message({
  taskId: requiredField(identifier),
  contextId: requiredField(identifier),
  artifact: requiredField(ArtifactSchema),
  append: optionalFlag,
  lastChunk: optionalFlag,
  metadata: presenceField(struct)
})

/**
 * Brings an artifact, or a chunk of one (§4.2.2). With `append` its parts are added to the artifact of the same id,
 * otherwise they replace it; `lastChunk` marks the end of the artifact. Both default to false.
 */
export interface TaskArtifactUpdateEvent extends z.output<typeof TaskArtifactUpdateEventSchema> {}

/** One item of a stream (§3.2.3): exactly one of four. */
export const StreamResponseSchema = oneOf(
  {
    task: requiredField(TaskSchema),
    message: requiredField(MessageSchema),
    statusUpdate: requiredField(TaskStatusUpdateEventSchema),
    artifactUpdate: requiredField(TaskArtifactUpdateEventSchema)
  },
  {}
)

/** One item of a stream (§3.2.3). Narrow it with `'task' in item` and the like. */
export type StreamResponse = z.output<typeof StreamResponseSchema>

/** Answer of SendMessage (§3.1.1): a task, or a message without a task. */
export const SendMessageResponseSchema = oneOf(
  { task: requiredField(TaskSchema), message: requiredField(MessageSchema) },
  {}
)

/** Answer of SendMessage (§3.1.1): a task, or a message without a task. Narrow it with `'task' in response`. */
export type SendMessageResponse = z.output<typeof SendMessageResponseSchema>

/** One page of tasks (§3.1.4). */
export const ListTasksResponseSchema = message({
  tasks: defaultList(TaskSchema),
  nextPageToken: defaultText,
  pageSize: defaultField(int32(), () => 0),
  totalSize: defaultField(int32(), () => 0)
})

/**
 * One page of tasks, latest status first (§3.1.4). `nextPageToken` is empty on the last; `totalSize` counts all pages.
 */
export interface ListTasksResponse extends z.output<typeof ListTasksResponseSchema> {}

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
  readonly metadata?: Record<string, unknown>
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
