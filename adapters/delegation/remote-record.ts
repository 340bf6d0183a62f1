import { createHash } from 'node:crypto'
import type { Artifact, Message, Part, StreamResponse, Task, TaskStatus } from '../../machines/protocol/objects.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import type { MessageContent } from '../../machines/task-events.ts'
import type { JournalRow } from '../../runtime/store/store.ts'
import type { ActorHost } from '../../runtime/work-port.ts'
import { taskReferenceOf } from '../client/requests.ts'

/** An answer to be sent to the other agent. */
export interface PendingAnswer {
  /** Unique within the delegation: `turn.number`. */
  readonly name: string
  readonly content: MessageContent
  /** The status that it answers, as in `RemoteRecord.status`; absent if it was unknown. */
  readonly to?: string
}

/** The last question of the other agent, until it continues. */
interface LastQuestion {
  /** Counts the questions of a delegation, from 1. */
  readonly number: number
  readonly event: RemoteAsking
  readonly isAnswered: boolean
}

/** The progress of a delegation, from which it is resumed exactly. */
export interface RemoteRecord {
  readonly contextId: string
  readonly taskId?: string
  /** The last forwarded generation, if the agent sends generations. */
  readonly generation?: number
  readonly state?: TaskState
  /** The digest of the last forwarded status. */
  readonly status?: string
  readonly questions: number
  readonly question?: LastQuestion | undefined
  /** The deadline, in milliseconds since 1970. */
  readonly untilMs?: number
}

/** The place of a delegation in a task's journal. */
export interface RecordPlace {
  readonly host: ActorHost
  readonly taskId: string
  readonly key: string
}

/** The journal entries of a delegation. Every change is committed with its turn. */
export class RecordKeeper {
  readonly #place: RecordPlace
  #now: RemoteRecord
  /** The forwarded parts of each artifact. */
  readonly parts = new Map<string, ForwardedParts>()

  private constructor(place: RecordPlace, now: RemoteRecord) {
    this.#place = place
    this.#now = now
  }

  /** Creates a record. */
  static begin(place: RecordPlace, record: RemoteRecord): RecordKeeper {
    const keeper = new RecordKeeper(place, record)
    keeper.change({})
    return keeper
  }

  /** Reads the record from a journal; `undefined` for a new delegation. */
  static in(journal: readonly JournalRow[], place: RecordPlace): RecordKeeper | undefined {
    const row = journal.find(({ key }) => key === place.key)
    if (!row) return undefined
    const keeper = new RecordKeeper(place, row.value as RemoteRecord)
    for (const [artifactId, parts] of rowsBelow(`${place.key}/artifact/`, journal))
      keeper.parts.set(artifactId, parts as ForwardedParts)
    return keeper
  }

  get now(): RemoteRecord {
    return this.#now
  }

