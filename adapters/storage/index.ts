/**
 * taskchart/store: the store in a SQLite file, the port that a store of your own implements, and the types of a tracer
 * or an observer of your own.
 */
export { sqliteStore } from './sqlite.ts'

export type {
  Commit,
  ContextKey,
  Erasure,
  JournalRow,
  MessageRow,
  OpenTasksFilter,
  ReadOptions,
  Store,
  StoredContext,
  StoredTask,
  SweepBounds,
  TaskChoice,
  TaskCursor,
  TaskEvent,
  TaskPage,
  TaskQuery,
  TaskRow,
  TaskSize,
  Wake,
  WakeCursor
} from '../../runtime/store/store.ts'
export type {
  DeduplicationKey,
  NewWebhook,
  Scope,
  SendRow,
  StateCounts,
  StoredWebhook,
  StoreStatus,
  TransitionStore,
  Webhook,
  WebhookNote,
  WebhookProgress,
  WebhookRow
} from '../../runtime/store/rows.ts'
export type {
  Health,
  LiveActors,
  Metric,
  MetricDefinition,
  MetricSource,
  MetricValue,
  Observation,
  Observer,
  SpanAttributes,
  SpanStart,
  Telemetry,
  TelemetrySpan,
  TraceCarrier,
  TransitionCount
} from '../../runtime/telemetry-port.ts'
