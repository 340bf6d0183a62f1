import { isObject } from '../../machines/protocol/codec/json.ts'

/** Bytes per member or entry for quotes, colon and comma. */
const AROUND = 4

/** Values that are still to be measured; one list for all calls. */
const rest: unknown[] = []

/** Approximate size of a value as JSON text, in bytes of UTF-8; it ignores escapes and digits of numbers. It does not recurse. */
export function jsonBytes(value: unknown): number {
  let bytes = 0
  const others = rest.length
  rest.push(value)
  while (rest.length > others) {
    const next = rest.pop()
    bytes += AROUND
    if (typeof next === 'string') bytes += Buffer.byteLength(next)
    else if (Array.isArray(next)) for (const entry of next) rest.push(entry)
    else if (typeof next === 'object' && next !== null) {
      for (const name in next) {
        bytes += AROUND + name.length
        rest.push((next as Record<string, unknown>)[name])
      }
    }
  }
  return bytes
}

/** Whether two JSON values are equal. `isDeepStrictEqual` takes three times as long, because it also compares what JSON does not have. */
export function sameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one)) return Array.isArray(other) && one.length === other.length && one.every((entry, place) => sameJson(entry, other[place]))
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every(name => Object.hasOwn(other, name) && sameJson(one[name], other[name]))
}

/** Classes whose objects JSON empties or changes, with what to write instead. */
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ['Map', 'an object: Object.fromEntries(map)'],
  ['Set', 'a list: [...set]'],
  ['Date', 'a text: date.toISOString()'],
  ['RegExp', 'its source: regExp.source'],
  ['Error', 'its text: error.message'],
  ['Promise', 'its result: await it first'],
  ['WeakMap', 'what it holds'],
  ['WeakSet', 'what it holds'],
  ['ArrayBuffer', "a text: Buffer.from(bytes).toString('base64')"],
  ['Uint8Array', "a text: Buffer.from(bytes).toString('base64')"]
])

/**
 * The first part of a value that JSON would change, in a sentence with its path and what to write instead; `undefined` if there is
 * none. Actors, which XState persists itself, and objects with a `toJSON` are skipped.
 */
export function jsonLoss(value: unknown, name: string, seen: Set<object> = new Set()): string | undefined {
  if (typeof value !== 'object' || value === null || seen.has(value)) return undefined
  seen.add(value)
  const prototype: unknown = Object.getPrototypeOf(value)
  const isPlain = prototype === Object.prototype || prototype === null || Array.isArray(value)
  const kind = isPlain ? '' : kindIn(value)
  const instead = INSTEAD.get(kind)
  if (instead !== undefined) return `${name} is ${/^[AE]/.test(kind) ? 'an' : 'a'} ${kind}, which JSON does not keep. Write ${instead}.`
  if (!isPlain && ('sessionId' in value || 'toJSON' in value)) return undefined
  for (const [key, member] of Object.entries(value)) {
    const loss = typeof member === 'object' ? jsonLoss(member, Array.isArray(value) ? `${name}[${key}]` : `${name}.${key}`, seen) : undefined
    if (loss !== undefined) return loss
  }
  return undefined
}

/** The built-in class of an object, such as `Map`; `Object` for others. */
export function kindIn(value: object): string {
  return Object.prototype.toString.call(value).slice('[object '.length, -1)
}

/** `jsonLoss` of a chart's context after a transition. Checks only members that the transition has changed. */
export function contextLoss(context: unknown, before: unknown): string | undefined {
  if (context === before || !isObject(context)) return undefined
  const was: Readonly<Record<string, unknown>> = isObject(before) ? before : {}
  for (const [key, value] of Object.entries(context)) {
    const loss = value === was[key] ? undefined : jsonLoss(value, `context.${key}`)
    if (loss !== undefined) return loss
  }
  return undefined
}
