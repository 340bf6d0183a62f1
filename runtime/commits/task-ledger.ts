import type { AnyActorRef } from 'xstate'
import type { A2AError } from '../../machines/protocol/errors.ts'
import type { Artifact, Task, TaskArtifactUpdateEvent, TaskStatus } from '../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal, type TaskState } from '../../machines/protocol/states.ts'
import type { ArtifactContent, TaskFact } from '../../machines/task-events.ts'
import { type ResourceUsage, UNCOUNTED_BYTES } from '../access/shares.ts'
import { agentMessage } from '../authoring/words.ts'
import { currentTimestamp, type Clock } from '../ports/clock.ts'
import type { Ids } from '../ports/ids.ts'
import { ReleasingMap } from '../primitives/collections.ts'
import type { StoredTask, TaskEvent, TaskRow } from '../store/store.ts'
import type { Turn } from './commit-pipeline.ts'

/** An actor with its descendants, and their snapshots at the time of a text. */
export interface SnapshotIdentity {
  readonly actor: AnyActorRef
  readonly snapshot: unknown
  readonly below: readonly SnapshotIdentity[]
}

/** A task's actor as text. `seen`: the source of the text, if the text may be reused while that is the same. */
export interface TaskText {
  readonly text: string
  readonly bytes: number
  readonly seen: SnapshotIdentity | undefined
}

/** A live task: generation of its newest entry, state of its newest status, and its sizes. */
interface LedgerEntry {
  generation: number
  /** Generation of its newest event; 0 before its first. Since a restore it may be that of a later message. */
  newestEvent: number
  state: TaskState
  /** Of its newest status; empty before its first. */
  statusTime: string
  /** `messageId` of its open question; `undefined` if it has none, or if that has not been read since a restore. */
  question: string | undefined
  /** Bytes of its events and messages. */
  bytes: number
  /** Set when something exceeded its limit of bytes: then nothing fits any more. */
  full: A2AError | undefined
  /** Bytes in memory: of its messages, and of its snapshot. */
  messageBytes: number
  snapshotBytes: number
  /** Bytes of the journal of its work, as far as it was read or written here. */
  journalBytes: number
  /** Its newest text, if it was made here. */
  text: TaskText | undefined
  /** Metadata of the task itself, which its first event carries. */
  readonly metadata: Record<string, unknown> | undefined
}

/** The live tasks of one context. Turns the events that they emit into task events, with generation, time and ids. */
export class TaskLedger {
  readonly #contextId: string
  readonly #makers: { readonly clock: Clock; readonly ids: Ids }
  readonly #entries = new ReleasingMap<LedgerEntry>()
  /** Counts the tasks' bytes in memory. */
  readonly #usage: ResourceUsage | undefined
  #keptBytes = 0

  constructor(contextId: string, makers: { readonly clock: Clock; readonly ids: Ids }, share?: ResourceUsage) {
    this.#contextId = contextId
    this.#makers = makers
    this.#usage = share
  }

