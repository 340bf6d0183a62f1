import { DefaultExecutionEventBus, type AgentExecutor, type RequestContext } from '@a2a-js/sdk/server'
import { failed, type WorkWords } from '../../runtime/authoring/words.ts'
import { onAbort } from '../../runtime/primitives/promises.ts'
import { heardOf, type TurnEnd } from './executor-words.ts'

/** What a turn of an executor is run with. */
export interface TurnOptions {
  readonly executor: AgentExecutor
  readonly request: RequestContext
  /** What the executor said in earlier turns; the words of this one are added. */
  readonly said: WorkWords[]
  readonly emit: (words: WorkWords) => void
  readonly signal: AbortSignal
}

const UNFINISHED = 'The executor returned without an end: it has to publish a message, or a status that is terminal or asks for something, before it does.'

/**
 * Runs an executor once, until it asks for something, ends the task, or returns; what it publishes from then on is dropped.
 * Rejects with what it throws, for what it publishes that is not valid, and when the signal aborts.
 */
export function runTurn({ executor, request, said, emit, signal }: TurnOptions): Promise<TurnEnd> {
  const bus = new DefaultExecutionEventBus()
  const turn = new Promise<TurnEnd>((resolve, reject) => {
    const unfinished = () => resolve({ result: failed(UNFINISHED) })
    bus.on('finished', unfinished)
    bus.on('event', event => {
      // An error thrown here would be the process's.
      try {
        const { words, end } = heardOf(event, request, said)
        for (const word of words) {
          emit(word)
          said.push(structuredClone(word))
        }
        if (!end) return
        bus.removeAllListeners()
        resolve(end)
      } catch (error) {
        bus.removeAllListeners()
        reject(error)
      }
    })
    const stopListening = onAbort(signal, () => reject(signal.reason))
    void execute(executor, request, bus).then(unfinished, reject).finally(stopListening)
  })
  return turn.finally(() => bus.removeAllListeners())
}

/** Also an executor that throws at once rejects. */
async function execute(executor: AgentExecutor, request: RequestContext, bus: DefaultExecutionEventBus): Promise<void> {
  await executor.execute(request, bus)
}
