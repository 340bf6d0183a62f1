import { signal } from '@preact/signals'

/** The difference between the hub's clock and this one, in milliseconds. */
let aheadMs = 0

/** The hub's time in milliseconds since 1970, updated every second. */
export const nowMs = signal(Date.now())

setInterval(() => (nowMs.value = Date.now() + aheadMs), 1000)

/** The hub's time now, in milliseconds since 1970. */
export function hubNow(): number {
  return Date.now() + aheadMs
}

/** Sets the hub's time. */
export function setClock(hubNowMs: number): void {
  aheadMs = hubNowMs - Date.now()
  nowMs.value = hubNowMs
}

/**
 * Corrects the hub's time where a hello came late: it is past everything that the hub has dated. Milliseconds since
 * 1970; NaN changes nothing.
 */
export function noteTime(datedMs: number): void {
  if (datedMs >= hubNow()) aheadMs = datedMs + 1 - Date.now()
}

const UNITS = [
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'min', ms: 60_000 },
  { name: 's', ms: 1000 }
] as const

/** The age of something in its largest unit: `12 s`. */
export function ageText(sinceMs: number, now: number): string {
  const passed = Math.max(0, now - sinceMs)
  const unit = UNITS.find(({ ms }) => passed >= ms)
  return unit ? `${Math.floor(passed / unit.ms)} ${unit.name}` : 'now'
}

/** How long ago something was: `12 s ago`. */
export function agoText(sinceMs: number, now: number): string {
  const age = ageText(sinceMs, now)
  return age === 'now' ? 'just now' : `${age} ago`
}

/** The time that is left, in its two largest units: `23 h 59 min`. */
export function leftText(leftMs: number): string {
  const seconds = Math.max(0, Math.ceil(leftMs / 1000))
  const [days, hours, minutes] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60
  ]
  if (days > 0) return `${days} d ${hours} h`
  if (hours > 0) return `${hours} h ${minutes} min`
  return minutes > 0 ? `${minutes} min ${seconds % 60} s` : `${seconds} s`
}

/** A length of time: `850 ms`, `2.4 s`, `3 min 5 s`. */
export function spanText(ms: number): string {
  if (ms < 1000) return `${ms} ms`
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : leftText(ms)
}

const CLOCK_FACE = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3
})

/** The time of day, to the millisecond. */
export function timeText(atMs: number): string {
  return CLOCK_FACE.format(atMs)
}

/** A time of the wire as one of this place: `26 Nov 2026, 08:28:00`. */
export function dateText(timestamp = ''): string {
  return Number.isNaN(Date.parse(timestamp))
    ? timestamp
    : new Date(timestamp).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
}
