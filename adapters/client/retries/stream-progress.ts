import type { StreamResponse, Task } from '../../../machines/protocol/objects.ts'
import { isReplyEnd, isTerminal, isInterrupted, type TaskState } from '../../../machines/protocol/states.ts'
import type { Clock } from '../../../runtime/ports/clock.ts'
import type { Calls } from '../calls.ts'
import { taskReferenceOf, stateOf, type RequestFrame } from '../requests.ts'

/** A call with a stream, and how it is read. */
export interface StreamContext extends StreamSupport {
  readonly calls: Calls
  readonly frame: RequestFrame
  readonly signal: AbortSignal | undefined
  /** Wakes the waits of all streams, since a call may have changed their tasks. */
  readonly sleepers: Set<() => void>
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
  /** Whether the last event skipped a generation, and nothing says that this was only a client's message. */
  hasGap = false
  /** The generation after which the agent can go on exactly; `undefined` without the reliability extension. */
  cursor: number | undefined
  #generation: number | undefined
  #state: TaskState | undefined

  constructor(isSend: boolean) {
    this.isSend = isSend
  }

  note(event: StreamResponse): void {
    const { taskId, contextId, generation, isExact = false } = taskReferenceOf(event)
    this.isWhole = isExact || (this.isWhole && 'task' in event === !this.hasEvents)
    this.hasGap = !isExact && !('task' in event) && Number(generation) > Number(this.#generation) + 1
    this.#generation = generation
    this.cursor = isExact ? generation : undefined
    this.taskId ??= taskId
    this.contextId ||= contextId
    this.#state = stateOf(event) ?? this.#state
    this.hasEvents = true
  }

  /** Notes a task that was read in place of an event: it has all that events before it may lack. */
  noteRead(task: Task): void {
    this.note({ task })
    this.isWhole = true
  }

  /** Whether a task that was read already includes an event. */
  includes(event: StreamResponse): boolean {
    return Number(taskReferenceOf(event).generation) <= Number(this.#generation)
  }

  /** Whether the stream of a message has ended before its task, which does not wait for the client. */
  get isUnfinished(): boolean {
    return this.isSend && this.taskId !== undefined && !this.isAtEnd
  }

  get isAtEnd(): boolean {
    return this.hasEnded || (this.isSend && this.#state !== undefined && isInterrupted(this.#state))
  }

  /** Whether the stream of a message has its last event. A subscription that continues it does not end there. */
  get isAnswered(): boolean {
    return this.isSend && this.#state !== undefined && isReplyEnd(this.#state)
  }

  get hasEnded(): boolean {
    return this.#state !== undefined && isTerminal(this.#state)
  }

  /** Whether the task has ended, and earlier events may be missing. */
  get mayLackEvents(): boolean {
    return !this.isWhole && this.hasEnded
  }
}

/** How streams are read. */
export interface StreamSupport {
  /** Whether the agent streams. `false`: by its card it does not. */
  readonly streams: boolean
  readonly clock: Clock
}
