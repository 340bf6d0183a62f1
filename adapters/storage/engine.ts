import { killPoint } from '../../runtime/primitives/kill-points.ts'
import type { SweepBounds, Erasure } from '../../runtime/store/store.ts'
import type { CommitRows, CountChange, WebhookChange } from '../rows/commit-rows.ts'
import { StorageError } from '../rows/damage.ts'
import { BUSY_MS, type Database, sqliteReasonOf, rollBack, classifySqliteError } from './driver.ts'
import { APPLICATION_ID } from './file/file-header.ts'
import { OpenFiles } from './file/open-file.ts'
import { SqliteReads, type ReportSqliteDamage } from './read/reads.ts'
import { TaskReader } from './read/task-reader.ts'
import { tablesOf } from './tables.ts'
import { CommitWriter, TransitionWriter } from './write/commit-writer.ts'
import { Removals } from './write/removals.ts'
import { WebhookWriter } from './write/webhook-writer.ts'

/**
 * The length of the log, in frames of one page, at which it is written back: 4 MiB. That takes 1 to 5 ms, in which
 * nothing is read or committed.
 */
const LOG_FRAMES = 1024

/**
 * By how many frames the log grows before the next attempt if a reader prevents it from restarting: 16 MiB, since an
 * attempt waits for readers.
 */
const ATTEMPT_FRAMES = 4096

/** How long a checkpoint waits for readers in other processes. A read takes less, a backup more. */
const READERS_MS = 100

/** The text that a sweep removes in one transaction, so that the log can be written back in between. */
const SWEPT_BYTES = 4 * 1024 * 1024

/** The number of free pages that are released at once: 4 MiB. */
const RECLAIMED_PAGES = 1024

/** The number of free pages that stay in the file for reuse: 1 MiB. */
const KEPT_PAGES = 256

/** Writes page 1 to the log, unchanged. */
const WRITE_PAGE_1 = `PRAGMA application_id = ${APPLICATION_ID}`

/** The result of a commit: whether it won its race, or its error. */
export type CommitOutcome = boolean | Error

/**
 * The engine of one file on one connection. Commits of a group share a transaction and a sync. It stops if the disk or
 * the file is broken, since the effect of a failed sync is unknown: every later call throws StorageError.
 */
export class Engine {
  readonly reads: SqliteReads
  readonly #file: string
  readonly #database: Database
  readonly #reader: TaskReader
  readonly #writer: CommitWriter
  readonly #removals: Removals
  readonly #files: OpenFiles
  readonly #webhooks: WebhookWriter
  readonly #transitions: TransitionWriter
  /** The length of the log at the next checkpoint. It grows while a reader prevents the log from restarting. */
  #checkpointAt = LOG_FRAMES
  /** Whether there may be free pages, for example after a process that ended before releasing them. */
  #mayShrink = true
  /** Whether pages were released since the last checkpoint. */
  #hasShrunk = false
  #isErased = false
  #isClosed = false
  #broken: StorageError | undefined

