import type {
  Artifact,
  Message,
  Task,
  TaskArtifactUpdateEvent,
  TaskStatus,
  TimelineEntry
} from '../../machines/protocol/objects.ts'
import { isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import { appendToKept } from '../primitives/collections.ts'
import {
  generationOf,
  type ContextKey,
  type MessageRow,
  type ReadOptions,
  type StoredTask,
  type TaskEvent
} from './store.ts'

/** Up to this many artifacts, a lookup scans the list. For more there is an index. */
const FEW = 8

/**
 * The artifacts of a task by id, in the order of their first event. Most tasks have one, for which a Map would take as
 * much memory as the rest of the task.
 */
export class ArtifactList {
  #list: Artifact[] = []
  #places: Map<string, number> | undefined

  get(artifactId: string): Artifact | undefined {
    return this.#list[this.#placeOf(artifactId)]
  }

  /** Replaces the artifact with the same id, or adds one at the end. */
  set(artifact: Artifact): void {
    const place = this.#placeOf(artifact.artifactId)
    if (place >= 0) {
      this.#list[place] = artifact
      return
    }
    this.#places?.set(artifact.artifactId, this.#list.length)
    this.#list = appendToKept(this.#list, artifact)
  }

  /** Copies that do not change with the list. */
  copies(): Artifact[] {
    return this.#list.map(copyOf)
  }

  #placeOf(artifactId: string): number {
    if (this.#list.length <= FEW) return this.#list.findIndex(artifact => artifact.artifactId === artifactId)
    this.#places ??= new Map(this.#list.map((artifact, place) => [artifact.artifactId, place]))
    return this.#places.get(artifactId) ?? -1
  }
}

/** Whether an event is a status for whose state `holds`. */
export function hasState({ update }: TaskEvent, holds: (state: TaskState) => boolean): boolean {
  return 'statusUpdate' in update && holds(update.statusUpdate.status.state)
}

/** Whether an event is the last of its task: a terminal status (§4.1.3). */
export function isLast(event: TaskEvent): boolean {
  return hasState(event, isTerminal)
}

/** The index of the first event after a generation, in a list in their order. */
export function indexAfter(events: readonly TaskEvent[], generation: number): number {
  let [from, to] = [0, events.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if ((events[middle] as TaskEvent).generation > generation) to = middle
    else from = middle + 1
  }
  return from
}

/** The last `count` items of a list; all without a count. */
export function takeLast<T>(list: readonly T[], count: number = list.length): T[] {
  return count === 0 ? [] : list.slice(-count)
}

/**
 * A task as a projection of its events and messages. An engine may keep this form; {@link applyEvent} and {@link
 * applyMessage} update it in place.
 */
export interface TaskRecord {
  readonly key: ContextKey
  readonly taskId: string
  generation: number
  status: TaskStatus
  /** `undefined` before the first. */
  artifacts: ArtifactList | undefined
  /** Every message of the task in order. The agent's last one is that of the current status. */
  said: Message[]
  metadata: Record<string, unknown> | undefined
  /** Only in a record that was made for a timeline. */
  readonly timeline?: TaskTimeline | undefined
}

/**
 * What 1.1 adds to a task (its §3.2.8): its client's messages and its statuses, and the generations of its artifacts.
 */
interface TaskTimeline {
  readonly entries: TimelineEntry[]
  readonly artifacts: Map<string, Pick<Artifact, 'startGeneration' | 'endGeneration'>>
}

/** A task before its first event. `hasTimeline`: its projection has a timeline. */
export function newTaskRecord(key: ContextKey, taskId: string, hasTimeline = false): TaskRecord {
  const status: TaskStatus = { state: 'TASK_STATE_SUBMITTED' }
  const record = { key, taskId, generation: 0, status, artifacts: undefined, said: [], metadata: undefined }
  return hasTimeline ? { ...record, timeline: { entries: [], artifacts: new Map() } } : record
}

/** Applies an event. Events must be in the order of their generations. */
export function applyEvent(record: TaskRecord, { generation, update }: TaskEvent): void {
  record.generation = generation
  if ('artifactUpdate' in update) {
    if (record.timeline) numberArtifact(record.timeline, String(generation), update.artifactUpdate)
    return applyArtifact(record, update.artifactUpdate.artifact, update.artifactUpdate.append)
  }
  const { status, metadata } = update.statusUpdate
  record.status = status
  record.timeline?.entries.push({ status, generation: String(generation) })
  if (status.message) addMessage(record, status.message)
  if (metadata) record.metadata = { ...record.metadata, ...metadata }
}

/**
 * Applies events, and before each one the messages from the `next` on that are older. Returns the index of the first
 * message after them.
 */
export function applyEvents(
  record: TaskRecord,
  events: readonly TaskEvent[],
  messages: readonly MessageRow[],
  next = 0
): number {
  let place = next
  for (const event of events) {
    for (
      let message = messages[place];
      message && (message.generation ?? 0) < event.generation;
      message = messages[place]
    ) {
      applyMessage(record, message)
      place += 1
    }
    applyEvent(record, event)
  }
  return place
}

/** Adds a client's message. */
export function applyMessage(record: TaskRecord, row: MessageRow): void {
  const { message } = row
  const generation = generationOf(row)
  record.generation = generation ?? record.generation
  // A message of before messages were numbered has none.
  record.timeline?.entries.push(generation === undefined ? { message } : { message, generation: String(generation) })
  addMessage(record, message)
}

function addMessage(record: TaskRecord, message: Message): void {
  record.said = appendToKept(record.said, message)
}

/** The task in wire form (§4.1.1). The history has all messages except that of the current status (§3.7). */
export function projectTask(
  record: TaskRecord,
  { historyLength, artifacts = true, timelineLength }: ReadOptions = {}
): StoredTask {
  const { key, taskId, status, metadata, generation, timeline } = record
  const history = takeLast(
    record.said.filter(message => message !== status.message),
    historyLength
  )
  const task: Task & { contextId: string } = { id: taskId, contextId: key.contextId, status }
  if (artifacts && record.artifacts) task.artifacts = record.artifacts.copies()
  if (timeline && task.artifacts)
    task.artifacts = task.artifacts.map(each => ({ ...each, ...timeline.artifacts.get(each.artifactId) }))
  if (history.length > 0) task.history = history
  const entries = timeline ? takeLast(timeline.entries, timelineLength) : []
  if (entries.length > 0) task.timeline = entries
  if (metadata) task.metadata = metadata
  return { task, generation }
}

/**
 * Numbers an artifact with the first event that has it, also if a later one replaces it, and with the one that
 * completes it. A chunk that does not append is taken for the whole, since an author need not mark the last chunk of an
 * artifact that has one. A chunk that appends leaves the artifact open unless it is the last: so an artifact that was
 * cut has no end.
 */
function numberArtifact(
  { artifacts }: TaskTimeline,
  generation: string,
  { artifact: { artifactId }, append = false, lastChunk = false }: TaskArtifactUpdateEvent
): void {
  const { startGeneration = generation } = artifacts.get(artifactId) ?? {}
  const isComplete = lastChunk || !append
  artifacts.set(artifactId, { startGeneration, ...(isComplete && { endGeneration: generation }) })
}

/** Replaces the artifact of the same id, or appends to it (§4.2.2). */
function applyArtifact(record: TaskRecord, artifact: Artifact, append = false): void {
  const artifacts = (record.artifacts ??= new ArtifactList())
  const known = append ? artifacts.get(artifact.artifactId) : undefined
  if (known) appendTo(known, artifact)
  else artifacts.set(copyOf(artifact))
}

/** Appends a chunk to an artifact: adds its parts at the end, and replaces the other members (§4.2.2). */
export function appendTo(known: Artifact, chunk: Artifact): void {
  const { parts, metadata } = known
  for (const part of chunk.parts) parts.push(part)
  Object.assign(known, chunk)
  known.parts = parts
  if (metadata || chunk.metadata) known.metadata = { ...metadata, ...chunk.metadata }
}

/** A copy with its own list of parts, for `appendTo`. */
function copyOf(artifact: Artifact): Artifact {
  return { ...artifact, parts: [...artifact.parts] }
}
