import { parentPort, workerData, type MessagePort } from 'node:worker_threads'
import { Engine } from './engine.ts'
import { openForWriting } from './open-file.ts'
import { failureOf, outcomeOf, type Batch, type ReadCall, type Removal, type ThreadData, type Told } from './thread-messages.ts'

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
  if (engine.broken) tell({ stopped: engine.broken.message })
})

/** A read's result as JSON: a text crosses threads at less cost than what it says. */
function read({ name, args }: ReadCall): string | undefined {
  return JSON.stringify(engine.read(reads => (reads[name] as (...args: readonly unknown[]) => unknown).apply(reads, [...args])))
}

function written({ commits, removal }: Exclude<Batch, { reads: unknown }>): Told {
  const outcomes = engine.commitAll(commits).map(each => (each instanceof Error ? failureOf(each) : { value: each }))
  return { commits: outcomes, removal: removal && outcomeOf(() => remove(removal)) }
}

function remove(removal: Removal): number | boolean {
  return 'erase' in removal ? engine.erase(removal.erase) : engine.sweep(removal.sweep, removal.limit)
}
