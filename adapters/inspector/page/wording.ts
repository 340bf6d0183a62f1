import { eventName, OWN_EVENT } from '../../../machines/xstate-names.ts'

/** The beginning of an id, long enough to recognise it. Its hyphens do not break lines. */
export function shortId(id: string): string {
  return (id.length > 12 ? `${id.slice(0, 8)}…` : id).replaceAll('-', '\u2011')
}

/** A number of bytes for people: `12.3 kB`. */
export function sizeText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  return bytes < 1_000_000 ? `${(bytes / 1000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
}

/** A value as indented JSON, or as text if JSON cannot represent it. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? String(value)
}

/** The text of a frame as indented JSON, or as it is if it is cut. */
export function frameText(text: string): string {
  try {
    return jsonText(JSON.parse(text))
  } catch {
    return text
  }
}

/** The message of an error. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** A number with its noun, as in `1 task` and `2 tasks`. */
export function countText(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`
}

/** Names for XState's own events that charts do not name. */
const OWN: ReadonlyMap<string, string> = new Map([
  ['', 'by itself'],
  [OWN_EVENT.start, 'starts'],
  [OWN_EVENT.stop, 'stop'],
  [OWN_EVENT.resolve, 'resolves'],
  [OWN_EVENT.reject, 'rejects']
])

/** The name of an event as in charts; ids in it are shortened. */
export function eventText(type: string): string {
  return OWN.get(type) ?? eventName(type).replaceAll(/[\w-]{18,}\??/g, id => `${id.slice(0, 8)}…`)
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
