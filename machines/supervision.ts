/** When crashed work is restarted, as in OTP: `temporary` never, `transient` after an error. */
export type RestartType = 'temporary' | 'transient'

/** Restart limit: at most `intensity` restarts within `periodMs`, in milliseconds. One more crash fails the task. */
export interface RestartPolicy {
  readonly type: RestartType
  readonly intensity: number
  readonly periodMs: number
}

/** A crash of work: its time, in milliseconds since 1970, and the restart policy in force. */
export interface Crash {
  readonly atMs: number
  readonly policy: RestartPolicy
}

/** Supervisor's decision: whether work that was restarted at these times is restarted after this crash. */
export function mayRestart(crash: Crash, restarts: readonly number[]): boolean {
  return crash.policy.type === 'transient' && within(crash, restarts).length < crash.policy.intensity
}

/** Restart times to keep after a restart: those within the period, oldest first, then this one. */
export function restartsAfter(crash: Crash, restarts: readonly number[]): number[] {
  return [...within(crash, restarts), crash.atMs]
}

function within({ atMs, policy }: Crash, restarts: readonly number[]): number[] {
  return restarts.filter(restartMs => atMs - restartMs < policy.periodMs)
}

/**
 * Recoveries of a task's work since its last progress. `done` is a fingerprint of the work's progress at the newest
 * recovery: it differs after every progress. `atMs` are their times, in milliseconds since 1970, oldest first.
 */
export interface Recoveries {
  readonly done: string
  readonly atMs: readonly number[]
}

/**
 * A recovery: work that was running when its process ended is started again. `atMs` is the time, `done` the fingerprint
 * of its progress. At most `intensity` recoveries without progress are allowed within `periodMs`, in milliseconds.
 */
export interface Recovery {
  readonly atMs: number
  readonly done: string
  readonly intensity: number
  readonly periodMs: number
}

/** Supervisor's decision: whether work with these recoveries is started again, although its process ended once more. */
export function mayRecover(recovery: Recovery, before: Recoveries | undefined): boolean {
  return fruitless(recovery, before).length < recovery.intensity
}

/** Recoveries to keep after this one. */
export function recoveriesAfter(recovery: Recovery, before: Recoveries | undefined): Recoveries {
  return { done: recovery.done, atMs: [...fruitless(recovery, before), recovery.atMs] }
}

/** Recoveries without the newest, which does not count if its process shut down cleanly. */
export function withoutNewest({ done, atMs }: Recoveries): Recoveries {
  return { done, atMs: atMs.slice(0, -1) }
}

/** Times of the recoveries within the period since the last progress, oldest first. */
export function fruitless(
  { atMs, done, periodMs }: Omit<Recovery, 'intensity'>,
  before: Recoveries | undefined
): number[] {
  return before?.done === done ? before.atMs.filter(recoveredMs => atMs - recoveredMs < periodMs) : []
}
