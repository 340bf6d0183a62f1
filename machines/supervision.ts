/** Whether work that crashed is started again, in OTP's words: `temporary` never, `transient` when it ended by an error. */
export type RestartType = 'temporary' | 'transient'

/** How work is restarted: at most `intensity` times within `periodMs`, in milliseconds; one crash more fails the task. */
export interface RestartPolicy {
  readonly type: RestartType
  readonly intensity: number
  readonly periodMs: number
}

/** A crash of work: when it happened, in milliseconds since 1970, and the policy that it meets. */
export interface Crash {
  readonly atMs: number
  readonly policy: RestartPolicy
}

/** The supervisor's decision: whether work that was restarted at these times is restarted after this crash too. */
export function mayRestart(crash: Crash, restarts: readonly number[]): boolean {
  return crash.policy.type === 'transient' && within(crash, restarts).length < crash.policy.intensity
}

/** The times to remember once the work is restarted: those of the period, oldest first, and this one. */
export function restartsAfter(crash: Crash, restarts: readonly number[]): number[] {
  return [...within(crash, restarts), crash.atMs]
}

function within({ atMs, policy }: Crash, restarts: readonly number[]): number[] {
  return restarts.filter(restartMs => atMs - restartMs < policy.periodMs)
}

/**
 * What is kept of the recoveries of a task's work: what the work had done by the newest, as a text that differs after
 * every progress, and when each since its last progress was, in milliseconds since 1970, oldest first.
 */
export interface Recoveries {
  readonly done: string
  readonly atMs: readonly number[]
}

/**
 * Work that was at work when its process ended is to be started again: when, what it has done until now, and how often it
 * may be within a period, in milliseconds, without progress.
 */
export interface Recovery {
  readonly atMs: number
  readonly done: string
  readonly intensity: number
  readonly periodMs: number
}

/** The supervisor's decision: whether work with these recoveries is started again, though its process ended once more. */
export function mayRecover(recovery: Recovery, before: Recoveries | undefined): boolean {
  return fruitless(recovery, before).length < recovery.intensity
}

/** The recoveries to remember once the work is started again. */
export function recoveriesAfter(recovery: Recovery, before: Recoveries | undefined): Recoveries {
  return { done: recovery.done, atMs: [...fruitless(recovery, before), recovery.atMs] }
}

/** The recoveries to remember if the newest is not to count, since the process that it was made in ended in order. */
export function withoutNewest({ done, atMs }: Recoveries): Recoveries {
  return { done, atMs: atMs.slice(0, -1) }
}

/** The recoveries within the period since the last progress, oldest first. */
export function fruitless({ atMs, done, periodMs }: Omit<Recovery, 'intensity'>, before: Recoveries | undefined): number[] {
  return before?.done === done ? before.atMs.filter(recoveredMs => atMs - recoveredMs < periodMs) : []
}
