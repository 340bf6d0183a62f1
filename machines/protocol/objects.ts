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
  int64,
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
  type Schema,
  struct,
  timestamp
} from './codec/decode.ts'
import { isObject } from './codec/json.ts'
import { TaskPushNotificationConfigSchema } from './push.ts'
import { TASK_STATES } from './states.ts'
import type { NativeVersion } from './versions.ts'

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

/**
 * A number of a task's log in 1.1 (its §3.2.7), from 1. 0 is the default of the proto, and means that there is none.
 */
const generation = optionalField(int64, value => value === 0 || value === '0')

const artifactFields = {
  artifactId: requiredField(identifier),
  name: optionalText,
  description: optionalText,
  parts: partsField,
  metadata: presenceField(struct),
  extensions: optionalList(nonEmptyText)
}

/** An output of a task (§4.1.7). A refined version, made by a later task, has the same name and a new id. */
export const ArtifactSchema = message(artifactFields)

const ArtifactSchema11 = message({ ...artifactFields, startGeneration: generation, endGeneration: generation })

/**
 * An output of a task (§4.1.7). `artifactId` is unique within its task only. In 1.1 it has the generation in which it
 * first appeared, and the one in which it became complete, which is missing while it streams: decimal text.
 */
export interface Artifact extends z.output<typeof ArtifactSchema11> {}

/** A task's state, with the agent's message about it and when it was recorded (§4.1.2). */
export const TaskStatusSchema = message({
  state: requiredField(TaskStateSchema),
  message: presenceField(MessageSchema),
  timestamp: presenceField(timestamp)
})

/** A task's state, with the agent's message about it and when it was recorded (§4.1.2). */
export interface TaskStatus extends z.output<typeof TaskStatusSchema> {}

const taskFields = {
  id: requiredField(identifier),
  contextId: optionalId,
  status: requiredField(TaskStatusSchema),
  artifacts: optionalList(ArtifactSchema),
  history: optionalList(MessageSchema),
  metadata: presenceField(struct)
}

/** A task (§4.1.1). */
export const TaskSchema = message(taskFields)

/**
 * One entry of a task's timeline in 1.1 (its §3.2.8): a client's message or a status, with its generation. Later
 * versions may have entries of other kinds, which are read as their generation alone.
 */
const TimelineEntrySchema = message({
  message: presenceField(MessageSchema),
  status: presenceField(TaskStatusSchema),
  generation
})

const TaskSchema11 = message({
  ...taskFields,
  artifacts: optionalList(ArtifactSchema11),
  generation,
  timeline: optionalList(TimelineEntrySchema)
})

/**
 * A task (§4.1.1). `history` is oldest first; `artifacts` are in the order of their first event. In 1.1 it has its
 * `generation` as decimal text, and in `timeline`, oldest first, the messages of its client and its statuses.
 */
export interface Task extends z.output<typeof TaskSchema11> {}

/**
 * One entry of the `timeline` of a task in 1.1: a client's message or a status, with its generation as decimal text.
 */
export type TimelineEntry = Required<Task>['timeline'][number]

const statusUpdateFields = {
  taskId: requiredField(identifier),
  contextId: requiredField(identifier),
  status: requiredField(TaskStatusSchema),
  metadata: presenceField(struct)
}

/** Brings the new status of a task, or progress in the same one (§4.2.1). */
export const TaskStatusUpdateEventSchema = message(statusUpdateFields)

const TaskStatusUpdateEventSchema11 = message({ ...statusUpdateFields, generation })

/**
 * Brings the new status of a task, or progress in the same one (§4.2.1). In 1.1 with the task's `generation` after it.
 */
export interface TaskStatusUpdateEvent extends z.output<typeof TaskStatusUpdateEventSchema11> {}

const artifactUpdateFields = {
  taskId: requiredField(identifier),
  contextId: requiredField(identifier),
  artifact: requiredField(ArtifactSchema),
  append: optionalFlag,
  lastChunk: optionalFlag,
  metadata: presenceField(struct)
}

/** Brings an artifact, or a chunk of one (§4.2.2). */
export const TaskArtifactUpdateEventSchema = message(artifactUpdateFields)

