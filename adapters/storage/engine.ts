import { fault } from '../../runtime/fault.ts'
import type { Due, Erasure } from '../../runtime/store.ts'
import type { CommitRows } from './commit-rows.ts'
import { CommitWriter } from './commit-writer.ts'
import { rollBack, type Database } from './driver.ts'
import { APPLICATION_ID } from './file-header.ts'
import { OpenFiles } from './open-files.ts'
import { Reads, type ReportDamage } from './reads.ts'
import { Removals } from './removals.ts'
import { reasonOf, StorageError, troubleOf } from './storage-error.ts'
import { tablesOf } from './tables.ts'
import { WebhookWriter, type WebhookChange } from './webhook-writer.ts'

/** After how many pages the log is written back, about: 16 MiB of it. */
const CHECKPOINT_PAGES = 4096

/** What a commit costs of the log beside its texts, in pages, about. */
const PAGES_A_COMMIT = 4

const PAGE_BYTES = 4096

/** Puts page 1 into the log, as it is. */
const WRITE_PAGE_1 = `PRAGMA application_id = ${APPLICATION_ID}`

/** What became of a commit: whether it won its race, or why it could not be written. */
export type Outcome = boolean | Error

/**
 * The engine of one file on one connection: commits of a group share a transaction and a sync. When the disk or the file
 * proves broken it stops: whatever it is asked then throws StorageError, for what a failed sync has lost nobody knows.
 */
export class Engine {
  readonly reads: Reads
  readonly #file: string
  readonly #database: Database
  readonly #writer: CommitWriter
  readonly #removals: Removals
  readonly #files: OpenFiles
  readonly #webhooks: WebhookWriter
  #pages = 0
  #isErased = false
  #isClosed = false
  #broken: StorageError | undefined

  constructor(database: Database, file: string, report: ReportDamage) {
    this.#database = database
    this.#file = file
    const tables = tablesOf(database)
    this.reads = new Reads(database, tables, report)
    this.#webhooks = new WebhookWriter(database, tables)
    this.#writer = new CommitWriter(database, tables, this.#webhooks)
    this.#removals = new Removals(database, tables)
    database.exec(WRITE_PAGE_1)
    fault('P18')
    this.#files = new OpenFiles(file)
    this.#files.markWithLog()
  }

  /** Why it has stopped, if it has. */
  get broken(): StorageError | undefined {
    return this.#broken
  }

  /** Writes commits in their order. One that cannot be written spoils none of the others. */
  commitAll(commits: readonly CommitRows[]): Outcome[] {
    for (const commit of commits) this.#pages += PAGES_A_COMMIT + commit.snapshot.length / PAGE_BYTES
    try {
      return this.#transaction(() => commits.map(commit => this.#writer.write(commit)))
    } catch (error) {
      if (this.#broken || troubleOf(error) === 'full' || commits.length === 1) return commits.map(() => error as Error)
      return commits.flatMap(commit => this.commitAll([commit]))
    }
  }

  sweep(due: Due, limit: number): number {
    return this.#transaction(() => this.#remove(() => this.#removals.sweep(due, limit)))
  }

  /** Erases, and has the log forget it too. */
  erase(whose: Erasure): boolean {
    const wasThere = this.#transaction(() => this.#remove(() => this.#removals.erase(whose)))
    this.#isErased ||= wasThere
    this.checkpoint()
    return wasThere
  }

  /** Changes webhooks outside of a commit. */
  changeWebhooks(change: WebhookChange): ReturnType<WebhookWriter['change']> {
    this.#pages += PAGES_A_COMMIT
    return this.#transaction(() => this.#webhooks.change(change))
  }

  /** Reads. */
  read<T>(read: (reads: Reads) => T): T {
    if (this.#broken) throw this.#broken
    try {
      return read(this.reads)
    } catch (error) {
      throw this.#noted(error)
    }
  }

  /** Writes the log back into the file if enough has come together. */
  tidy(): void {
    if (this.#pages >= CHECKPOINT_PAGES) this.checkpoint()
  }

  /** Writes the log back into the file; after an erasure also empties it. Without room on the disk, or while others read, it is left for later. */
  checkpoint(): void {
    if (this.#broken) return
    this.#pages = 0
    fault('P15')
    try {
      const done = this.#database.prepare(`PRAGMA wal_checkpoint(${this.#isErased ? 'TRUNCATE' : 'PASSIVE'})`).get()
      if (done?.busy === 0) this.#isErased = false
      this.#mark()
    } catch (error) {
      this.#noted(error)
    }
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#database.close()
    this.#files.close()
  }

  /** Marks the file, of which a checkpoint has written page 1, as one that is not whole without its log. */
  #mark(): void {
    this.#transaction(() => this.#database.exec(WRITE_PAGE_1))
    fault('P18')
    this.#files.markWithLog()
  }

  #remove<T>(remove: () => T): T {
    const removed = remove()
    this.#writer.forget()
    this.#pages += PAGES_A_COMMIT
    return removed
  }

  #transaction<T>(write: () => T): T {
    if (this.#broken) throw this.#broken
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      fault('P2')
      const written = write()
      this.#files.check()
      fault('P6')
      this.#database.exec('COMMIT')
      fault('P7')
      return written
    } catch (error) {
      this.#writer.forget()
      rollBack(this.#database)
      throw this.#noted(error)
    }
  }

  /** Stops the engine if an error says that the file or disk is broken. Gives what the caller gets. */
  #noted(error: unknown): unknown {
    if (error instanceof StorageError) {
      // SQLite writes a log that has lost its name back into a file that has not.
      this.#broken ??= error
      this.close()
    }
    if (troubleOf(error) !== 'broken') return error
    this.#broken ??= new StorageError(`${this.#file} cannot be used any more: ${reasonOf(error)}. What was committed before is kept; see to the disk, and start again.`, { cause: error })
    return this.#broken
  }
}
