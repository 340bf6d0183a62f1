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