const TaskArtifactUpdateEventSchema11 = message({
  ...artifactUpdateFields,
  artifact: requiredField(ArtifactSchema11),
  generation
})

/**
 * Brings an artifact, or a chunk of one (§4.2.2). With `append` its parts are added to the artifact of the same id,
 * otherwise they replace it; `lastChunk` marks the end of the artifact. Both default to false. In 1.1 with the task's
 * `generation` after it.
 */
export interface TaskArtifactUpdateEvent extends z.output<typeof TaskArtifactUpdateEventSchema11> {}

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

const StreamResponseSchema11 = oneOf(
  {
    task: requiredField(TaskSchema11),
    message: requiredField(MessageSchema),
    statusUpdate: requiredField(TaskStatusUpdateEventSchema11),
    artifactUpdate: requiredField(TaskArtifactUpdateEventSchema11)
  },
  {}
)

/** One item of a stream (§3.2.3). Narrow it with `'task' in item` and the like. */
export type StreamResponse = z.output<typeof StreamResponseSchema11>

/** Answer of SendMessage (§3.1.1): a task, or a message without a task. */
export const SendMessageResponseSchema = oneOf(
  { task: requiredField(TaskSchema), message: requiredField(MessageSchema) },
  {}
)

const SendMessageResponseSchema11 = oneOf(
  { task: requiredField(TaskSchema11), message: requiredField(MessageSchema) },
  {}
)

/** Answer of SendMessage (§3.1.1): a task, or a message without a task. Narrow it with `'task' in response`. */
export type SendMessageResponse = z.output<typeof SendMessageResponseSchema11>

const pageFields = {
  tasks: defaultList(TaskSchema),
  nextPageToken: defaultText,
  pageSize: defaultField(int32(), () => 0),
  totalSize: defaultField(int32(), () => 0)
}

/** One page of tasks (§3.1.4). */
export const ListTasksResponseSchema = message(pageFields)

const ListTasksResponseSchema11 = message({ ...pageFields, tasks: defaultList(TaskSchema11) })

/**
 * One page of tasks, latest status first (§3.1.4). `nextPageToken` is empty on the last; `totalSize` counts all pages.
 */
export interface ListTasksResponse extends z.output<typeof ListTasksResponseSchema11> {}

/** The schemas of answers that have tasks, and of the events of streams. */
export interface AnswerSchemas {
  readonly task: Schema<Task>
  readonly sendMessage: Schema<SendMessageResponse>
  readonly listTasks: Schema<ListTasksResponse>
  readonly event: Schema<StreamResponse>
}

/** The schemas of answers in each version. Those of 1.0 drop the members of 1.1. */
export const ANSWER_SCHEMAS: Readonly<Record<NativeVersion, AnswerSchemas>> = {
  '1.0': {
    task: TaskSchema,
    sendMessage: SendMessageResponseSchema,
    listTasks: ListTasksResponseSchema,
    event: StreamResponseSchema
  },
  '1.1': {
    task: TaskSchema11,
    sendMessage: SendMessageResponseSchema11,
    listTasks: ListTasksResponseSchema11,
    event: StreamResponseSchema11
  }
}

const historyLength = presenceField(int32())
const timelineLength = presenceField(int32())
/** A generation that a client requires or has seen; 0 is a value. */
const expectedGeneration = presenceField(int64)

/**
 * How a request is read: by its version. A server that speaks 1.1 honours conditions in requests of 1.0, too, since
 * only a client that relies on them sends them (`conditional`).
 */
export type RequestForm = NativeVersion | 'conditional'

/** The schemas of one request in each form. */
export type RequestSchemas<T> = Readonly<Record<RequestForm, Schema<T>>>

const configurationFields = {
  acceptedOutputModes: optionalList(nonEmptyText),
  taskPushNotificationConfig: presenceField(TaskPushNotificationConfigSchema),
  historyLength,
  returnImmediately: optionalFlag
}

/** How a client wants its message answered (§3.2.2). */
export const SendMessageConfigurationSchema = message(configurationFields)

const ConditionalConfigurationSchema = message({ ...configurationFields, ifGenerationMatch: expectedGeneration })

const SendMessageConfigurationSchema11 = message({
  ...configurationFields,
  ifGenerationMatch: expectedGeneration,
  timelineLength
})

