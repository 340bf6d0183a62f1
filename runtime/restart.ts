import { isObject } from '../machines/protocol/json.ts'
import type { RestartPolicy, RestartType } from '../machines/supervision.ts'
import { checkNames } from './known-names.ts'

/** How an agent's work is restarted: by type alone, or with an intensity and a period of its own. */
export type RestartOption = RestartType | (Pick<RestartPolicy, 'type'> & Partial<RestartPolicy>)

/** OTP's: once within 5 seconds. */
const DEFAULTS = { intensity: 1, periodMs: 5000 } as const satisfies Partial<RestartPolicy>

/** The policy that an author means: never, unless told otherwise. Throws TypeError or RangeError that says what to write instead. */
export function restartPolicy(option: RestartOption = 'temporary'): RestartPolicy {
  if (isObject(option)) checkNames(option, ['type', 'intensity', 'periodMs'], 'restart')
  const { type, intensity, periodMs } = { ...DEFAULTS, ...(typeof option === 'string' ? { type: option } : option) }
  if (type !== 'temporary' && type !== 'transient') {
    const permanent = (type as unknown) === 'permanent' ? ' A task has an end, so its work cannot be permanent.' : ''
    throw new TypeError(`restart has to be 'temporary' or 'transient', or { type, intensity, periodMs }.${permanent}`)
  }
  if (!Number.isInteger(intensity) || intensity < 0) throw new RangeError(`restart.intensity has to be a whole number from 0, not ${String(intensity)}.`)
  if (typeof periodMs !== 'number' || !(periodMs > 0)) throw new RangeError(`restart.periodMs has to be milliseconds above 0, not ${String(periodMs)}.`)
  return { type, intensity, periodMs }
}
