import { isObject } from '../../machines/protocol/codec/json.ts'
import type { RestartPolicy, RestartType } from '../../machines/supervision.ts'
import { rejectUnknown } from '../primitives/options.ts'

/**
 * Recovery of work that was running, not waiting, when its process ended. `resume`: a statechart continues in its
 * state, and its promises, callbacks and other actors start again. `rerun`: a function or generator is replayed from
 * its journal. `fail`: its task fails.
 */
export type RecoveryType = 'resume' | 'rerun' | 'fail'

/**
 * Validates an author's recovery policy. Default: `resume` for a statechart, else `rerun`. Throws TypeError that says
 * what to write instead.
 */
export function recoveryPolicy(option: RecoveryType | undefined, isChart: boolean): RecoveryType {
  if (option === undefined) return isChart ? 'resume' : 'rerun'
  if (!['resume', 'rerun', 'fail'].includes(option))
    throw new TypeError(`recovery has to be 'resume', 'rerun' or 'fail', not ${option}.`)
  if (option === 'resume' && !isChart) {
    throw new TypeError(
      "recovery: 'resume' needs work as a statechart. A function runs again from its start: write recovery: 'rerun', and put side effects into step('name', …)."
    )
  }
  if (option === 'rerun' && isChart) {
    throw new TypeError(
      "recovery: 'rerun' is for functions. A statechart continues in its state: write recovery: 'resume' or 'fail'. To restart a chart, add a transition to its initial state."
    )
  }
  return option
}

/** An author's restart policy: a type, or a type with intensity and period. */
export type RestartOption = RestartType | (Pick<RestartPolicy, 'type'> & Partial<RestartPolicy>)

/** OTP's default: once within 5 seconds. */
const DEFAULTS = { intensity: 1, periodMs: 5000 } as const satisfies Partial<RestartPolicy>

/**
 * Validates an author's restart policy. Default: never. Throws TypeError or RangeError that says what to write instead.
 */
export function restartPolicy(option: RestartOption = 'temporary'): RestartPolicy {
  if (isObject(option)) rejectUnknown(option, ['type', 'intensity', 'periodMs'], 'restart')
  const { type, intensity, periodMs } = { ...DEFAULTS, ...(typeof option === 'string' ? { type: option } : option) }
  if (type !== 'temporary' && type !== 'transient') {
    const permanent = (type as unknown) === 'permanent' ? ' A task has an end, so its work cannot be permanent.' : ''
    throw new TypeError(`restart has to be 'temporary' or 'transient', or { type, intensity, periodMs }.${permanent}`)
  }
  if (!Number.isInteger(intensity) || intensity < 0)
    throw new RangeError(`restart.intensity has to be a whole number from 0, not ${String(intensity)}.`)
  if (typeof periodMs !== 'number' || !(periodMs > 0))
    throw new RangeError(`restart.periodMs has to be milliseconds above 0, not ${String(periodMs)}.`)
  return { type, intensity, periodMs }
}

/**
 * Policy for messages to a working task: refuse them, deliver them to a chart that handles them, or store them for the
 * next question.
 */
export type MessagePolicy = 'reject' | 'deliver' | 'queue'
