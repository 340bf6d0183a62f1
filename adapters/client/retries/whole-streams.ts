import { A2AError, isA2AError } from '../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { isInterrupted, isTerminal, type TaskState } from '../../../machines/protocol/states.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Calls } from '../calls.ts'
import { placeOf, stateOf, type RequestFrame } from '../requests.ts'

/** How streams are read. */
export interface StreamTerms {
  /** Whether the agent streams. `false`: by its card it does not. */
  readonly streams: boolean
  readonly clock: Clock
}

/** A call with a stream, and how it is read. */
export interface StreamMeans extends StreamTerms {
  readonly calls: Calls
  readonly frame: RequestFrame
  readonly signal: AbortSignal | undefined
  /** Wakes the waits of all streams, since a call may have changed their tasks. */
  readonly sleepers: Set<() => void>
}

/**
 * Calls whose streams follow a message to the end of its task, whatever the agent supports. An agent without streaming gets SendMessage
 * and GetTask. A stream that ends before its task, or cannot be resumed, goes on with GetTask. A message is sent a second time only if
 * the agent said that it has no streaming, before any event. A subscription that the agent does not have rejects with
 * UnsupportedOperation while its task goes on: who watches a task polls it. Code that is rarely needed is loaded when it is.
 */
export function wholeStreams(calls: Calls, terms: StreamTerms): Calls {
  const sleepers = new Set<() => void>()
  return {
    url: calls.url,
    link: calls.link,
    call: async (frame, signal) => {
      const answer = await calls.call(frame, signal)
      if (frame.method === 'SendMessage' || frame.method === 'CancelTask') for (const wake of sleepers) wake()
      return answer
    },
    stream: (frame, signal) => wholeStream({ ...terms, calls, frame, signal, sleepers })
  }
}

async function* wholeStream(means: StreamMeans): AsyncGenerator<StreamResponse, void, undefined> {
  const { calls, frame, signal, streams } = means
  const progress = new StreamProgress(frame.method === 'SendStreamingMessage')
  let refusal = streams
    ? undefined
    : new A2AError('UnsupportedOperation', 'The agent does not stream, as its card says.')
  const unheard = calls.link.on('lost', () => (progress.isWhole = false))
  try {
    if (streams) {
      for await (const event of calls.stream(frame, signal)) {
        progress.note(event)
        yield progress.mayLackEvents
          ? await (await import('./task-reads.ts')).storedEvent(means, progress, event)
          : event
      }
    }
  } catch (error) {
    if (!isA2AError(error)) throw error
    refusal = error
  } finally {
    unheard()
  }
  if (refusal || progress.isUnfinished) yield* (await import('./task-reads.ts')).withoutStream(means, progress, refusal)
}

/** The progress of a stream. */
export class StreamProgress {
  /** Whether the stream is that of a message, which ends where its task waits for the client. */
  readonly isSend: boolean
  taskId: string | undefined
  contextId: string | undefined
  hasEvents = false
  /** Whether the events show all of the task. After a lost connection, or a second snapshot, some may be missing. */
  isWhole = true
  #state: TaskState | undefined

  constructor(isSend: boolean) {
    this.isSend = isSend
  }

  note(event: StreamResponse): void {
    const { taskId, contextId, generation } = placeOf(event)
    this.isWhole = generation !== undefined || (this.isWhole && 'task' in event === !this.hasEvents)
    this.taskId ??= taskId
    this.contextId ||= contextId
    this.#state = stateOf(event) ?? this.#state
    this.hasEvents = true
  }

  /** Whether the stream of a message has ended before its task, which does not wait for the client. */
  get isUnfinished(): boolean {
    return this.isSend && this.taskId !== undefined && !this.isAtEnd
  }

  get isAtEnd(): boolean {
    return this.hasEnded || (this.isSend && this.#state !== undefined && isInterrupted(this.#state))
  }

  get hasEnded(): boolean {
    return this.#state !== undefined && isTerminal(this.#state)
  }

  /** Whether the task has ended, and earlier events may be missing. */
  get mayLackEvents(): boolean {
    return !this.isWhole && this.hasEnded
  }
}
