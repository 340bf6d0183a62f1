import type { TaskState } from '../../../machines/protocol/states.ts'
import type { MessageContent } from '../../../machines/task-events.ts'
import type { ActorHost } from '../../../runtime/commits/actor-host.ts'
import type { JournalRow } from '../../../runtime/store/store.ts'
import type { RemoteAsking } from './remote-events.ts'
import type { ToldParts } from './remote-view.ts'

/** An answer on its way to the other agent. */
export interface Answer {
  /** Tells the answers of a delegation apart: `turn.number`. */
  readonly name: string
  readonly content: MessageContent
  /** The status that it answers, as `RemoteRecord.status` has it; missing if that was not known yet. */
  readonly to?: string
}

/** The last question of the other agent, until it goes on. */
export interface AskedQuestion {
  /** Counts the questions of a delegation, from 1. */
  readonly number: number
  readonly event: RemoteAsking
  readonly isAnswered: boolean
}

/** How far a delegation has come: what it needs to go on exactly there after a restart. */
export interface RemoteRecord {
  readonly contextId: string
  readonly taskId?: string
  /** The last generation that was passed on, of an agent that tells them. */
  readonly generation?: number
  readonly state?: TaskState
  /** The digest of the last status that was passed on. */
  readonly status?: string
  readonly questions: number
  readonly question?: AskedQuestion | undefined
  /** When the task is canceled, in milliseconds since 1970. */
  readonly untilMs?: number
}

/** Where the journal of a task keeps a delegation. */
export interface RecordPlace {
  readonly host: ActorHost
  readonly taskId: string
  readonly key: string
}

/** What the journal of a task has of a delegation. Every change is written with the turn in which it is made. */
export class RecordKeeper {
  readonly #place: RecordPlace
  #now: RemoteRecord
  /** What was passed on of each artifact. */
  readonly parts = new Map<string, ToldParts>()

  private constructor(place: RecordPlace, now: RemoteRecord) {
    this.#place = place
    this.#now = now
  }

  /** Begins a record. */
  static begin(place: RecordPlace, record: RemoteRecord): RecordKeeper {
    const keeper = new RecordKeeper(place, record)
    keeper.change({})
    return keeper
  }

  /** The record in a journal; `undefined` if the delegation has not begun. */
  static in(journal: readonly JournalRow[], place: RecordPlace): RecordKeeper | undefined {
    const row = journal.find(({ key }) => key === place.key)
    if (!row) return undefined
    const keeper = new RecordKeeper(place, row.value as RemoteRecord)
    for (const [artifactId, told] of rowsBelow(`${place.key}/artifact/`, journal)) keeper.parts.set(artifactId, told as ToldParts)
    return keeper
  }

  get now(): RemoteRecord {
    return this.#now
  }

  change(change: Partial<RemoteRecord>): void {
    this.#now = { ...this.#now, ...change }
    keep(this.#place, '', this.#now)
  }

  /** Notes which parts of an artifact have been passed on. */
  changeParts(artifactId: string, told: ToldParts): void {
    this.parts.set(artifactId, told)
    keep(this.#place, `/artifact/${artifactId}`, told)
  }
}

/** The answers of a delegation in a journal that may not have reached the other agent, oldest first. */
export function answersIn(journal: readonly JournalRow[], place: RecordPlace): Answer[] {
  return rowsBelow(`${place.key}/answer/`, journal).flatMap(([, value]) => (value === null ? [] : [value as Answer]))
}

/** Keeps an answer until it has reached the other agent. */
export function keepAnswer(place: RecordPlace, answer: Answer): void {
  keep(place, `/answer/${answer.name}`, answer)
}

/** Notes that an answer has reached the other agent, or is refused. */
export function dropAnswer(place: RecordPlace, { name }: Answer): void {
  keep(place, `/answer/${name}`, null)
}

function keep({ host, taskId, key: prefix }: RecordPlace, key: string, value: unknown): void {
  host.keep({ taskId, key: `${prefix}${key}`, value })
}

function rowsBelow(prefix: string, journal: readonly JournalRow[]): [string, unknown][] {
  return journal.flatMap(({ key, value }) => (key.startsWith(prefix) ? [[key.slice(prefix.length), value]] : []))
}
