import { Worker } from 'node:worker_threads'
import type { CommitRows } from '../rows/commit-rows.ts'
import { StorageError } from '../storage-error.ts'
import type { Batch, Change, Changed, NumberedRead, ReadCall, ThreadData, Told, Word } from './thread-messages.ts'
import { CHARACTERS_A_BATCH, rejectBatch, settle, WriteQueue, type Waiting, type WriteBatch } from './write-queue.ts'

/**
 * How many batches of writes the thread has at once: one to work on and one to go on with. Whatever comes meanwhile makes
 * the next, so the more there is to do, the more commits share a sync.
 */
const BATCHES_AHEAD = 2

/** What the link tells whoever opened it. */
export interface LinkListener {
  damaged(message: string): void
  /** Nothing can be written or read any more. */
  stopped(error: StorageError): void
}

/**
 * The way to the thread that has the file. What is asked in one turn of the event loop goes there together; reads go at
 * once, and the thread takes those of each user in turn. Each promise settles when the thread has answered.
 */
export class ThreadLink {
  readonly #worker: Worker
  readonly #listener: LinkListener
  readonly #ended: Promise<void>
  readonly #writes = new WriteQueue()
  #calls: NumberedRead[] = []
  #lastRead = 0
  /** Who waits for the thread: for reads by their numbers, for writes the oldest first. */
  readonly #readers = new Map<number, Waiting<string | undefined>>()
  readonly #sentWrites: WriteBatch[] = []
  #isScheduled = false
  #end: Error | undefined

  constructor(data: ThreadData, listener: LinkListener) {
    this.#listener = listener
    // Preloads of the command line, such as tracers and loaders, are for the process's own code; those of NODE_OPTIONS come along.
    this.#worker = new Worker(new URL('./store-thread.js', import.meta.url), { workerData: data, execArgv: [] })
    this.#worker.unref()
    this.#worker.on('message', (told: Told) => this.#hear(told))
    this.#worker.on('error', error => this.#stop(`${data.file} cannot be used any more: ${error.message}`))
    this.#ended = new Promise(resolve => this.#worker.once('exit', () => resolve()))
  }

  commit(rows: CommitRows): Promise<boolean> {
    return this.#asked(waiting => this.#writes.addCommit(rows, waiting))
  }

  change(change: Change): Promise<Changed> {
    return this.#asked(waiting => this.#writes.addChange(change, waiting))
  }

  /** Answers with JSON. */
  read({ name, args }: ReadCall, user: string): Promise<string | undefined> {
    return this.#asked(waiting => {
      this.#lastRead += 1
      this.#calls.push({ name, args, user, number: this.#lastRead })
      this.#readers.set(this.#lastRead, waiting)
    })
  }

  /** Has the thread finish what it was asked, and end. */
  async close(): Promise<void> {
    if (!this.#end) {
      this.#end = new TypeError('The store is closed.')
      this.#flush(Infinity, Infinity)
      this.#worker.ref()
      this.#say('close')
    }
    await this.#ended
  }

  #asked<T>(ask: (waiting: Waiting<T>) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#end) throw this.#end
      ask({ resolve, reject })
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#flush())
  }

  /** The characters of the writes that the thread has. */
  get #charactersSent(): number {
    return this.#sentWrites.reduce((sum, { characters }) => sum + characters, 0)
  }

  /** Sends what has come together, of the writes at most so many batches that the thread has enough to do. */
  #flush(ahead = BATCHES_AHEAD, characters = CHARACTERS_A_BATCH): void {
    this.#isScheduled = false
    if (this.#calls.length > 0) {
      this.#post({ reads: this.#calls })
      this.#calls = []
    }
    while (this.#sentWrites.length < ahead && this.#charactersSent < characters) {
      const batch = this.#writes.take()
      if (!batch) return
      this.#post({ commits: batch.commits, change: batch.change?.what })
      this.#sentWrites.push(batch)
    }
  }

  /** The process lives at least until what is sent is answered. */
  #post(batch: Batch): void {
    this.#worker.ref()
    this.#say(batch)
  }

  #say(what: Batch | Word): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows
    this.#worker.postMessage(what)
  }

  #hear(told: Told): void {
    if ('damage' in told) return this.#listener.damaged(told.damage)
    if ('stopped' in told) return this.#stop(told.stopped)
    if ('reads' in told) {
      for (const [number, outcome] of told.reads) {
        const reader = this.#readers.get(number) as Waiting<string | undefined>
        this.#readers.delete(number)
        settle(reader, outcome)
      }
      // Once the answers are parsed, which the promises above lead to.
      setImmediate(() => this.#say(told.weight))
    } else {
      const { waiting, change } = this.#sentWrites.shift() as WriteBatch
      for (const [i, outcome] of told.commits.entries()) settle(waiting[i] as Waiting<boolean>, outcome)
      if (change && told.change) settle(change.waiting, told.change)
      // Not at once: Node hands over up to 1,000 messages of a thread in one turn of the event loop, so the next batches could take all of it.
      this.#schedule()
    }
    if (!this.#end && this.#readers.size + this.#sentWrites.length === 0) this.#worker.unref()
  }

  /** Ends for good: whoever waits, and whoever comes, hears why. */
  #stop(reason: string): void {
    const error = new StorageError(reason)
    this.#end = error
    this.#worker.removeAllListeners('message')
    for (const batch of [...this.#sentWrites, ...this.#writes.takeAll()]) rejectBatch(batch, error)
    for (const { reject } of this.#readers.values()) reject(error)
    void this.#worker.terminate()
    this.#listener.stopped(error)
  }
}
