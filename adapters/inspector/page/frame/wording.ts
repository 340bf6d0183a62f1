import { OWN_EVENT } from '../../../../machines/xstate-names.ts'
import { eventName } from '../../../../machines/xstate-names.ts'

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
