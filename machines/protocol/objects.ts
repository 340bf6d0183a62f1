import type * as z from 'zod'
import {
  defaultField,
  defaultList,
  defaultText,
  optionalFlag,
  optionalId,
  optionalList,
  optionalText,
  presenceField,
  requiredField
} from './codec/fields.ts'
import { message, oneOf } from './codec/message.ts'
import { enumeration, identifier, int32, nonEmptyText, struct, timestamp } from './codec/values.ts'
import { MessageSchema, partsField } from './parts.ts'
import { TASK_STATES } from './states.ts'

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

/** Whether a task's status changed (§4.2.1). */
export const TaskStatusUpdateEventSchema = message({
  taskId: requiredField(identifier),
  contextId: requiredField(identifier),
  status: requiredField(TaskStatusSchema),
  metadata: presenceField(struct)
})

/** Whether a task's status changed (§4.2.1). */
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

/** Answer of SendMessage (§3.1.1): a task, or or a message without a task. */
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
