import type { MetricSource } from './counters.ts'

/**
 * Trace context for another process, or for a later one: the fields of W3C Trace Context and Baggage (`traceparent`,
 * `tracestate`, `baggage`) by name, in lower case. Empty without a trace.
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

/**
 * A tracer: `openTelemetry()` of `taskchart/opentelemetry`. Without one, runtimes and clients trace nothing, at no
 * cost.
 */
export interface Telemetry {
  /** Names of the fields of a carrier, in lower case. They are read from requests. */
  readonly fields: readonly string[]
  begin(start: SpanStart): TelemetrySpan
  /** Exports the metrics of a runtime. Returns the function that ends it. Default: metrics are not exported. */
  meter?(metrics: MetricSource): () => void
}

/** Attributes of a span or of its event, named by the semantic conventions. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>
