/** `taskchart/telemetry`: types for your own tracers and observers. Types only. */
export type { SpanAttributes, SpanStart, Telemetry, TelemetrySpan, TraceCarrier } from './telemetry/telemetry.ts'
export type { LiveActors, Observation, Observer } from './contexts/observers.ts'
