import { signal } from '@preact/signals'

/** The difference between the hub's clock and this one, in milliseconds. */
let aheadMs = 0

/** The hub's time in milliseconds since 1970, updated every second. */
export const nowMs = signal(Date.now())

setInterval(() => (nowMs.value = Date.now() + aheadMs), 1000)

/** Sets the hub's time. */
export function setClock(hubNowMs: number): void {
  aheadMs = hubNowMs - Date.now()
  nowMs.value = hubNowMs
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

const CLOCK_FACE = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 })

/** The time of day, to the millisecond. */
export function timeText(atMs: number): string {
  return CLOCK_FACE.format(atMs)
}