  change(change: Partial<RemoteRecord>): void {
    this.#now = { ...this.#now, ...change }
    keep(this.#place, '', this.#now)
  }

  /** Records the forwarded parts of an artifact. */
  changeParts(artifactId: string, parts: ForwardedParts): void {
    this.parts.set(artifactId, parts)
    keep(this.#place, `/artifact/${artifactId}`, parts)
  }
}

/** The answers in a journal that may not have reached the other agent, oldest first. */
export function pendingAnswersIn(journal: readonly JournalRow[], place: RecordPlace): PendingAnswer[] {
  return rowsBelow(`${place.key}/answer/`, journal).flatMap(([, value]) =>
    value === null ? [] : [value as PendingAnswer]
  )
}

/** Stores an answer until it is delivered. */
export function keepAnswer(place: RecordPlace, answer: PendingAnswer): void {
  keep(place, `/answer/${answer.name}`, answer)
}

/** Removes an answer that was delivered or refused. */
export function dropAnswer(place: RecordPlace, { name }: PendingAnswer): void {
  keep(place, `/answer/${name}`, null)
}

function keep({ host, taskId, key: prefix }: RecordPlace, key: string, value: unknown): void {
  host.keep({ taskId, key: `${prefix}${key}`, value })
}

function rowsBelow(prefix: string, journal: readonly JournalRow[]): [string, unknown][] {
  return journal.flatMap(({ key, value }) => (key.startsWith(prefix) ? [[key.slice(prefix.length), value]] : []))
}

/** A digest of JSON values: deterministic, and an id that cannot be guessed from some of them. */
export function digestOf(...values: readonly unknown[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url').slice(0, 24)
}

/** The forwarded parts of an artifact. */
interface ForwardedParts {
  readonly count: number
  /** The digest of all of them, in order. */
  readonly digest: string
}

/** News to forward: a status, or an artifact or a chunk of one. */
export type News =
  | { readonly status: TaskStatus }
  | { readonly artifact: Artifact; readonly append: boolean; readonly lastChunk: boolean }

/** An event of a task. */
type TaskResponse = Exclude<StreamResponse, { message: unknown }>

const NOTHING: ForwardedParts = { count: 0, digest: '' }

/**
 * The news in an event of the agent's task, which are recorded as forwarded. An event is news unless its generation is
 * known. In a snapshot of the task, a different status is news, and so are the parts after those that were forwarded.
 */
export function newsIn(event: TaskResponse, record: RecordKeeper): News[] {
  const { generation } = taskReferenceOf(event)
  const { generation: known = 0 } = record.now
  if (generation !== undefined && generation <= known) return []
  const news = 'task' in event ? newsOfTask(event.task, record) : [newsOf(event)]
  for (const one of news) {
    if ('status' in one) record.change({ status: digestOf(one.status) })
    else noteParts(one.artifact, one.append, record)
  }
  if (generation !== undefined) record.change({ generation })
  return news
}

function newsOf(event: Exclude<TaskResponse, { task: unknown }>): News {
  if ('statusUpdate' in event) return { status: event.statusUpdate.status }
  const { artifact, append = false, lastChunk = false } = event.artifactUpdate
  return { artifact, append, lastChunk }
}

function newsOfTask({ artifacts = [], status }: Task, record: RecordKeeper): News[] {
  const news: News[] = artifacts.flatMap(artifact => newsOfArtifact(artifact, record))
  return digestOf(status) === record.now.status ? news : [...news, { status }]
}

function newsOfArtifact(artifact: Artifact, { parts: forwarded }: RecordKeeper): News[] {
  const { parts } = artifact
  const { count, digest } = forwarded.get(artifact.artifactId) ?? NOTHING
  if (count === 0 || following('', parts.slice(0, count)) !== digest)
    return [{ artifact, append: false, lastChunk: false }]
  return parts.length === count
    ? []
    : [{ artifact: { ...artifact, parts: parts.slice(count) }, append: true, lastChunk: false }]
}

function noteParts({ artifactId, parts }: Artifact, append: boolean, record: RecordKeeper): void {
  const { count, digest } = append ? (record.parts.get(artifactId) ?? NOTHING) : NOTHING
  record.changeParts(artifactId, { count: count + parts.length, digest: following(digest, parts) })
}

/** Extends a digest by more parts. */
function following(digest: string, parts: readonly Part[]): string {
  return parts.reduce((before, part) => digestOf(before, part), digest)
}

/** An event that needs an answer. */
export type RemoteAsking = Extract<RemoteEvent, RemoteQuestion>

/**
 * The events of a delegated task for the chart that started it. Declare them among the chart's events: `setupWork({
 * types: { events: {} as RemoteEvent }, actors: { hotel: remoteAgent(…) } })`. `onDone` and `onError` report its end.
 */
export type RemoteEvent =
  /** The agent has accepted the task, works, or works again after a question. */
  | (OfRemoteTask & {
      readonly type: 'remote.status'
      readonly state: 'TASK_STATE_SUBMITTED' | 'TASK_STATE_WORKING'
      readonly message: Message | undefined
    })
  /** The agent produced an artifact, or with `append` a chunk of one. */
  | (OfRemoteTask & {
      readonly type: 'remote.artifact'
      readonly artifact: Artifact
      readonly append: boolean
      readonly lastChunk: boolean
    })
  /** The agent has a question, and waits for the event {@link RemoteAnswer}. */
  | (OfRemoteTask & RemoteQuestion & { readonly type: 'remote.input-required' })
  /** The agent waits for an out-of-band authorization. It may also accept a {@link RemoteAnswer}. */
  | (OfRemoteTask & RemoteQuestion & { readonly type: 'remote.auth-required' })

/** A question of another agent. */
export interface RemoteQuestion {
  readonly message: Message | undefined
  /** The reason why the agent refused the previous answer to this question. */
  readonly refusal: string | undefined
}

/** The task and the actor of an event. */
interface OfRemoteTask {
  /** The id of the actor: `id` of the `invoke`, or of `spawnChild`. */
  readonly from: string
  readonly taskId: string
}
