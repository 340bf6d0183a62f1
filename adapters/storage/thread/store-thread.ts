import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { Engine } from '../engine.ts'
import { openForWriting } from '../file/open-file.ts'
import { LeastCostQueue } from './least-cost-queue.ts'
import { failureOf, outcomeOf, type Answered, type Batch, type Change, type Changed, type NumberedRead, type ReadCall, type ThreadData, type Told, type Word } from './thread-messages.ts'

type Writes = Exclude<Batch, { readonly reads: unknown }>

/** The time limits for reads per turn, in milliseconds: of one user, and of all. Then come writes and new requests. */
const READING_MS = 10
const READING_ALL_MS = 40

/** The minimum cost of a read, in milliseconds. */
const READ_MS = 0.01

/** The maximum number of groups of answers in transit: the event loop takes a limited number per turn. */
const GROUPS_AHEAD = 2

/** A group of answers from this length on counts as the maximum. */
const LARGE_CHARACTERS = 256 * 1024

/** The worker thread of one store. It processes messages until `close`, and then ends. */
const { file, driver } = workerData as ThreadData
const port = parentPort as MessagePort
const tell = (told: Told) => port.postMessage(told)
const engine = new Engine(openForWriting(file, driver), file, ({ message }) => tell({ damage: message }))
const reads = new LeastCostQueue<NumberedRead>(2 * READING_MS)
const writes: Writes[] = []
let isScheduled = false
let isClosing = false
let ahead = 0

port.on('message', (sent: Batch | Word) => {
  if (sent === 'close') isClosing = true
  else if (typeof sent === 'number') ahead -= sent
  else if ('reads' in sent) for (const call of sent.reads) reads.add(call.user, call)
  else writes.push(sent)
  schedule()
})

/** Schedules a turn after all messages that have arrived. */
function schedule(): void {
  if (isScheduled) return
  isScheduled = true
  setImmediate(turn)
}

/** Reads for a few milliseconds, writes one batch, and releases some free pages, so that no caller waits for all requests of another. */
function turn(): void {
  isScheduled = false
  if (reads.size > 0 && ahead < GROUPS_AHEAD) answerReads()
  const batch = writes.shift()
  if (batch) tell(written(batch))
  const hasRoomToGive = engine.tidy()
  /* c8 ignore next -- the link terminates the thread before it could report coverage */
  if (engine.broken) tell({ stopped: engine.broken.message })
  if (writes.length > 0 || (reads.size > 0 && ahead < GROUPS_AHEAD) || (hasRoomToGive && !isClosing)) schedule()
  else if (isClosing && reads.size === 0) close()
}

function close(): void {
  engine.close()
  port.close()
}

function answerReads(): void {
  const answers: Answered[] = []
  let nowMs = performance.now()
  const untilMs = nowMs + READING_ALL_MS
  const readMs = new Map<string, number>()
  const mayRead = ({ user }: NumberedRead) => nowMs < untilMs && (readMs.get(user) ?? 0) < READING_MS
  let characters = 0
  for (let call = reads.take(mayRead); call; call = reads.take(mayRead)) {
    const { user, number, name, args } = call
    const outcome = outcomeOf(() => read({ name, args }))
    if ('failure' in outcome && outcome.code === 'InternalError') tell({ damage: outcome.failure })
    const beganMs = nowMs
    nowMs = performance.now()
    reads.charge(nowMs - beganMs + READ_MS)
    readMs.set(user, (readMs.get(user) ?? 0) + nowMs - beganMs)
    characters += 'value' in outcome ? (outcome.value?.length ?? 0) : 0
    answers.push([number, outcome])
  }
  const weight = characters < LARGE_CHARACTERS ? 1 : GROUPS_AHEAD
  ahead += weight
  tell({ reads: answers, weight })
}

type Read<Result> = (...args: readonly unknown[]) => Result

/** A read's result as JSON: sending text between threads is cheaper than sending objects. */
function read({ name, args }: ReadCall): string | undefined {
  return engine.read(reads => {
    if (name === 'readEvents' || name === 'readTaskMessages') return (reads.texts[name] as Read<string>)(...args)
    return JSON.stringify((reads[name] as Read<unknown>).apply(reads, [...args]))
  })
}

function written({ commits, change }: Writes): Told {
  const outcomes = engine.commitAll(commits).map(each => (each instanceof Error ? failureOf(each) : { value: each }))
  return { commits: outcomes, change: change && outcomeOf(() => changed(change)) }
}

function changed(change: Change): Changed {
  if ('webhooks' in change) return engine.changeWebhooks(change.webhooks)
  return 'erase' in change ? engine.erase(change.erase) : engine.sweep(change.sweep, change.limit)
}
