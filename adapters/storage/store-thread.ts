import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { Engine } from './engine.ts'
import { openForWriting } from './open-file.ts'
import { failureOf, outcomeOf, type Batch, type Change, type Changed, type ReadCall, type ThreadData, type Told } from './thread-messages.ts'

/** The thread of one store: it works off batches until it is told to close, and then ends by itself. */
const { file, driver } = workerData as ThreadData
const port = parentPort as MessagePort
const tell = (told: Told) => port.postMessage(told)
const engine = new Engine(openForWriting(file, driver), file, ({ message }) => tell({ damage: message }))

port.on('message', (batch: Batch | 'close') => {
  if (batch === 'close') {
    engine.close()
    port.close()
    return
  }
  tell('reads' in batch ? { reads: batch.reads.map(call => outcomeOf(() => read(call))) } : written(batch))
  engine.tidy()
  /* c8 ignore next -- the thread is ended on this word, before it could say what of it has run */
  if (engine.broken) tell({ stopped: engine.broken.message })
})

/** A read's result as JSON: a text crosses threads at less cost than what it says. */
function read({ name, args }: ReadCall): string | undefined {
  return JSON.stringify(engine.read(reads => (reads[name] as (...args: readonly unknown[]) => unknown).apply(reads, [...args])))
}

function written({ commits, change }: Exclude<Batch, { reads: unknown }>): Told {
  const outcomes = engine.commitAll(commits).map(each => (each instanceof Error ? failureOf(each) : { value: each }))
  return { commits: outcomes, change: change && outcomeOf(() => changed(change)) }
}

function changed(change: Change): Changed {
  if ('webhooks' in change) return engine.changeWebhooks(change.webhooks)
  return 'erase' in change ? engine.erase(change.erase) : engine.sweep(change.sweep, change.limit)
}
