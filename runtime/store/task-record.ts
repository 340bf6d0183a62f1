import type { Artifact, Task, TaskStatus } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import { isTerminal } from '../../machines/protocol/states.ts'
import type { ContextKey, MessageRow, ReadOptions, StoredTask, TaskEvent } from './store.ts'

/** Up to which length a list is made anew for each item. */
const SHORT = 8

/**
 * A list with one more item. A short one is a new list without room to spare, for of short ones there are many: the first
 * `push` makes room for 17. A long one grows in place.
 */
export function append<T extends object>(list: T[], item: T): T[] {
  if (list.length < SHORT) return list.concat([item])
  list.push(item)
  return list
}

/** Up to how many artifacts are looked through; of more there is an index. */
const FEW = 8

/** The artifacts of a task by their ids, in the order in which they first came. Most tasks have one: a Map for it would take as much memory as all else of the task. */
export class ArtifactList {
  #list: Artifact[] = []
  #places: Map<string, number> | undefined

  get(artifactId: string): Artifact | undefined {
    return this.#list[this.#placeOf(artifactId)]
  }

  /** Puts an artifact in the place of that with its id, or at the end. */
  set(artifact: Artifact): void {
    const place = this.#placeOf(artifact.artifactId)
    if (place >= 0) {
      this.#list[place] = artifact
      return
    }
    this.#places?.set(artifact.artifactId, this.#list.length)
    this.#list = append(this.#list, artifact)
  }

  [Symbol.iterator](): Iterator<Artifact> {
    return this.#list.values()
  }

  #placeOf(artifactId: string): number {
    if (this.#list.length <= FEW) return this.#list.findIndex(artifact => artifact.artifactId === artifactId)
    this.#places ??= new Map(this.#list.map((artifact, place) => [artifact.artifactId, place]))
    return this.#places.get(artifactId) ?? -1
  }
}

/** Whether an event is the last of its task: no other comes after a terminal status (§4.1.3). */
export function isLast({ update }: TaskEvent): boolean {
  return 'statusUpdate' in update && isTerminal(update.statusUpdate.status.state)
}

/** The last `count` of a list that is oldest first; all of them without a count. */
export function takeLast<T>(list: readonly T[], count: number = list.length): T[] {
  return count === 0 ? [] : list.slice(-count)
}

/**
 * A task as its events and messages make it: the form in which an engine may keep it, appended to by
 * {@link applyEvent} and {@link applyMessage} and never copied whole. `said` holds every message of the task in
 * order, with the current status message last among those of the agent.
 */
export interface TaskRecord {
  readonly key: ContextKey
  readonly taskId: string
  generation: number
  status: TaskStatus
  /** None before the first. */
  artifacts: ArtifactList | undefined
  said: Message[]
  metadata: Record<string, unknown> | undefined
}

/** A task before its first event. */
export function newTaskRecord(key: ContextKey, taskId: string): TaskRecord {
  const status: TaskStatus = { state: 'TASK_STATE_SUBMITTED' }
  return { key, taskId, generation: 0, status, artifacts: undefined, said: [], metadata: undefined }
}

/** Adds what an event says. Events come in the order of their generations. */
export function applyEvent(record: TaskRecord, { generation, update }: TaskEvent): void {
  record.generation = generation
  if ('artifactUpdate' in update) return applyArtifact(record, update.artifactUpdate.artifact, update.artifactUpdate.append)
  const { status, metadata } = update.statusUpdate
  record.status = status
  if (status.message) record.said = append(record.said, status.message)
  if (metadata) record.metadata = { ...record.metadata, ...metadata }
}

/** Adds a client's message. */
export function applyMessage(record: TaskRecord, { message }: MessageRow): void {
  record.said = append(record.said, message)
}

/** The task as the wire shows it (§4.1.1). History holds the client's messages and the agent's earlier ones, the current one only the status (§3.7). */
export function projectTask(record: TaskRecord, { historyLength, artifacts = true }: ReadOptions = {}): StoredTask {
  const { key, taskId, status, metadata, generation } = record
  const history = takeLast(record.said.filter(message => message !== status.message), historyLength)
  const task: Task & { contextId: string } = { id: taskId, contextId: key.contextId, status }
  if (artifacts && record.artifacts) task.artifacts = Array.from(record.artifacts, copyOf)
  if (history.length > 0) task.history = history
  if (metadata) task.metadata = metadata
  return { task, generation }
}

/** The artifact replaces one of the same id, or its parts are appended to it and its other members win (§4.2.2). */
function applyArtifact(record: TaskRecord, artifact: Artifact, append = false): void {
  const artifacts = (record.artifacts ??= new ArtifactList())
  const known = append ? artifacts.get(artifact.artifactId) : undefined
  if (known) appendTo(known, artifact)
  else artifacts.set(copyOf(artifact))
}

/** Appends a chunk to an artifact: its parts come after those that are there, its other members win (§4.2.2). */
export function appendTo(known: Artifact, chunk: Artifact): void {
  const { parts, metadata } = known
  for (const part of chunk.parts) parts.push(part)
  Object.assign(known, chunk)
  known.parts = parts
  if (metadata || chunk.metadata) known.metadata = { ...metadata, ...chunk.metadata }
}

/** A copy to which more can be appended. */
export function copyOf(artifact: Artifact): Artifact {
  return { ...artifact, parts: [...artifact.parts] }
}
