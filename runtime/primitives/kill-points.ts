/**
 * The moments at which a process that is killed must lose nothing: a frame came in (P0), its request was checked (P1), a
 * transaction is open (P2), its rows about sends (P3), its events (P4), its snapshots, timers and journal (P5) are written,
 * it is about to be synced (P6), it is durable but nobody has heard of it (P7), whoever waited has heard (P8), half of the
 * streams have (P9), an effect has started (P10), its result is known but not committed (P11), a webhook is about to be told
 * (P12), it has answered and that is not noted (P13), a timer is due but nothing is committed (P14), the log is about to be
 * written back (P15), old rows are about to go (P16), a schema or snapshot is about to be migrated (P17), a file is about to be marked
 * as one that needs its log (P18), the process is parking its work (P19).
 */
export type FaultPoint = 'P0' | 'P1' | 'P2' | 'P3' | 'P4' | 'P5' | 'P6' | 'P7' | 'P8' | 'P9' | 'P10' | 'P11' | 'P12' | 'P13' | 'P14' | 'P15' | 'P16' | 'P17' | 'P18' | 'P19'

let hook: ((point: FaultPoint) => void) | undefined

/** Marks a moment, for tests that end the process there; otherwise nothing. */
export function killPoint(point: FaultPoint): void {
  hook?.(point)
}

/** Has the marks of this thread call a function, or nothing any more. */
export function onKillPoint(called: typeof hook): void {
  hook = called
}
