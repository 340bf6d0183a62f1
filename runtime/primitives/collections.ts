/** An entry of a {@link ReleasingMap}; emptied when it is deleted. */
class Entry<Value> {
  value: Value | undefined

  constructor(value: Value) {
    this.value = value
  }
}

/**
 * A Map for entries that are often added and deleted. It stores values in entry objects, which are emptied on deletion.
 * A plain Map rehashes into a new table, and the old one stays linked to it. Once the old table is in V8's old
 * generation, minor collections keep all values that it had. With Maps a task leaves 8.4 kB behind instead of 1.0 (Node
 * 24; `test/runtime/work/left-behind.test.ts` measures it).
 */
export class ReleasingMap<Value extends object, Name = string> {
  /** Made for the first entry. */
  #entries: Map<Name, Entry<Value>> | undefined

  get size(): number {
    return this.#entries?.size ?? 0
  }

  get(name: Name): Value | undefined {
    return this.#entries?.get(name)?.value
  }

  has(name: Name): boolean {
    return this.#entries?.has(name) === true
  }

  set(name: Name, value: Value): void {
    this.#entries ??= new Map()
    const entry = this.#entries.get(name)
    if (entry) entry.value = value
    else this.#entries.set(name, new Entry(value))
  }

  delete(name: Name): void {
    const entry = this.#entries?.get(name)
    if (!entry) return
    entry.value = undefined
    this.#entries?.delete(name)
  }

  values(): Value[] {
    return this.entries().map(([, value]) => value)
  }

  entries(): [name: Name, value: Value][] {
    return Array.from(this.#entries ?? [], ([name, { value }]) => [name, value as Value])
  }

  clear(): void {
    for (const [name] of this.entries()) this.delete(name)
  }
}

/** Maximum values of each generation. */
const MOST = 100_000

/**
 * Cache with two generations, without timers and scans: after `keepMs`, or 100,000 values, the younger generation
 * becomes the older, and the older is dropped. So a value stays for at least `keepMs` after its last use, unless there
 * are more than 100,000.
 */
export class TwoGenerationCache<Value> {
  readonly #make: () => Value
  readonly #keepMs: number
  #younger = new Map<string, Value>()
  #older = new Map<string, Value>()
  #sinceMs = -Infinity

  constructor(make: () => Value, keepMs: number) {
    this.#make = make
    this.#keepMs = keepMs
  }

  /** Number of cached values. */
  get size(): number {
    return this.#younger.size + this.#older.size
  }

  /** The value of a name; created if there is none. */
  get(name: string, nowMs: number): Value {
    if (Math.abs(nowMs - this.#sinceMs) >= this.#keepMs || this.#younger.size >= MOST) this.#turn(nowMs)
    const young = this.#younger.get(name)
    if (young !== undefined) return young
    const value = this.#older.get(name) ?? this.#make()
    this.#older.delete(name)
    this.#younger.set(name, value)
    return value
  }

  /** The cached value of a name, if any. */
  find(name: string): Value | undefined {
    return this.#younger.get(name) ?? this.#older.get(name)
  }

  #turn(nowMs: number): void {
    this.#older = this.#younger
    this.#younger = new Map()
    this.#sinceMs = nowMs
  }
}

/** Memoizes the last result, for arguments that are the same in most requests. */
export function memoizeLast<Value>(make: (text: string) => Value): (text: string) => Value {
  let last: { readonly text: string; readonly value: Value } | undefined
  return text => {
    if (last?.text !== text) last = { text, value: make(text) }
    return last.value
  }
}

/** An empty list, shared. */
export const NONE: readonly never[] = []

/** A list without an item. */
export function without<Item>(list: readonly Item[], item: Item): readonly Item[] {
  return list.length === 1 && list[0] === item ? NONE : list.filter(other => other !== item)
}

/**
 * Adds to a list that is soon gone, or mostly has one item: those of a turn, for example. A list grows in place, but an
 * empty one is replaced: its first `push` would reserve 17 places. See {@link appendToKept}.
 */
export function appendItem<Item>(list: readonly Item[], item: Item): readonly Item[] {
  if (list.length === 0) return [item]
  ;(list as Item[]).push(item)
  return list
}

/** Up to this length, {@link appendToKept} copies the list. */
const SHORT = 8

/**
 * Adds to a list that stays in memory: those of a stored task, for example. Unlike {@link appendItem} it copies a short
 * list, so that the list has no spare capacity: `push` would reserve 17 places, as `[...list, item]` does. A long list
 * grows in place.
 */
export function appendToKept<Item extends object>(list: Item[], item: Item): Item[] {
  if (list.length === 0) return [item]
  if (list.length < SHORT) return list.toSpliced(list.length, 0, item)
  list.push(item)
  return list
}

/** Least-recently-used cache of values by name. */
export class LruCache<Value> {
  readonly #values = new Map<string, Value>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  /** The value of this name; created if there is none. `undefined` is not cached. */
  get<Made extends Value | undefined>(name: string, make: () => Made): Value | Made {
    const value = this.#values.get(name) ?? make()
    if (value !== undefined) this.set(name, value)
    return value
  }

  set(name: string, value: Value): void {
    this.#values.delete(name)
    this.#values.set(name, value)
    for (const oldest of this.#values.keys()) {
      if (this.#values.size <= this.#limit) break
      this.#values.delete(oldest)
    }
  }

  delete(name: string): void {
    this.#values.delete(name)
  }

  clear(): void {
    this.#values.clear()
  }
}

/**
 * A WeakMap replacement that stores the value in a symbol property of the key. A WeakMap (of ephemerons) keeps values,
 * and everything reachable from them, until a full collection. With it a task leaves 13.8 kB behind instead of 1.0
 * (Node 24; `test/runtime/work/left-behind.test.ts` measures it).
 */
export class PrivateProperty<Key extends object, Value> {
  readonly #name: symbol

  /** With a symbol of `Symbol.for`, all copies of this package in the process share the values. */
  constructor(name = Symbol('kept')) {
    this.#name = name
  }

  get(key: Key): Value | undefined {
    return (key as Record<symbol, Value | undefined>)[this.#name]
  }

  set(key: Key, value: Value): void {
    Object.defineProperty(key, this.#name, { value, writable: true, configurable: true })
  }
}
