/** `taskchart/telemetry`: what a runtime reports, for tracers and observers of your own. Types alone. */
export type { SpanAttributes, SpanStart, Telemetry, TelemetrySpan, TraceCarrier } from './telemetry/telemetry.ts'
export type { LiveActors, Observation, Observer } from './contexts/observers.ts'
