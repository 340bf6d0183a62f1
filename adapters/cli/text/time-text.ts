import { canonicalTimestamp } from '../../../machines/protocol/codec/timestamps.ts'
import { usageError } from '../command.ts'

const UNITS = { d: 24 * 60 * 60 * 1000, h: 60 * 60 * 1000, m: 60 * 1000, s: 1000 } as const

/** A duration in its largest unit: `3d`, `2h`, `5m`, `0s`. */
export function lengthText(ms: number): string {
  const [unit, unitMs] = Object.entries(UNITS).find(([, unitMs]) => ms >= unitMs) ?? ['s', UNITS.s]
  return `${Math.max(0, Math.floor(ms / unitMs))}${unit}`
}

/** A time and its distance from now: `2026-01-02T03:04:05.006Z (5m ago)`. */
export function momentText(atMs: number, nowMs: number): string {
  const distance = atMs > nowMs ? `in ${lengthText(atMs - nowMs)}` : `${lengthText(nowMs - atMs)} ago`
  return `${new Date(atMs).toISOString()} (${distance})`
}

/**
 * Parses the time in an option: an RFC 3339 time, a day, which begins at 0:00 UTC, or a duration before now, as in `2h`. Throws a
 * usage error for anything else.
 */
export function readMoment(option: string, text: string, nowMs: number): string {
  const [, count = '', unit = ''] = /^(\d{1,6})([dhms])$/.exec(text) ?? []
  const length = UNITS[unit as keyof typeof UNITS] as number | undefined
  const day = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text
  const moment = canonicalTimestamp(length === undefined ? day : new Date(nowMs - Number(count) * length).toISOString())
  if (moment !== undefined) return moment
  throw usageError(
    `${option} takes a time such as 2026-01-31T12:00:00Z, a day such as 2026-01-31, or a length such as 30m, 2h or 7d, not ${JSON.stringify(text)}.`
  )
}
