import type { CommitRows, LogRow, TaskRows } from '../../rows/commit-rows.ts'

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
  generation: number,
  state: string | null,
  time: string,
  isTerm: boolean
]

/** A commit as lists. To send its objects to another thread takes three times as long, since each carries the names of its members. */
export type PackedCommit = readonly [
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
export function packed({
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
export function unpacked([
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

function packedTask({ taskId, state, generation, snapshot, wakeAtMs }: TaskRows): PackedTask {
  return [taskId, state, generation, snapshot, wakeAtMs]
}

function unpackedTask([taskId, state, generation, snapshot, wakeAtMs]: PackedTask): TaskRows {
  return { taskId, state, generation, snapshot, wakeAtMs }
}

function packedEntry({ body, large, characters, taskId, generation, state, time, isTerm }: LogRow): PackedEntry {
  // Lists with `undefined` are slower to send.
  return [body, large ?? null, characters, taskId ?? null, generation, state ?? null, time, isTerm]
}

function unpackedEntry([body, large, characters, taskId, generation, state, time, isTerm]: PackedEntry): LogRow {
  return {
    body,
    large: large ?? undefined,
    characters,
    taskId: taskId ?? undefined,
    generation,
    state: state ?? undefined,
    time,
    isTerm
  }
}
