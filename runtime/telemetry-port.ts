/** The types of tracers, observers, metrics and health checks, which `taskchart/store` exports. Types only. */
export type { SpanStart, Telemetry, TelemetrySpan, TraceCarrier } from './telemetry/telemetry.ts'
export type { SpanAttributes } from './telemetry/telemetry.ts'
export type { LiveActors, Observation, Observer } from './contexts/observers.ts'
export type { Metric, MetricDefinition, MetricSource, MetricValue } from './telemetry/counters.ts'
export type { Health } from './runtime-metrics.ts'
export type { TransitionCount } from './xstate/transition-counter.ts'
