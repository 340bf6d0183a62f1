import { Worker } from 'node:worker_threads'
import { onReceived } from '../../../runtime/primitives/event-loop.ts'
import type { StoreStatus } from '../../../runtime/store/rows.ts'
import type { StoreChange, Changed, CommitRows } from '../../rows/commit-rows.ts'
import { StorageError } from '../../rows/damage.ts'
import {
  CHARACTERS_A_BATCH,
  rejectBatch,
  settle,
  WriteQueue,
  type QueuedCall,
  type WriteBatch
} from '../../rows/write-queue.ts'
import {
  type ThreadBatch,
  type NumberedRead,
  packCommit,
  type ReadCall,
  type ThreadData,
  type ThreadReport,
  type ControlMessage
} from './thread-messages.ts'

/**
 * The number of batches of writes that the thread has at once. Those that arrive while others are in progress share the
 * next transaction and its sync.
 */
const BATCHES_AHEAD = 8

/**
 * The thread's memory for new objects. By default it has 96 MiB, and fills them with the garbage of rows before it
 * collects.
 */
const YOUNG_MIB = 8

/** Receives the reports of a link. */
export interface LinkListener {
  damaged(message: string): void
  /** The store has failed for good. */
  stopped(error: StorageError): void
}

/**
 * The connection to the worker thread that has the file. Calls of one turn of the event loop are sent together. Reads
 * are sent at once, and the thread schedules them fairly among users. Each promise settles with the thread's answer.
 */
export class ThreadLink {
  readonly #worker: Worker
  readonly #listener: LinkListener
  readonly #ended: Promise<void>
  readonly #writes = new WriteQueue()
  #calls: NumberedRead[] = []
  #lastRead = 0
  /** Pending calls: reads by number, writes oldest first. */
  readonly #readers = new Map<number, QueuedCall<string | undefined>>()
  readonly #sentWrites: WriteBatch[] = []
  #isScheduled = false
  #end: Error | undefined

  constructor(data: ThreadData, listener: LinkListener) {
    this.#listener = listener
    // Preloads of the command line, such as tracers and loaders, are not for this thread. Those of NODE_OPTIONS still
    // run.
    this.#worker = new Worker(new URL('./store-thread.js', import.meta.url), {
      name: 'taskchart store',
      workerData: data,
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MIB }
    })
    this.#worker.unref()
    const fail = (error: unknown) => this.#stop(`${data.file} can no longer be used: ${(error as Error).message}`)
    onReceived(this.#worker, 'message', (report: ThreadReport) => this.#handle(report), fail)
    this.#worker.on('error', fail)
    this.#ended = new Promise(resolve => this.#worker.once('exit', () => resolve()))
  }

  commit(rows: CommitRows): Promise<boolean> {
    return this.#enqueue(waiting => this.#writes.addCommit(rows, waiting))
  }

  change(change: StoreChange): Promise<Changed> {
    return this.#enqueue(waiting => this.#writes.addChange(change, waiting))
  }

  /** Resolves with JSON. */
  read({ name, args }: ReadCall, user: string): Promise<string | undefined> {
    return this.#enqueue(waiting => {
      this.#lastRead += 1
      this.#calls.push({ name, args, user, number: this.#lastRead })
      this.#readers.set(this.#lastRead, waiting)
    })
  }

  /** The state of the store: stopped or closed, and its pending calls. */
  get status(): StoreStatus {
    const sent = this.#sentWrites.reduce((sum, { waiting, change }) => sum + waiting.length + (change ? 1 : 0), 0)
    return {
      isStopped: this.#end !== undefined,
      waitingReads: this.#readers.size,
      waitingWrites: this.#writes.size + sent
    }
  }

  /** Lets the thread finish its work, and ends it. */
  async close(): Promise<void> {
    if (!this.#end) {
      this.#end = new TypeError('The store is closed.')
      this.#flush(Infinity, Infinity)
      this.#worker.ref()
      this.#send('close')
    }
    await this.#ended
  }

  #enqueue<T>(add: (waiting: QueuedCall<T>) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#end) throw this.#end
      add({ resolve, reject })
      this.#schedule()
    })
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#flush())
  }

  /** The length of the writes that the thread has. */
  get #charactersSent(): number {
    return this.#sentWrites.reduce((sum, { characters }) => sum + characters, 0)
  }

  /** Sends pending reads, and writes up to the limits. */
  #flush(ahead = BATCHES_AHEAD, characters = CHARACTERS_A_BATCH): void {
    this.#isScheduled = false
    if (this.#calls.length > 0) {
      this.#post({ reads: this.#calls })
      this.#calls = []
    }
    while (this.#sentWrites.length < ahead && this.#charactersSent < characters) {
      const batch = this.#writes.take()
      if (!batch) return
      this.#post({ commits: batch.commits.map(packCommit), change: batch.change?.what, characters: batch.characters })
      this.#sentWrites.push(batch)
    }
  }

  /** Keeps the process alive until the batch is answered. */
  #post(batch: ThreadBatch): void {
    this.#worker.ref()
    this.#send(batch)
  }

  #send(what: ThreadBatch | ControlMessage): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- that is for windows
    this.#worker.postMessage(what)
  }

  #handle(report: ThreadReport): void {
    if ('damage' in report) return this.#listener.damaged(report.damage)
    if ('stopped' in report) return this.#stop(report.stopped)
    if ('reads' in report) {
      for (const [number, outcome] of report.reads) {
        const reader = this.#readers.get(number) as QueuedCall<string | undefined>
        this.#readers.delete(number)
        settle(reader, outcome)
      }
      // Sent after the answers are parsed, which the promises above lead to.
      setImmediate(() => this.#send({ received: report.user, weight: report.weight }))
    } else {
      const { waiting, change } = this.#sentWrites.shift() as WriteBatch
      for (const [i, outcome] of report.commits.entries()) settle(waiting[i] as QueuedCall<boolean>, outcome)
      if (change && report.change) settle(change.waiting, report.change)
      // Not sent at once: Node delivers up to 1,000 messages of a thread in one turn of the event loop, which the next
      // batches could fill.
      this.#schedule()
    }
    if (!this.#end && this.#readers.size + this.#sentWrites.length === 0) this.#worker.unref()
  }

  /** Fails for good: rejects all pending and later calls. */
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
