import { isA2AError } from '../../machines/protocol/errors.ts'
import type { StreamResponse, Task, TaskStatus } from '../../machines/protocol/objects.ts'
import { isPause } from '../../machines/protocol/states.ts'
import type { CallContext } from '../../runtime/access/call-context.ts'
import { onAbort } from '../../runtime/primitives/event-loop.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import { wordsIn } from './content.ts'

/** The end of a wait. */
export interface WaitOptions {
  readonly waitMs: number
  /** The `messageId` of a question that does not end the wait; empty for none. */
  readonly passing: string
  readonly onProgress: ((words: string) => void) | undefined
}

/** How often a task is read, in milliseconds, if the agent does not stream. */
const READ_MS = 1000

/**
 * Waits until a task has ended or asks, for `waitMs` at most, and gives the task then. Throws the reason of the call's
 * signal.
 */
export async function taskAfter(
  runtime: ServedRuntime,
  task: Task,
  options: WaitOptions,
  call: CallContext
): Promise<Task> {
  call.signal?.throwIfAborted()
  if (endsWait(task.status, options)) return task
  const { clock, capabilities } = runtime.settings
  const time = new AbortController()
  const timer = clock.setTimeout(() => time.abort(), options.waitMs)
  const stop = call.signal && onAbort(call.signal, () => time.abort())
  try {
    const wait = capabilities.streaming ? follow : poll
    await wait(runtime, task.id, options, { ...call, signal: time.signal })
  } catch (error) {
    const hasEnded = isA2AError(error) && error.code === 'UnsupportedOperation'
    if (!time.signal.aborted && !hasEnded) throw error
  } finally {
    clock.clearTimeout(timer)
    stop?.()
  }
  call.signal?.throwIfAborted()
  return runtime.getTask({ id: task.id, historyLength: 0 }, call)
}

function endsWait({ state, message }: TaskStatus, { passing }: WaitOptions): boolean {
  return isPause(state) && message?.messageId !== passing
}

/** Follows the events of a task. */
async function follow(runtime: ServedRuntime, id: string, options: WaitOptions, call: CallContext): Promise<void> {
  for await (const item of runtime.subscribeToTask({ id }, call)) {
    const status = statusIn(item)
    if (status && endsWait(status, options)) return
    if (status?.message) options.onProgress?.(wordsIn(status.message.parts))
  }
}

function statusIn(item: StreamResponse): TaskStatus | undefined {
  if ('task' in item) return item.task.status
  return 'statusUpdate' in item ? item.statusUpdate.status : undefined
}

/** Reads a task of an agent that does not stream, again and again. */
async function poll(
  runtime: ServedRuntime,
  id: string,
  options: WaitOptions,
  call: CallContext & { readonly signal: AbortSignal }
): Promise<void> {
  const { clock } = runtime.settings
  for (;;) {
    const { status } = await runtime.getTask({ id, historyLength: 0 }, call)
    if (endsWait(status, options)) return
    await new Promise<void>(resolve => {
      const timer = clock.setTimeout(() => (stop(), resolve()), READ_MS)
      const stop = onAbort(call.signal, () => (clock.clearTimeout(timer), resolve()))
    })
    call.signal.throwIfAborted()
  }
}
