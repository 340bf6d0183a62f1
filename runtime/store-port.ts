/** `taskchart/store`: the port that a storage engine implements, with its rows. Types only. */
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
} from './store/store.ts'
export type { Scope } from './store/rows.ts'
export type { TransitionCount } from './xstate/transition-counter.ts'
export type {
  DeduplicationKey,
  NewWebhook,
  SendRow,
  StateCounts,
  StoredWebhook,
  StoreStatus,
  TransitionStore,
  Webhook,
  WebhookNote,
  WebhookProgress,
  WebhookRow
} from './store/rows.ts'
