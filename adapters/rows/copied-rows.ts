import type { Cell } from './damage.ts'

/**
 * The tables of a store, in the order in which they are copied. A row has the cells of any engine: names in their
 * stored form, and a key as the whole text in `name`. Numbers of scopes, shards and hashes of keys are the engine's
 * own.
 */
export const COPIED_TABLES = [
  'contexts',
  'tasks',
  'snapshots',
  'events',
  'messages',
  'journal',
  'sends',
  'webhooks',
  'transitions'
] as const

export type CopiedTable = (typeof COPIED_TABLES)[number]

/** A row that is copied. A damaged row stays damaged in the copy. */
export interface CopiedRow {
  readonly cells: Readonly<Record<string, Cell>>
  readonly isDamaged: boolean
}

/** A store that nobody else uses while it is copied. */
export interface CopySource {
  /** All rows of a table, in pages of up to {@link PAGE_ROWS} rows. */
  pages(table: CopiedTable): AsyncIterable<readonly CopiedRow[]> | Iterable<readonly CopiedRow[]>
  close(): Promise<void>
}

/** An empty store that takes a copy. No server can use it before `finish`. */
export interface CopyTarget {
  add(table: CopiedTable, rows: readonly CopiedRow[]): Promise<void>
  /** Makes the copy durable, and opens it for servers. */
  finish(): Promise<void>
  close(): Promise<void>
}

/** The maximum number of rows in a page. */
export const PAGE_ROWS = 1000

/** A page ends with the row that reaches this length of text. */
export const PAGE_CHARACTERS = 1024 * 1024

/** The number of rows of a table after which `report` gets the progress of the copy. */
const REPORTED_ROWS = 100_000

/**
 * Copies everything. `report` gets the number of rows of a table so far, once in many rows. Rejects if the signal
 * aborts.
 */
export async function copyRows(
  source: CopySource,
  target: CopyTarget,
  report: (table: CopiedTable, rows: number) => void,
  signal: AbortSignal
): Promise<{ tasks: number; damaged: number }> {
  const counts = { tasks: 0, damaged: 0 }
  for (const table of COPIED_TABLES) {
    let copied = 0
    for await (const rows of source.pages(table)) {
      signal.throwIfAborted()
      await target.add(table, rows)
      copied += rows.length
      counts.damaged += rows.filter(({ isDamaged }) => isDamaged).length
      if (copied % REPORTED_ROWS < rows.length && copied >= REPORTED_ROWS) report(table, copied)
    }
    if (table === 'tasks') counts.tasks = copied
  }
  await target.finish()
  return counts
}
