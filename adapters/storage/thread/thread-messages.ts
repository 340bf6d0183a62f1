import type { StoreChange, Changed, CommitRows, LogRow, StoreOutcome, TaskColumns } from '../../rows/commit-rows.ts'
import type { DriverName } from '../driver.ts'
import type { SqliteReadName } from '../read/reads.ts'

export interface ReadCall {
  readonly name: SqliteReadName
  readonly args: readonly unknown[]
}

/** A read for the thread, with the number of its answer and its user. */
export interface NumberedRead extends ReadCall {
  readonly number: number
  readonly user: string
}

/** Commits as one group, then at most one change, and the length of their text. */
export interface Writes {
  readonly commits: readonly PackedCommit[]
  readonly change: StoreChange | undefined
  readonly characters: number
}

export type ThreadBatch = { readonly reads: readonly NumberedRead[] } | Writes

/** The outcome of the read with a number. */
export type NumberedOutcome = readonly [number: number, outcome: StoreOutcome<string | undefined>]

/** A control message to the thread: answers to a user's reads were received, or close. */
export type ControlMessage = { readonly received: string; readonly weight: number } | 'close'

/**
 * A message from the thread: outcomes of one user's reads by number, outcomes of a batch of writes, damaged data, or a
 * final failure.
 */
export type ThreadReport =
  | { readonly reads: readonly NumberedOutcome[]; readonly user: string; readonly weight: number }
  | { readonly commits: StoreOutcome<boolean>[]; readonly change: StoreOutcome<Changed> | undefined }
  | { readonly damage: string }
  | { readonly stopped: string }

/** The start parameters of the thread. */
export interface ThreadData {
  readonly file: string
  readonly driver: DriverName | undefined
}

type PackedTask = readonly [
  taskId: string,
  state: string,
  generation: number,
  snapshot: string | null,
  wakeAtMs: number | null
]
type PackedEntry = readonly [
  body: string,
  large: LogRow['large'] | null,
  characters: number,
  taskId: string | null,
  isMessage: boolean,
  generation: number,
  state: string | null,
  time: string,
  isTerm: boolean
]

/**
 * A commit as lists. To send its objects to another thread takes three times as long, since each carries the names of
 * its members.
 */
type PackedCommit = readonly [
  tenant: string,
  principal: string,
  contextId: string,
  expected: number,
  atMs: number,
  snapshot: string,
  tasks: readonly PackedTask[],
  log: readonly PackedEntry[],
  journal: CommitRows['journal'],
  sends: CommitRows['sends'],
  webhooks: CommitRows['webhooks']
]

/** Packs a commit. */
export function packCommit({
  tenant,
  principal,
  contextId,
  expected,
  atMs,
  snapshot,
  tasks,
  log,
  journal,
  sends,
  webhooks
}: CommitRows): PackedCommit {
  return [
    tenant,
    principal,
    contextId,
    expected,
    atMs,
    snapshot,
    tasks.map(packedTask),
    log.map(packedEntry),
    journal,
    sends,
    webhooks
  ]
}

/** The commit that was packed. */
export function unpackCommit([
  tenant,
  principal,
  contextId,
  expected,
  atMs,
  snapshot,
  tasks,
  log,
  journal,
  sends,
  webhooks
]: PackedCommit): CommitRows {
  return {
    tenant,
    principal,
    contextId,
    expected,
    atMs,
    snapshot,
    tasks: tasks.map(unpackedTask),
    log: log.map(unpackedEntry),
    journal,
    sends,
    webhooks
  }
}

function packedTask({ taskId, state, generation, snapshot, wakeAtMs }: TaskColumns): PackedTask {
  return [taskId, state, generation, snapshot, wakeAtMs]
}

function unpackedTask([taskId, state, generation, snapshot, wakeAtMs]: PackedTask): TaskColumns {
  return { taskId, state, generation, snapshot, wakeAtMs }
}

function packedEntry({
  body,
  large,
  characters,
  taskId,
  isMessage,
  generation,
  state,
  time,
  isTerm
}: LogRow): PackedEntry {
  // Lists with `undefined` are slower to send.
  return [body, large ?? null, characters, taskId ?? null, isMessage, generation, state ?? null, time, isTerm]
}

function unpackedEntry([
  body,
  large,
  characters,
  taskId,
  isMessage,
  generation,
  state,
  time,
  isTerm
]: PackedEntry): LogRow {
  return {
    body,
    large: large ?? undefined,
    characters,
    taskId: taskId ?? undefined,
    isMessage,
    generation,
    state: state ?? undefined,
    time,
    isTerm
  }
}