  /** Adds a new task, or a restored one with the values of its row. */
  open(
    taskId: string,
    {
      generation = 0,
      state = 'TASK_STATE_SUBMITTED',
      statusTime = '',
      bytes = 0,
      snapshotBytes = 0,
      metadata
    }: Partial<LedgerEntry> = {}
  ): void {
    this.#entries.set(taskId, {
      generation,
      newestEvent: generation,
      state,
      statusTime,
      question: undefined,
      bytes,
      full: undefined,
      messageBytes: 0,
      snapshotBytes,
      journalBytes: 0,
      text: undefined,
      metadata
    })
    this.#count(snapshotBytes)
  }

  has(taskId: string): boolean {
    return this.#entries.has(taskId)
  }

  /** Generation of a task's newest entry; 0 before its first, and for an unknown task. */
  generationOf(taskId: string): number {
    return this.#entries.get(taskId)?.generation ?? 0
  }

  /** Generation of a task's newest event, or, since a restore, of a later message; 0 before its first event. */
  newestEventOf(taskId: string): number {
    const entry = this.#entries.get(taskId)
    /* c8 ignore next -- only live tasks emit */
    if (!entry) return 0
    return entry.newestEvent
  }

  /**
   * Gives the next entry of a task its generation. Each entry has its own: the message that opens a task has 1, and its
   * first event, SUBMITTED, 2 (A2A 1.1 does not say whether that message counts).
   */
  nextGeneration(taskId: string): number {
    const entry = this.#entries.get(taskId)
    /* c8 ignore next -- only live tasks get entries */
    if (!entry) return 0
    entry.generation += 1
    return entry.generation
  }

  /** Bytes of a task's events and messages; 0 for an unknown task. */
  bytesOf(taskId: string): number {
    return this.#entries.get(taskId)?.bytes ?? 0
  }

  /** Bytes of everything that is stored of a task, with a snapshot of this size; 0 for an unknown task. */
  sizeOf(taskId: string, snapshotBytes?: number): number {
    const entry = this.#entries.get(taskId)
    /* c8 ignore next -- only live tasks are measured */
    if (!entry) return 0
    return entry.bytes + entry.journalBytes + (snapshotBytes ?? entry.snapshotBytes)
  }

  /** Whether a task may have this many more bytes. */
  fits(taskId: string, bytes: number, limit: number): boolean {
    const entry = this.#entries.get(taskId)
    return entry !== undefined && !entry.full && this.sizeOf(taskId) + bytes <= limit
  }

  /** Adds bytes to a task. Gives the sum. */
  addBytes(taskId: string, bytes: number): number {
    const entry = this.#entries.get(taskId)
    /* c8 ignore next -- a task emits nothing after its end */
    if (!entry) return 0
    return (entry.bytes += bytes)
  }

  /** Adds bytes to the journal of a task. */
  addJournalBytes(taskId: string, bytes: number): void {
    const entry = this.#entries.get(taskId)
    if (entry) entry.journalBytes += bytes
  }

  /** Sets the bytes of a task's journal to those that were read. */
  setJournalBytes(taskId: string, bytes: number): void {
    const entry = this.#entries.get(taskId)
    if (entry) entry.journalBytes = bytes
  }

  /** Counts a message that a task keeps in memory. */
  countMessage(taskId: string, bytes: number): void {
    const entry = this.#entries.get(taskId)
    /* c8 ignore next -- only live tasks get messages */
    if (!entry) return
    entry.messageBytes += bytes
    this.#count(bytes)
  }

  /** Like `countMessage`, for a message that was loaded again and may be counted already. */
  countMessageAtLeast(taskId: string, bytes: number): void {
    const more = bytes - (this.#entries.get(taskId)?.messageBytes ?? bytes)
    if (more > 0) this.countMessage(taskId, more)
  }

  /** Stops counting the bytes of the tasks that ended in a turn, which is published now. */
  releaseEnded({ freedBytes }: Turn): void {
    if (freedBytes > 0) this.#count(-freedBytes)
  }

  /** The error with which a task became full; `undefined` if it is not. */
  fullBy(taskId: string): A2AError | undefined {
    return this.#entries.get(taskId)?.full
  }

  /** Marks a task as full. Gives whether it was not before. */
  fill(taskId: string, error: A2AError): boolean {
    const entry = this.#entries.get(taskId)
    if (!entry || entry.full) return false
    entry.full = error
    return true
  }

  ids(): readonly string[] {
    return this.#entries.entries().map(([taskId]) => taskId)
  }

  /** Whether a task has been accepted, and its work was not started yet. */
  isSubmitted(taskId: string): boolean {
    return this.#entries.get(taskId)?.state === 'TASK_STATE_SUBMITTED'
  }

  /** Whether a task is interrupted. */
  isInterrupted(taskId: string): boolean {
    const entry = this.#entries.get(taskId)
    return entry !== undefined && isInterrupted(entry.state)
  }

  /** The `messageId` of a task's open question, if it has one. */
  questionOf(taskId: string): string | undefined {
    return this.#entries.get(taskId)?.question
  }

  /** Notes the open question of a task that was restored, as it was read since; ignored if the task has moved on. */
  noteQuestion(taskId: string, { task, generation }: StoredTask): void {
    const entry = this.#entries.get(taskId)
    if (entry?.generation === generation) entry.question = questionIn(task)
  }

  /** Makes a task event; `undefined` for a task that has ended. */
  stamp(taskId: string, fact: EmittedFact): TaskEvent | undefined {
    const entry = this.#entries.get(taskId)
    /* c8 ignore next -- a task emits nothing after its end */
    if (!entry) return undefined
    const isFirst = entry.newestEvent === 0
    const generation = this.nextGeneration(taskId)
    entry.newestEvent = generation
    const update =
      fact.type === 'artifact.produced' ? this.#artifact(taskId, fact) : this.#status(taskId, entry, fact, isFirst)
    return fact.ordinal === undefined
      ? { taskId, generation, update }
      : { taskId, generation, update, ordinal: fact.ordinal }
  }

  /** The task's newest text, if there is one. */
  textOf(taskId: string): TaskText | undefined {
    return this.#entries.get(taskId)?.text
  }

  /**
   * The task's row for the commit of a turn, with snapshot and next wake. A task that has ended has neither, and leaves
   * the ledger.
   */
  row(taskId: string, text: TaskText | undefined, wakeAtMs: number, turn: Turn): TaskRow | undefined {
    const entry = this.#entries.get(taskId)
    /* c8 ignore next -- only live tasks change */
    if (!entry) return undefined
    const { generation, state, bytes } = entry
    if (isTerminal(state) || text === undefined) {
      turn.freedBytes += entry.messageBytes + entry.snapshotBytes
      this.#entries.delete(taskId)
      return { taskId, generation, state, bytes }
    }
    entry.text = text
    const { text: snapshot, bytes: snapshotBytes } = text
    this.#count(snapshotBytes - entry.snapshotBytes)
    entry.snapshotBytes = snapshotBytes
    return wakeAtMs < Infinity
      ? { taskId, generation, state, bytes, snapshot, wakeAtMs }
      : { taskId, generation, state, bytes, snapshot }
  }

  #count(bytes: number): void {
    this.#keptBytes += bytes
    this.#usage?.set(this.#keptBytes > UNCOUNTED_BYTES ? this.#keptBytes : 0)
  }

  #artifact(
    taskId: string,
    { artifact, append, lastChunk }: Extract<TaskFact, { type: 'artifact.produced' }>
  ): TaskEvent['update'] {
    const identified = isIdentified(artifact)
      ? artifact
      : Object.assign({ artifactId: '' }, artifact, { artifactId: this.#makers.ids() })
    const contextId = this.#contextId
    const artifactUpdate: TaskArtifactUpdateEvent = append
      ? { taskId, contextId, artifact: identified, append }
      : { taskId, contextId, artifact: identified }
    if (lastChunk) artifactUpdate.lastChunk = true
    return { artifactUpdate }
  }

  #status(
    taskId: string,
    entry: LedgerEntry,
    fact: Extract<TaskFact, { type: 'status.changed' }>,
    isFirst: boolean
  ): TaskEvent['update'] {
    const { clock, ids } = this.#makers
    const contextId = this.#contextId
    entry.state = fact.state
    const message = fact.message && agentMessage(fact.message, { taskId, contextId }, ids)
    entry.question = isInterrupted(fact.state) ? message?.messageId : undefined
    const metadata = isFirst && entry.metadata ? { ...entry.metadata, ...fact.metadata } : fact.metadata
    const { state } = fact
    // The clock may have been set back, or be another node's.
    const now = currentTimestamp(clock)
    if (now > entry.statusTime) entry.statusTime = now
    const status: TaskStatus = message
      ? { state, message, timestamp: entry.statusTime }
      : { state, timestamp: entry.statusTime }
    return { statusUpdate: metadata ? { taskId, contextId, status, metadata } : { taskId, contextId, status } }
  }
}

/** The `messageId` of the open question of a task, if it has one. */
export function questionIn({ status: { state, message } }: Task): string | undefined {
  return isInterrupted(state) ? message?.messageId : undefined
}

function isIdentified(artifact: ArtifactContent): artifact is Artifact {
  return Boolean(artifact.artifactId)
}

/** A fact of a task that becomes an event. */
export type EmittedFact = Exclude<TaskFact, { type: 'restart.requested' }>

/**
 * The event of a task that is at its limit of events or bytes: only its end. A completion becomes a failure with
 * `reason`, because a result emits its artifacts and the completion together. Without free bytes, `reason` also
 * replaces the message of any other end.
 */
export function factAtEventLimit(fact: EmittedFact, reason: string, hasFreeBytes: boolean): EmittedFact | undefined {
  if (fact.type !== 'status.changed' || !isTerminal(fact.state)) return undefined
  const isCompleted = fact.state === 'TASK_STATE_COMPLETED'
  if (hasFreeBytes && !isCompleted) return fact
  return {
    type: 'status.changed',
    state: isCompleted ? 'TASK_STATE_FAILED' : fact.state,
    message: { parts: [{ text: reason }] }
  }
}
