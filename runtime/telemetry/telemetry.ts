import { type Kind, withMethods } from '../primitives/options.ts'
import { answerAttributes, errorAttributes, errorTypeOf, type SpanAttributes } from './attributes.ts'
import type { MetricSource } from './counters.ts'

/**
 * Trace context for another process, or for a later one: the fields of W3C Trace Context and Baggage (`traceparent`, `tracestate`,
 * `baggage`) by name, in lower case. Empty without a trace.
 */
export type TraceCarrier = Readonly<Record<string, string>>

/** Start of a span. */
export interface SpanStart {
  readonly name: string
  /** `client`: a call to another process; `server`: the other process's part of it; `internal`: anything else. */
  readonly kind: 'client' | 'server' | 'internal'
  readonly attributes: SpanAttributes
  /** Parent of the span. Default: the active span. */
  readonly parent?: TraceCarrier | undefined
}

/** A span. Its methods do not throw, except for errors of the code in `run`. Calls after its end are ignored. */
export interface TelemetrySpan {
  /** Trace context for children in other processes, or later. */
  readonly carrier: TraceCarrier
  /** Runs code with this span active: spans that begin there, even after an `await`, are its children. */
  run<T>(code: () => T): T
  set(attributes: SpanAttributes): void
  /** Adds an event with the current time. */
  event(name: string, attributes: SpanAttributes): void
  /** Links another span, which is not its parent. */
  link(carrier: TraceCarrier): void
  /** Ends the span; `errorType` is the class of the error that ended it, if any. May be called twice. */
  end(errorType?: string): void
}

/** A tracer: `openTelemetry()` of `taskchart/opentelemetry`. Without one, runtimes and clients trace nothing, at no cost. */
export interface Telemetry {
  /** Names of the fields of a carrier, in lower case. They are read from requests. */
  readonly fields: readonly string[]
  begin(start: SpanStart): TelemetrySpan
  /** Exports the metrics of a runtime. Returns the function that ends it. Default: metrics are not exported. */
  meter?(metrics: MetricSource): () => void
}

/** The kind of the option `telemetry`. */
export const A_TELEMETRY: Kind = withMethods(['begin'], 'openTelemetry() of taskchart/opentelemetry')

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
