import { withMethods, type Kind } from '../primitives/options.ts'
/**
 * Says where a trace goes on, to another process or to a later one: the fields of W3C Trace Context and Baggage
 * (`traceparent`, `tracestate`, `baggage`) by their names in lower case. Without fields: nowhere.
 */
export type TraceCarrier = Readonly<Record<string, string>>

/** What a span, or an event of it, says of itself, by names of the semantic conventions. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>

/** How a span begins. */
export interface SpanStart {
  readonly name: string
  /** `client`: a call that waits for another process, `server`: what that does for it, `internal`: anything else. */
  readonly kind: 'client' | 'server' | 'internal'
  readonly attributes: SpanAttributes
  /** Where the span belongs. Default: to the span within which it begins. */
  readonly parent?: TraceCarrier | undefined
}

/** A part of a trace that lasts for a while. Nothing of it throws but the code that it runs. What comes after its end is dropped. */
export interface TelemetrySpan {
  /** For what belongs to the span elsewhere, or later. */
  readonly carrier: TraceCarrier
  /** Runs code within the span: spans that begin there, also after an `await`, are its children. */
  run<T>(code: () => T): T
  set(attributes: SpanAttributes): void
  /** Something happened, now. */
  event(name: string, attributes: SpanAttributes): void
  /** It has to do with another span, which is not its parent. */
  link(carrier: TraceCarrier): void
  /** It is over; `errorType` is the class of the error that it ended with, if it did. May be called twice. */
  end(errorType?: string): void
}

/** What traces: `openTelemetry()` of `taskchart/opentelemetry`. Runtimes and clients without it trace nothing, and pay nothing. */
export interface Telemetry {
  /** The names of the fields that a carrier may have, in lower case: requests are looked through for these. */
  readonly fields: readonly string[]
  begin(start: SpanStart): TelemetrySpan
}

/** The kind of the option `telemetry`. */
export const A_TELEMETRY: Kind = withMethods(['begin'], 'openTelemetry() of taskchart/opentelemetry')
