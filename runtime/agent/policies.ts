import { isObject } from '../../machines/protocol/codec/json.ts'
import type { RestartPolicy, RestartType } from '../../machines/supervision.ts'
import { rejectUnknown } from '../primitives/options.ts'

/**
 * What becomes of work that was at work, not waiting, when its process ended: `resume` has a statechart go on in its
 * state, its promises, callbacks and other actors started again; `rerun` has a function or generator run again from its
 * start, against its journal; `fail` ends its task as failed.
 */
export type RecoveryType = 'resume' | 'rerun' | 'fail'

/** The policy that an author means: `resume` for a statechart, `rerun` for all else. Throws TypeError that says what to write instead. */
export function recoveryPolicy(option: RecoveryType | undefined, isChart: boolean): RecoveryType {
  if (option === undefined) return isChart ? 'resume' : 'rerun'
  if (!['resume', 'rerun', 'fail'].includes(option)) throw new TypeError(`recovery has to be 'resume', 'rerun' or 'fail', not ${option}.`)
  if (option === 'resume' && !isChart) {
    throw new TypeError("recovery: 'resume' needs work as a statechart. A function runs again from its start: write recovery: 'rerun', and put what is not to be done twice into step('name', …).")
  }
  if (option === 'rerun' && isChart) {
    throw new TypeError("recovery: 'rerun' is for functions. A statechart goes on in its state: write recovery: 'resume', or 'fail'; to have it begin anew write a transition to its first state.")
  }
  return option
}

/** How an agent's work is restarted: by type alone, or with an intensity and a period of its own. */
export type RestartOption = RestartType | (Pick<RestartPolicy, 'type'> & Partial<RestartPolicy>)

/** OTP's: once within 5 seconds. */
const DEFAULTS = { intensity: 1, periodMs: 5000 } as const satisfies Partial<RestartPolicy>

/** The policy that an author means: never, unless told otherwise. Throws TypeError or RangeError that says what to write instead. */
export function restartPolicy(option: RestartOption = 'temporary'): RestartPolicy {
  if (isObject(option)) rejectUnknown(option, ['type', 'intensity', 'periodMs'], 'restart')
  const { type, intensity, periodMs } = { ...DEFAULTS, ...(typeof option === 'string' ? { type: option } : option) }
  if (type !== 'temporary' && type !== 'transient') {
    const permanent = (type as unknown) === 'permanent' ? ' A task has an end, so its work cannot be permanent.' : ''
    throw new TypeError(`restart has to be 'temporary' or 'transient', or { type, intensity, periodMs }.${permanent}`)
  }
  if (!Number.isInteger(intensity) || intensity < 0) throw new RangeError(`restart.intensity has to be a whole number from 0, not ${String(intensity)}.`)
  if (typeof periodMs !== 'number' || !(periodMs > 0)) throw new RangeError(`restart.periodMs has to be milliseconds above 0, not ${String(periodMs)}.`)
  return { type, intensity, periodMs }
}

/** What becomes of a message to a task that works: it is refused, delivered to a chart that can take it, or kept for the next question. */
export type MessagePolicy = 'reject' | 'steer' | 'queue'
