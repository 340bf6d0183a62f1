/** The moments at which a process that is killed must lose nothing. */
export type KillPoint =
  /** A frame came in. */
  | 'frame received'
  /** Its request was checked. */
  | 'request checked'
  /** A transaction is open. */
  | 'transaction open'
  /** Its rows about sends are written. */
  | 'sends written'
  /** Its events are written. */
  | 'events written'
  /** Its snapshots, timers and journal are written. */
  | 'rows written'
  /** It is about to be synced. */
  | 'before sync'
  /** It is durable, and nobody has heard. */
  | 'synced'
  /** The caller was answered. */
  | 'caller answered'
  /** Streams were told, callers not yet. */
  | 'streams told'
  /** An effect has started. */
  | 'effect started'
  /** Its result is known, and not committed. */
  | 'effect ended'
  /** A webhook is about to be told. */
  | 'before delivery'
  /** A webhook has answered, and that is not noted. */
  | 'delivery answered'
  /** A timer is due, and nothing committed. */
  | 'timer due'
  /** The log is about to be written back. */
  | 'before checkpoint'
  /** Old rows are about to go. */
  | 'before sweep'
  /** A schema or a snapshot is about to be migrated. */
  | 'before migration'
  /** A file is about to be marked as one that needs its log. */
  | 'before log mark'
  /** The process is parking its work. */
  | 'parking'

let hook: ((point: KillPoint) => void) | undefined

/** Marks a moment, for tests that end the process there; otherwise nothing. */
export function killPoint(point: KillPoint): void {
  hook?.(point)
}

/** Has the marks of this thread call a function, or nothing any more. */
export function onKillPoint(called: typeof hook): void {
  hook = called
}
