import { answerAttributes, errorAttributes, errorTypeOf } from './attributes.ts'
import type { TelemetrySpan } from './telemetry.ts'

/** A call with a span. */
export interface SpannedCall {
  readonly begin: () => TelemetrySpan
  readonly binding: string | undefined
  /** Aborts the call, which does not count as an error. */
  readonly signal: AbortSignal | undefined
}

/** Runs a call within a span, which gets the attributes of its task and ends with it. */
export async function spanned<T>(call: SpannedCall, run: (span: TelemetrySpan) => Promise<T>): Promise<T> {
  const span = call.begin()
  try {
    const answer = await span.run(() => run(span))
    span.set(answerAttributes(answer))
    span.end()
    return answer
  } catch (error) {
    endBy(error, span, call)
    throw error
  }
}

/**
 * Opens a stream within a span, which begins with the first read and ends with the stream: at its end, by an error, or when its reader
 * leaves.
 */
export async function* spannedStream<T>(
  call: SpannedCall,
  open: (span: TelemetrySpan) => AsyncGenerator<T, void, undefined>
): AsyncGenerator<T, void, undefined> {
  const span = call.begin()
  const events = span.run(() => open(span))
  try {
    for (let step = await span.run(() => events.next()); !step.done; step = await span.run(() => events.next())) {
      span.set(answerAttributes(step.value))
      yield step.value
    }
  } catch (error) {
    endBy(error, span, call)
    throw error
  } finally {
    span.end()
    await events.return()
  }
}

function endBy(error: unknown, span: TelemetrySpan, { binding, signal }: SpannedCall): void {
  if (signal?.aborted) return span.end()
  span.set(errorAttributes(error, binding))
  span.end(errorTypeOf(error))
}
