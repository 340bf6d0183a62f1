import { createHash } from 'node:crypto'
import type { TaskState } from '../../../machines/protocol/states.ts'
import type { MessageContent } from '../../../machines/task-events.ts'
import type { ActorHost } from '../../../runtime/commits/actor-host.ts'
import type { JournalRow } from '../../../runtime/store/store.ts'
import type { RemoteAsking } from './remote-events.ts'
import type { ToldParts } from './remote-view.ts'

/** An answer to be sent to the other agent. */
export interface Answer {
  /** Unique within the delegation: `turn.number`. */
  readonly name: string
  readonly content: MessageContent
  /** The status that it answers, as in `RemoteRecord.status`; absent if it was unknown. */
  readonly to?: string
}

/** The last question of the other agent, until it continues. */
export interface AskedQuestion {
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
  readonly question?: AskedQuestion | undefined
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
  readonly parts = new Map<string, ToldParts>()

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
    for (const [artifactId, told] of rowsBelow(`${place.key}/artifact/`, journal))
      keeper.parts.set(artifactId, told as ToldParts)
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
  changeParts(artifactId: string, told: ToldParts): void {
    this.parts.set(artifactId, told)
    keep(this.#place, `/artifact/${artifactId}`, told)
  }
}

/** The answers in a journal that may not have reached the other agent, oldest first. */
export function answersIn(journal: readonly JournalRow[], place: RecordPlace): Answer[] {
  return rowsBelow(`${place.key}/answer/`, journal).flatMap(([, value]) => (value === null ? [] : [value as Answer]))
}

/** Stores an answer until it is delivered. */
export function keepAnswer(place: RecordPlace, answer: Answer): void {
  keep(place, `/answer/${answer.name}`, answer)
}

/** Removes an answer that was delivered or refused. */
export function dropAnswer(place: RecordPlace, { name }: Answer): void {
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
