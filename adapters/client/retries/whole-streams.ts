import { A2AError, isA2AError } from '../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import type { Calls, StreamContext, StreamSupport } from '../calls.ts'
import { StreamProgress } from '../requests.ts'

/**
 * Calls whose streams follow a message to the end of its task, whatever the agent supports. An agent without streaming
 * gets SendMessage and GetTask. A stream that ends before its task, or cannot be resumed, continues with GetTask. A
 * message is sent a second time only if the agent refused to stream before any event. A subscription that the agent
 * does not support rejects with UnsupportedOperation while its task is active: a watcher of a task polls it. Code that
 * is rarely needed is loaded when it is.
 */
export function wholeStreams(calls: Calls, support: StreamSupport): Calls {
  const sleepers = new Set<() => void>()
  return {
    url: calls.url,
    link: calls.link,
    generations: calls.generations,
    isReliable: () => calls.isReliable(),
    call: async (frame, signal) => {
      const answer = await calls.call(frame, signal)
      if (frame.method === 'SendMessage' || frame.method === 'CancelTask') for (const wake of sleepers) wake()
      return answer
    },
    stream: (frame, signal) => wholeStream({ ...support, calls, frame, signal, sleepers })
  }
}

async function* wholeStream(context: StreamContext): AsyncGenerator<StreamResponse, void, undefined> {
  const { calls, frame, signal, streams } = context
  const { progress = new StreamProgress(frame.method === 'SendStreamingMessage') } = frame
  let refusal = streams
    ? undefined
    : new A2AError('UnsupportedOperation', 'The agent does not stream, as its card says.')
  const stopListening = calls.link.on('lost', () => (progress.isWhole = false))
  try {
    if (streams) {
      for await (const event of calls.stream(frame, signal)) {
        if (progress.includes(event)) continue
        progress.note(event)
        yield progress.mayLackEvents || progress.hasGap
          ? await (await import('./task-reads.ts')).storedEvent(context, progress, event)
          : event
        if (progress.isAnswered && frame.method === 'SubscribeToTask') return
      }
    }
  } catch (error) {
    if (!isA2AError(error)) throw error
    refusal = error
  } finally {
    stopListening()
  }
  if (refusal || progress.isUnfinished)
    yield* (await import('./task-reads.ts')).withoutStream(context, progress, refusal)
}
