/** `taskchart/telemetry`: types for your own tracers, observers and health checks. Types only. */
export type { SpanStart, Telemetry, TelemetrySpan, TraceCarrier } from './telemetry/telemetry.ts'
export type { SpanAttributes } from './telemetry/telemetry.ts'
export type { LiveActors, Observation, Observer } from './contexts/observers.ts'
export type { Metric, MetricDefinition, MetricSource, MetricValue } from './telemetry/counters.ts'
export type { Health } from './runtime-metrics.ts'
