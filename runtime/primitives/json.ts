import { isObject, pathText } from '../../machines/protocol/codec/json.ts'

/** Bytes per member or entry for quotes, colon and comma. */
const AROUND = 4

/** Values that are still to be measured; one list for all calls. */
const rest: unknown[] = []

/**
 * Approximate size of a value as JSON text, in bytes of UTF-8; it ignores escapes and digits of numbers. It does not
 * recurse.
 */
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
        bytes += AROUND + Buffer.byteLength(name)
        rest.push((next as Record<string, unknown>)[name])
      }
    }
  }
  return bytes
}

/**
 * Whether two JSON values are equal. `isDeepStrictEqual` takes three times as long, because it also compares what JSON
 * does not have.
 */
export function sameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one))
    return (
      Array.isArray(other) && one.length === other.length && one.every((entry, place) => sameJson(entry, other[place]))
    )
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length &&
    names.every(name => Object.hasOwn(other, name) && sameJson(one[name], other[name]))
  )
}

/** Objects that JSON empties or changes, by class, with what to write instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  Map: 'an object: Object.fromEntries(map)',
  Set: 'a list: [...set]',
  Date: 'a text: date.toISOString()',
  URL: 'a text: url.href',
  RegExp: 'its source: regExp.source',
  Error: 'its text: error.message',
  DOMException: 'its text: error.message',
  Promise: 'its result: await it first',
  ArrayBuffer: "a text: Buffer.from(bytes).toString('base64')",
  Uint8Array: "a text: Buffer.from(bytes).toString('base64')"
}

/**
 * The use of a value. A value that is `sent` only goes out, so an object with a `toJSON` counts as what that returns.
 * The author's code reads back one that is `kept`. The `context` of a chart may also have actors, which XState persists
 * itself.
 */
export type JsonUse = 'sent' | 'kept' | 'context'

/** A part of a value that JSON does not keep: the path to it, and the rest of a sentence that begins with the path. */
interface Loss {
  readonly path: (string | number)[]
  readonly text: string
}

/**
 * From this depth on a value that is sent is refused before it is copied: JSON.stringify takes the square of the depth.
 */
const FAR_TOO_DEEP = 128

/**
 * The only judge of what is JSON in values of authors: the first part that JSON would change, in a sentence with its
 * path and what to write instead; `undefined` if there is none. Members that are `undefined` are absent in JSON, and
 * allowed.
 */
export function jsonLoss(value: unknown, name: string, use: JsonUse): string | undefined {
  const loss = lossIn(value, use, [])
  return loss && `${pathText(name, loss.path)} ${loss.text}`
}

/** The loss in a value; `around` are the objects that contain it. */
function lossIn(given: unknown, use: JsonUse, around: object[]): Loss | undefined {
  const value = use === 'sent' && hasToJson(given) ? given.toJSON('') : given
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : lost(String(value), 'a finite number, or null')
    case 'bigint':
      return lost('a BigInt', 'a text: String(value)')
    case 'object':
      return value === null ? undefined : lossOf(value, use, around)
    case 'undefined':
    case 'function':
    case 'symbol':
    default:
      return lost(value === undefined ? 'undefined' : `a ${typeof value}`, 'null, or leave it out')
  }
}

function lossOf(value: object, use: JsonUse, around: object[]): Loss | undefined {
  if (!isPlain(value)) {
    if (!isActor(value)) return lostObject(value)
    return use === 'context' ? undefined : lost('an actor', 'its id')
  }
  if (around.includes(value)) return lost('an object that contains itself', 'its id')
  if (use === 'sent' && around.length === FAR_TOO_DEEP)
    return { path: [], text: 'must not be nested more than 64 deep.' }
  around.push(value)
  const loss = Array.isArray(value)
    ? lossInList(value, use, around)
    : lossInMembers(value as Record<string, unknown>, use, around)
  around.pop()
  return loss
}

function lossInList(list: readonly unknown[], use: JsonUse, around: object[]): Loss | undefined {
  for (let i = 0; i < list.length; i += 1) {
    const loss = lossIn(list[i], use, around)
    if (loss) return below(i, loss)
  }
  return undefined
}

function lossInMembers(object: Readonly<Record<string, unknown>>, use: JsonUse, around: object[]): Loss | undefined {
  for (const name in object) {
    const member = object[name]
    const loss = member === undefined ? undefined : lossIn(member, use, around)
    if (loss) return below(name, loss)
  }
  return undefined
}

function below(step: string | number, { path, text }: Loss): Loss {
  return { path: [step, ...path], text }
}

function lost(what: string, instead: string): Loss {
  return { path: [], text: `is ${what}, which JSON does not keep. Write ${instead}.` }
}

function lostObject(value: object): Loss {
  const kind = ArrayBuffer.isView(value) ? 'Uint8Array' : kindIn(value)
  const instead = INSTEAD[kind]
  if (instead !== undefined) return lost(`${/^[AE]/.test(kind) ? 'an' : 'a'} ${kind}`, instead)
  return lost(`an instance of ${value.constructor?.name || 'a class'}`, 'its data as a plain object')
}

/** Whether an object is a list, or made without a class, also if it is of another realm. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === Array.prototype || prototype === null) return true
  const root: unknown = Array.isArray(value) ? Object.getPrototypeOf(prototype) : prototype
  return root !== null && Object.getPrototypeOf(root) === null
}

/** A deep copy of lists and plain objects, also of those that contain themselves. Everything else is shared. */
export function plainCopy<T>(value: T, copies = new Map<unknown, unknown>()): T {
  if (typeof value !== 'object' || value === null || !isPlain(value)) return value
  const known = copies.get(value)
  if (known !== undefined) return known as T
  const copy: Record<string, unknown> = Array.isArray(value) ? ([] as never) : {}
  copies.set(value, copy)
  for (const [name, member] of Object.entries(value)) copy[name] = plainCopy(member, copies)
  return copy as T
}

function isActor(value: object): boolean {
  return 'sessionId' in value && 'send' in value && 'ref' in value
}

function hasToJson(value: unknown): value is { toJSON(key: string): unknown } {
  return typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
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
    const loss = value === was[key] ? undefined : jsonLoss(value, pathText('context', [key]), 'context')
    if (loss !== undefined) return loss
  }
  return undefined
}
