import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { onReceived } from '../../../runtime/primitives/event-loop.ts'
import { failedOutcome, outcomeOf, type StoreChange, type Changed } from '../../rows/commit-rows.ts'
import { LeastCostQueue } from '../../rows/least-cost-queue.ts'
import { takeTogether } from '../../rows/write-queue.ts'
import { sqliteReasonOf } from '../driver.ts'
import { Engine } from '../engine.ts'
import { openForWriting } from '../file/open-file.ts'
import type { TaskTexts } from '../read/reads.ts'
import {
  type NumberedOutcome,
  type ThreadBatch,
  type NumberedRead,
  type ReadCall,
  type ThreadData,
  type ThreadReport,
  unpackCommit,
  type ControlMessage,
  type Writes
} from './thread-messages.ts'

/** The time limit for one user's reads per turn, in milliseconds. Then come writes, new requests and other users. */
const READING_MS = 5

/** The minimum cost of a read, in milliseconds. */
const READ_MS = 0.01

/** How far behind the others a user's first read is at most, in milliseconds. */
const MOST_BEHIND_MS = 20

/** The maximum number of groups of answers to one user in transit: the event loop takes a limited number per turn. */
const GROUPS_AHEAD = 2

/** A group of answers from this length on counts as the maximum. */
const LARGE_CHARACTERS = 256 * 1024

/** The worker thread of one store. It processes messages until `close`, and then ends. */
const { file, driver } = workerData as ThreadData
const port = parentPort as MessagePort
const report = (message: ThreadReport) => port.postMessage(message)
const engine = openEngine()
const reads = new LeastCostQueue<NumberedRead>(MOST_BEHIND_MS)
const writes: Writes[] = []
let isScheduled = false
let isClosing = false
/** Whether the last turn was for writes. */
let hasWritten = false
/** The groups of answers that are on their way, by user. */
const ahead = new Map<string, number>()

/* c8 ignore next -- the thread ends then, before it could report coverage */
onReceived(port, 'message', receive, error => report({ stopped: sqliteReasonOf(error) }))

function receive(sent: ThreadBatch | ControlMessage): void {
  if (sent === 'close') isClosing = true
  else if ('received' in sent) moveAhead(sent.received, -sent.weight)
  else if ('reads' in sent) for (const call of sent.reads) reads.add(call.user, call)
  else writes.push(sent)
  schedule()
}

/** Opens the file. An error of better-sqlite3 would lose its message on its way out of the thread. */
function openEngine(): Engine {
  try {
    return new Engine(openForWriting(file, driver), file, ({ message }) => report({ damage: message }))
  } catch (error) {
    /* c8 ignore next -- a thread that fails reports no coverage */
    throw new Error(`${sqliteReasonOf(error)}. Earlier commits are stored. Check the disk, and start again.`, {
      cause: error
    })
  }
}

/** Schedules a turn after all messages that have arrived. */
function schedule(): void {
  if (isScheduled) return
  isScheduled = true
  setImmediate(turn)
}

/**
 * Reads for one user, or writes all batches that have arrived, and releases some free pages. So no caller waits for all
 * requests of another. Reads and writes alternate, and what arrives meanwhile is received between them. So a write
 * waits for one read at most, and a read for the writes of one turn.
 */
function turn(): void {
  isScheduled = false
  const user = hasWritten || writes.length === 0 ? nextReader() : undefined
  hasWritten = user === undefined
  if (user === undefined) writeArrived()
  else answerReads(user)
  const hasFreePages = engine.tidy()
  /* c8 ignore next -- the link terminates the thread before it could report coverage */
  if (engine.broken) report({ stopped: engine.broken.message })
  if (writes.length > 0 || nextReader() !== undefined || (hasFreePages && !isClosing)) schedule()
  else if (isClosing && reads.size === 0) close()
}

function close(): void {
  engine.close()
  // Ends the thread, as `close` does, which Deno's port lacks.
  port.unref()
}

function nextReader(): string | undefined {
  return reads.next(user => (ahead.get(user) ?? 0) < GROUPS_AHEAD)
}

function answerReads(user: string): void {
  const answers: NumberedOutcome[] = []
  const beganMs = performance.now()
  let nowMs = beganMs
  let characters = 0
  for (let call = reads.take(user); call; call = nowMs - beganMs < READING_MS ? reads.take(user) : undefined) {
    const { number, name, args } = call
    const outcome = outcomeOf(() => read({ name, args }))
    if ('failure' in outcome && outcome.code === 'InternalError') report({ damage: outcome.failure })
    const beforeMs = nowMs
    nowMs = performance.now()
    reads.charge(user, nowMs - beforeMs + READ_MS)
    characters += 'value' in outcome ? (outcome.value?.length ?? 0) : 0
    answers.push([number, outcome])
  }
  const weight = characters < LARGE_CHARACTERS ? 1 : GROUPS_AHEAD
  moveAhead(user, weight)
  report({ reads: answers, user, weight })
}

function moveAhead(user: string, weight: number): void {
  const left = (ahead.get(user) ?? 0) + weight
  if (left === 0) ahead.delete(user)
  else ahead.set(user, left)
}

type Read<Result> = (...args: readonly unknown[]) => Result

/** A read's result as JSON: sending text between threads is cheaper than sending objects. */
function read({ name, args }: ReadCall): string | undefined {
  return engine.read(reads => {
    if (name in reads.texts) return (reads.texts[name as keyof TaskTexts] as Read<string | undefined>)(...args)
    return JSON.stringify((reads[name] as Read<unknown>).apply(reads, [...args]))
  })
}

/** Writes what has arrived. The callers of each transaction are answered before the next. */
function writeArrived(): void {
  for (let batches = takeTogether(writes); batches.length > 0; batches = takeTogether(writes)) {
    write(batches)
    engine.boundLog()
  }
}

function write(batches: readonly Writes[]): void {
  const outcomes = engine
    .commitAll(batches.flatMap(({ commits }) => commits.map(unpackCommit)))
    .map(each => (each instanceof Error ? failedOutcome(each) : { value: each }))
  for (const { commits, change } of batches)
    report({ commits: outcomes.splice(0, commits.length), change: change && outcomeOf(() => changed(change)) })
}

function changed(change: StoreChange): Changed {
  if ('webhooks' in change) return engine.changeWebhooks(change.webhooks)
  if ('counts' in change) return engine.countTransitions(change)
  return 'erase' in change ? engine.erase(change.erase) : engine.sweep(change.sweep, change.limit)
}