  constructor(database: Database, file: string, report: ReportSqliteDamage) {
    this.#database = database
    this.#file = file
    const tables = tablesOf(database)
    this.#reader = new TaskReader(database, tables)
    this.reads = new SqliteReads(database, tables, this.#reader, report)
    this.#webhooks = new WebhookWriter(database, tables)
    this.#writer = new CommitWriter(database, tables, this.#webhooks)
    this.#removals = new Removals(database, tables)
    this.#transitions = new TransitionWriter(database, tables)
    database.exec(WRITE_PAGE_1)
    killPoint('before log mark')
    this.#files = new OpenFiles(file)
    this.#files.markWithLog()
  }

  /** Why it has stopped, if it has. */
  get broken(): StorageError | undefined {
    return this.#broken
  }

  /** Writes commits in order, in one transaction. A failed one does not affect the others. */
  commitAll(commits: readonly CommitRows[]): CommitOutcome[] {
    if (commits.length === 0) return []
    try {
      return this.#transaction(() => {
        const outcomes = commits.map(commit => this.#writer.write(commit))
        this.#writer.flush()
        return outcomes
      })
    } catch (error) {
      if (this.#broken || classifySqliteError(error) === 'full' || commits.length === 1)
        return commits.map(() => error as Error)
      return commits.flatMap(commit => this.commitAll([commit]))
    }
  }

  /**
   * Removes expired rows: at most `limit`, and about {@link SWEPT_BYTES} at once. Returns their number, 0 when done.
   */
  sweep(due: SweepBounds, limit: number): number {
    return this.#transaction(() => this.#remove(() => this.#removals.sweep(due, limit, SWEPT_BYTES)))
  }

  /** Erases rows, also from the log. */
  erase(whose: Erasure): boolean {
    const wasThere = this.#transaction(() => this.#remove(() => this.#removals.erase(whose)))
    this.#isErased ||= wasThere
    this.checkpoint()
    return wasThere
  }

  /** Changes webhooks outside of a commit. */
  changeWebhooks(change: WebhookChange): ReturnType<WebhookWriter['change']> {
    return this.#transaction(() => this.#webhooks.change(change))
  }

  /** Adds counts of transitions. */
  countTransitions(change: CountChange): true {
    return this.#transaction(() => this.#transitions.add(change))
  }

  read<T>(read: (reads: SqliteReads) => T): T {
    if (this.#broken) throw this.#broken
    try {
      return read(this.reads)
    } catch (error) {
      throw this.#noted(error)
    }
  }

  /** Writes a long log back into the file. */
  boundLog(): void {
    if (!this.#isClosed && this.#files.logReaches(this.#checkpointAt)) this.checkpoint()
  }

  /** Writes a long log back into the file, and releases free pages. Returns whether there is more to do. */
  tidy(): boolean {
    this.boundLog()
    return this.#reclaim()
  }

  /**
   * Writes the log back into the file; after an erasure also empties it. Does nothing without disk space, or while
   * others read.
   */
  checkpoint(): void {
    if (this.#broken) return
    killPoint('before checkpoint')
    try {
      const isDone = this.#isErased ? this.#writeBack('TRUNCATE', BUSY_MS) : this.#writeBack('RESTART', READERS_MS)
      if (isDone) this.#isErased = false
      this.#mark()
    } catch (error) {
      this.#noted(error)
    }
    this.#checkpointAt = LOG_FRAMES
    while (this.#files.logReaches(this.#checkpointAt)) this.#checkpointAt += ATTEMPT_FRAMES
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#database.close()
    this.#files.close()
  }

  /** Writes the log back. Returns whether it can restart. For that, it waits for readers in other processes. */
  #writeBack(mode: 'TRUNCATE' | 'RESTART', waitMs: number): boolean {
    this.#database.exec(`PRAGMA busy_timeout = ${waitMs}`)
    try {
      return this.#database.prepare(`PRAGMA wal_checkpoint(${mode})`).get()?.busy === 0
    } finally {
      this.#database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
    }
  }

  /** Marks the file, whose page 1 a checkpoint has written, as incomplete without its log. */
  #mark(): void {
    this.#transaction(() => this.#database.exec(WRITE_PAGE_1))
    killPoint('before log mark')
    this.#files.markWithLog()
  }

  /** Releases free pages. The file shrinks at the next checkpoint. */
  #reclaim(): boolean {
    if (!this.#mayShrink || this.#broken) return false
    try {
      const free = this.#freePages()
      if (free > KEPT_PAGES) {
        this.#transaction(() =>
          this.#database.exec(`PRAGMA incremental_vacuum(${Math.min(free - KEPT_PAGES, RECLAIMED_PAGES)})`)
        )
        // Files of older versions do not shrink.
        this.#hasShrunk = this.#freePages() < free
        if (this.#hasShrunk) return true
      } else if (this.#hasShrunk) this.checkpoint()
    } catch (error) {
      this.#noted(error)
    }
    this.#mayShrink = false
    this.#hasShrunk = false
    return false
  }

  #freePages(): number {
    return Number(this.#database.prepare('PRAGMA freelist_count').get()?.freelist_count)
  }

  #remove<T>(remove: () => T): T {
    const removed = remove()
    this.#writer.forget()
    this.#reader.forget()
    this.#mayShrink = true
    return removed
  }

  #transaction<T>(write: () => T): T {
    if (this.#broken) throw this.#broken
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      killPoint('transaction open')
      const written = write()
      this.#files.check()
      killPoint('before sync')
      this.#database.exec('COMMIT')
      killPoint('synced')
      return written
    } catch (error) {
      this.#writer.forget()
      rollBack(this.#database)
      throw this.#noted(error)
    }
  }

  /** Stops the engine if an error shows that the file or disk is broken. Returns the error for the caller. */
  #noted(error: unknown): unknown {
    if (error instanceof StorageError) {
      // SQLite would write a renamed log back into a file that is still in place.
      this.#broken ??= error
      this.close()
    }
    if (classifySqliteError(error) !== 'broken') return error
    this.#broken ??= new StorageError(
      `${this.#file} can no longer be used: ${sqliteReasonOf(error)}. Earlier commits are stored. Check the disk, and start again.`,
      { cause: error }
    )
    return this.#broken
  }
}
