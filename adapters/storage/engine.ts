import { killPoint } from '../../runtime/primitives/kill-points.ts'
import type { SweepBounds, Erasure } from '../../runtime/store/store.ts'
import { BUSY_MS, rollBack, type Database } from './driver.ts'
import { APPLICATION_ID } from './file/file-header.ts'
import { OpenFiles } from './file/open-files.ts'
import { Reads, type ReportDamage } from './read/reads.ts'
import { TaskReader } from './read/task-reader.ts'
import type { CommitRows } from './rows/commit-rows.ts'
import { tablesOf } from './rows/tables.ts'
import { reasonOf, StorageError, troubleOf } from './storage-error.ts'
import { CommitWriter } from './write/commit-writer.ts'
import { Removals } from './write/removals.ts'
import { WebhookWriter, type WebhookChange } from './write/webhook-writer.ts'

/** At how many frames, of a page each, the log is written back: 16 MiB. */
const LOG_FRAMES = 4096

/** How long a checkpoint waits for reads of other processes, so that the log can begin anew: a read takes less, a backup more. */
const READERS_MS = 100

/** How much text a transaction writes before the next one begins, so that the log can be written back in between. */
const PORTION_BYTES = 4 * 1024 * 1024

/** How many free pages are given back to the file system at once, before others have their turn: 4 MiB. */
const RECLAIMED_PAGES = 1024

/** How many free pages stay in the file for what comes: 1 MiB. */
const KEPT_PAGES = 256

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
  readonly #reader: TaskReader
  readonly #writer: CommitWriter
  readonly #removals: Removals
  readonly #files: OpenFiles
  readonly #webhooks: WebhookWriter
  /** At how many frames the log is written back next: more than usual while a reader keeps the log from beginning anew. */
  #checkpointAt = LOG_FRAMES
  /** Whether there may be free pages to give back, as after a process that ended before it had. */
  #mayShrink = true
  /** Whether some were given back since the last checkpoint. */
  #hasShrunk = false
  #isErased = false
  #isClosed = false
  #broken: StorageError | undefined

  constructor(database: Database, file: string, report: ReportDamage) {
    this.#database = database
    this.#file = file
    const tables = tablesOf(database)
    this.#reader = new TaskReader(database, tables)
    this.reads = new Reads(database, tables, this.#reader, report)
    this.#webhooks = new WebhookWriter(database, tables)
    this.#writer = new CommitWriter(database, tables, this.#webhooks)
    this.#removals = new Removals(database, tables)
    database.exec(WRITE_PAGE_1)
    killPoint('before log mark')
    this.#files = new OpenFiles(file)
    this.#files.markWithLog()
  }

  /** Why it has stopped, if it has. */
  get broken(): StorageError | undefined {
    return this.#broken
  }

  /** Writes commits in their order. One that cannot be written spoils none of the others. */
  commitAll(commits: readonly CommitRows[]): Outcome[] {
    const outcomes: Outcome[] = []
    let portion: CommitRows[] = []
    let bytes = 0
    for (const commit of commits) {
      portion.push(commit)
      bytes += bytesOf(commit)
      if (bytes < PORTION_BYTES && outcomes.length + portion.length < commits.length) continue
      outcomes.push(...this.#commitTogether(portion))
      this.#boundLog()
      portion = []
      bytes = 0
    }
    return outcomes
  }

  /** Removes what is due, at most `limit` of it and about {@link PORTION_BYTES} at once, and answers how much went: 0 once nothing is due. */
  sweep(due: SweepBounds, limit: number): number {
    return this.#transaction(() => this.#remove(() => this.#removals.sweep(due, limit, PORTION_BYTES)))
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

  /** Writes the log back into the file if it is long, and gives free pages back to the file system. Says whether there is more to do. */
  tidy(): boolean {
    this.#boundLog()
    return this.#reclaim()
  }

  /** Writes the log back into the file; after an erasure also empties it. Without room on the disk, or while others read, it is left for later. */
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
    while (this.#files.logReaches(this.#checkpointAt)) this.#checkpointAt += LOG_FRAMES
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#database.close()
    this.#files.close()
  }

  /** Writes the log back, and says whether it can begin anew. For that it waits so long for reads that are under way in other processes. */
  #writeBack(mode: 'TRUNCATE' | 'RESTART', waitMs: number): boolean {
    this.#database.exec(`PRAGMA busy_timeout = ${waitMs}`)
    try {
      return this.#database.prepare(`PRAGMA wal_checkpoint(${mode})`).get()?.busy === 0
    } finally {
      this.#database.exec(`PRAGMA busy_timeout = ${BUSY_MS}`)
    }
  }

  /** Marks the file, of which a checkpoint has written page 1, as one that is not whole without its log. */
  #mark(): void {
    this.#transaction(() => this.#database.exec(WRITE_PAGE_1))
    killPoint('before log mark')
    this.#files.markWithLog()
  }

  #commitTogether(commits: readonly CommitRows[]): Outcome[] {
    try {
      return this.#transaction(() => commits.map(commit => this.#writer.write(commit)))
    } catch (error) {
      if (this.#broken || troubleOf(error) === 'full' || commits.length === 1) return commits.map(() => error as Error)
      return commits.flatMap(commit => this.#commitTogether([commit]))
    }
  }

  #boundLog(): void {
    if (!this.#isClosed && this.#files.logReaches(this.#checkpointAt)) this.checkpoint()
  }

  /** The file becomes smaller when the log is written back. */
  #reclaim(): boolean {
    if (!this.#mayShrink || this.#broken) return false
    try {
      const free = this.#freePages()
      if (free > KEPT_PAGES) {
        this.#transaction(() => this.#database.exec(`PRAGMA incremental_vacuum(${Math.min(free - KEPT_PAGES, RECLAIMED_PAGES)})`))
        // Files that were made before do not shrink.
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

/** About how many bytes of text a commit writes. */
function bytesOf({ snapshot, tasks, log }: CommitRows): number {
  let bytes = snapshot.length
  for (const task of tasks) bytes += task.snapshot?.length ?? 0
  for (const { characters } of log) bytes += characters
  return bytes
}
