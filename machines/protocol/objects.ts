import type * as z from 'zod'
import {
  filled,
  filledList,
  filledText,
  optionalFlag,
  optionalId,
  optionalList,
  optionalText,
  present,
  required
} from './codec/fields.ts'
import { message, oneOf } from './codec/message.ts'
import { enumeration, identifier, int32, nonEmptyText, struct, timestamp } from './codec/values.ts'
import { MessageSchema, partsField } from './parts.ts'
import { TASK_STATES } from './states.ts'

/** A task's state by its name or number on the wire (§4.1.3). */
export const TaskStateSchema = enumeration(TASK_STATES)

/** An output of a task (§4.1.7). A refined version, made by a later task, has the same name and a new id. */
export const ArtifactSchema = message({
  artifactId: required(identifier),
  name: optionalText,
  description: optionalText,
  parts: partsField,
  metadata: present(struct),
  extensions: optionalList(nonEmptyText)
})

/** An output of a task (§4.1.7). `artifactId` is unique within its task only. */
export interface Artifact extends z.output<typeof ArtifactSchema> {}

/** A task's state, with the agent's message about it and when it was recorded (§4.1.2). */
export const TaskStatusSchema = message({
  state: required(TaskStateSchema),
  message: present(MessageSchema),
  timestamp: present(timestamp)
})

/** A task's state, with the agent's message about it and when it was recorded (§4.1.2). */
export interface TaskStatus extends z.output<typeof TaskStatusSchema> {}

/** A task (§4.1.1). */
export const TaskSchema = message({
  id: required(identifier),
  contextId: optionalId,
  status: required(TaskStatusSchema),
  artifacts: optionalList(ArtifactSchema),
  history: optionalList(MessageSchema),
  metadata: present(struct)
})

/** A task (§4.1.1). `history` is oldest first; `artifacts` are in the order of their first event. */
export interface Task extends z.output<typeof TaskSchema> {}

/** Whether a task's status changed (§4.2.1). */
export const TaskStatusUpdateEventSchema = message({
  taskId: required(identifier),
  contextId: required(identifier),
  status: required(TaskStatusSchema),
  metadata: present(struct)
})

/** Whether a task's status changed (§4.2.1). */
export interface TaskStatusUpdateEvent extends z.output<typeof TaskStatusUpdateEventSchema> {}

/** Brings an artifact, or a chunk of one (§4.2.2). */
export const TaskArtifactUpdateEventSchema = message({
  taskId: required(identifier),
  contextId: required(identifier),
  artifact: required(ArtifactSchema),
  append: optionalFlag,
  lastChunk: optionalFlag,
  metadata: present(struct)
})

/**
 * Brings an artifact, or a chunk of one (§4.2.2). With `append` its parts are added to the artifact of the same id, otherwise
 * they replace it; `lastChunk` marks the end of the artifact. Both default to false.
 */
export interface TaskArtifactUpdateEvent extends z.output<typeof TaskArtifactUpdateEventSchema> {}

/** One item of a stream (§3.2.3): exactly one of four. */
export const StreamResponseSchema = oneOf(
  {
    task: required(TaskSchema),
    message: required(MessageSchema),
    statusUpdate: required(TaskStatusUpdateEventSchema),
    artifactUpdate: required(TaskArtifactUpdateEventSchema)
  },
  {}
)

/** One item of a stream (§3.2.3). Narrow it with `'task' in item` and the like. */
export type StreamResponse = z.output<typeof StreamResponseSchema>

/** Answer of SendMessage (§3.1.1): a task, or or a message without a task. */
export const SendMessageResponseSchema = oneOf({ task: required(TaskSchema), message: required(MessageSchema) }, {})

/** Answer of SendMessage (§3.1.1): a task, or a message without a task. Narrow it with `'task' in response`. */
export type SendMessageResponse = z.output<typeof SendMessageResponseSchema>

/** One page of tasks (§3.1.4). */
export const ListTasksResponseSchema = message({
  tasks: filledList(TaskSchema),
  nextPageToken: filledText,
  pageSize: filled(int32(), () => 0),
  totalSize: filled(int32(), () => 0)
})

/** One page of tasks, latest status first (§3.1.4). `nextPageToken` is empty on the last; `totalSize` counts all pages. */
export interface ListTasksResponse extends z.output<typeof ListTasksResponseSchema> {}
