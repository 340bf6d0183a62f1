import { DefaultExecutionEventBus, type AgentExecutor, type RequestContext } from '@a2a-js/sdk/server'
import { sentValue } from '../../runtime/authoring/checked-words.ts'
import { failed, type WorkWords } from '../../runtime/authoring/words.ts'
import { onAbort } from '../../runtime/primitives/promises.ts'
import { heardOf, type TurnEnd } from './executor-words.ts'

/** The options of an executor's turn. */
export interface TurnOptions {
  readonly executor: AgentExecutor
  readonly request: RequestContext
  /** The words of earlier turns; those of this turn are added. */
  readonly said: WorkWords[]
  readonly emit: (words: WorkWords) => void
  readonly signal: AbortSignal
}

const UNFINISHED =
  'The executor returned without an end. Before it returns, it has to publish a message, or a terminal or interrupted status.'

/**
 * Runs an executor once, until it asks, ends the task, or returns; later events are dropped. Rejects with the executor's error, for
 * invalid events, and when the signal aborts.
 */
export function runTurn({ executor, request, said, emit, signal }: TurnOptions): Promise<TurnEnd> {
  const bus = new DefaultExecutionEventBus()
  const turn = new Promise<TurnEnd>((resolve, reject) => {
    const unfinished = () => resolve({ result: failed(UNFINISHED) })
    bus.on('finished', unfinished)
    bus.on('event', event => {
      // An error thrown in a listener would end the process.
      try {
        const { words, end } = heardOf(event, request, said)
        for (const word of words) {
          emit(word)
          said.push(sentValue(word, word.type))
        }
        if (!end) return
        bus.removeAllListeners()
        resolve(sentValue(end, 'the end of the turn'))
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

/** Makes an executor that throws synchronously reject. */
async function execute(executor: AgentExecutor, request: RequestContext, bus: DefaultExecutionEventBus): Promise<void> {
  await executor.execute(request, bus)
}
