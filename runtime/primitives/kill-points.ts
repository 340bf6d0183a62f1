/** Points in the code at which a kill of the process must lose nothing. */
export type KillPoint =
  /** A frame was received. */
  | 'frame received'
  /** Its request was checked. */
  | 'request checked'
  /** A transaction is open. */
  | 'transaction open'
  /** Its deduplication rows are written. */
  | 'sends written'
  /** Its events are written. */
  | 'events written'
  /** Its snapshots, timers and journal are written. */
  | 'rows written'
  /** It is about to be synced. */
  | 'before sync'
  /** It is durable, but not published yet. */
  | 'synced'
  /** The caller was answered. */
  | 'caller answered'
  /** Streams have the events, callers have no answer yet. */
  | 'streams told'
  /** An effect has started. */
  | 'effect started'
  /** Its result is known, but not committed. */
  | 'effect ended'
  /** An event is about to be posted to a webhook. */
  | 'before delivery'
  /** A webhook has answered, but its progress is not stored. */
  | 'delivery answered'
  /** A timer is due, but nothing is committed. */
  | 'timer due'
  /** The write-ahead log is about to be checkpointed. */
  | 'before checkpoint'
  /** Old rows are about to be deleted. */
  | 'before sweep'
  /** A schema or a snapshot is about to be migrated. */
  | 'before migration'
  /** A file is about to be marked as needing its log. */
  | 'before log mark'
  /** The process is parking its work. */
  | 'parking'

let hook: ((point: KillPoint) => void) | undefined

/** Marks a point at which tests may kill the process. It has no other effect. */
export function killPoint(point: KillPoint): void {
  hook?.(point)
}

/** Sets the function that the kill points of this thread call, or removes it. */
export function onKillPoint(called: typeof hook): void {
  hook = called
}