/**
 * How a message wants to be answered (§3.2.2). Without `returnImmediately` the answer waits until the task is
 * terminal or interrupted. Without `historyLength` the answer has the whole history, with 0 none of it, and the same
 * holds for `timelineLength` of 1.1. With `ifGenerationMatch` of 1.1 the task has to have this generation.
 */
export interface SendMessageConfiguration extends z.output<typeof SendMessageConfigurationSchema11> {}

const fromUser = (message: Message) => message.role === 'ROLE_USER'
const UserMessageSchema = MessageSchema.check(
  z.refine(fromUser, { path: ['role'], error: 'must be ROLE_USER in a message from a client' })
)

const sendFields = {
  tenant: optionalText,
  message: requiredField(UserMessageSchema),
  configuration: presenceField(SendMessageConfigurationSchema),
  metadata: presenceField(struct)
}

/** Parameters of SendMessage and SendStreamingMessage (§3.2.1); the message must be of `ROLE_USER`. */
export const SendMessageRequestSchema = message(sendFields)

const SendMessageRequestSchema11 = message({
  ...sendFields,
  configuration: presenceField(SendMessageConfigurationSchema11)
})

/** Parameters of SendMessage and SendStreamingMessage (§3.2.1). */
export interface SendMessageRequest extends z.output<typeof SendMessageRequestSchema11> {}

/** Parameters of SendMessage and SendStreamingMessage in each form. */
export const SEND_MESSAGE_REQUESTS: RequestSchemas<SendMessageRequest> = {
  '1.0': SendMessageRequestSchema,
  conditional: message({ ...sendFields, configuration: presenceField(ConditionalConfigurationSchema) }),
  '1.1': SendMessageRequestSchema11
}

/**
 * The metadata and configuration of a request (§3.2.1), as work gets them: without the webhook, which has secrets.
 */
export interface RequestDetails extends Pick<
  SendMessageConfiguration,
  'acceptedOutputModes' | 'returnImmediately' | 'historyLength'
> {
  readonly metadata?: Record<string, unknown>
}

const getTaskFields = { tenant: optionalText, id: requiredField(identifier), historyLength }

/** Parameters of GetTask (§3.1.3). */
export const GetTaskRequestSchema = message(getTaskFields)

const GetTaskRequestSchema11 = message({ ...getTaskFields, currentGeneration: expectedGeneration, timelineLength })

/**
 * Parameters of GetTask (§3.1.3). Without `historyLength` the answer has the whole history, with 0 none of it, and the
 * same holds for `timelineLength` of 1.1. With `currentGeneration` of 1.1 the answer waits until the task has a higher
 * one.
 */
export interface GetTaskRequest extends z.output<typeof GetTaskRequestSchema11> {}

/** Parameters of GetTask in each form. */
export const GET_TASK_REQUESTS: RequestSchemas<GetTaskRequest> = {
  '1.0': GetTaskRequestSchema,
  conditional: message({ ...getTaskFields, currentGeneration: expectedGeneration }),
  '1.1': GetTaskRequestSchema11
}

const listTasksFields = {
  tenant: optionalText,
  contextId: optionalId,
  status: optionalField(TaskStateSchema, value => value === 0 || value === 'TASK_STATE_UNSPECIFIED'),
  pageSize: presenceField(int32(1, 100)),
  pageToken: optionalText,
  historyLength,
  statusTimestampAfter: presenceField(timestamp),
  includeArtifacts: presenceField(flag)
}

/** Parameters of ListTasks (§3.1.4). */
export const ListTasksRequestSchema = message(listTasksFields)

const ListTasksRequestSchema11 = message({ ...listTasksFields, timelineLength })

/**
 * Parameters of ListTasks (§3.1.4). `pageSize` is 1 to 100, by default 50; `statusTimestampAfter` is inclusive;
 * `timelineLength` is of 1.1.
 */
export interface ListTasksRequest extends z.output<typeof ListTasksRequestSchema11> {}

/** Parameters of ListTasks in each form. */
export const LIST_TASKS_REQUESTS: RequestSchemas<ListTasksRequest> = {
  '1.0': ListTasksRequestSchema,
  conditional: ListTasksRequestSchema,
  '1.1': ListTasksRequestSchema11
}

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
