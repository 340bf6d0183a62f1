/** An entry of a table; empty once it has gone. */
class Entry<Value> {
  value: Value | undefined

  constructor(value: Value) {
    this.value = value
  }
}

/**
 * A Map for entries that come and go all the time. A Map makes a new list of its entries whenever they have changed often
 * enough. The old one stays as it was, and leads to the new: once it is in the old generation, V8's quick collections keep all
 * that they held. So here the lists hold entries, which are emptied when they go. With Maps a task leaves 8.4 kB behind instead of
 * 1.0 (Node 24; `test/runtime/left-behind.test.ts` measures it).
 */
export class ReleasingMap<Value extends object, Name = string> {
  readonly #entries = new Map<Name, Entry<Value>>()

  get size(): number {
    return this.#entries.size
  }

  get(name: Name): Value | undefined {
    return this.#entries.get(name)?.value
  }

  has(name: Name): boolean {
    return this.#entries.has(name)
  }

  set(name: Name, value: Value): void {
    const entry = this.#entries.get(name)
    if (entry) entry.value = value
    else this.#entries.set(name, new Entry(value))
  }

  delete(name: Name): void {
    const entry = this.#entries.get(name)
    if (!entry) return
    entry.value = undefined
    this.#entries.delete(name)
  }

  values(): Value[] {
    return Array.from(this.#entries.values(), ({ value }) => value as Value)
  }

  entries(): [name: Name, value: Value][] {
    return Array.from(this.#entries, ([name, { value }]) => [name, value as Value])
  }

  clear(): void {
    for (const [name] of this.entries()) this.delete(name)
  }
}

/** How many values each half holds at the most. */
const MOST = 100_000

/**
 * Values by name, made when they are asked for and forgotten when nobody has for a while: at least `keepMs`, less only if
 * there are more than 100,000 in that time. Nothing runs over them for that: the younger half becomes the older, which is let go.
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

  /** How many are remembered. */
  get size(): number {
    return this.#younger.size + this.#older.size
  }

  /** The value of a name, a new one if there is none. */
  get(name: string, nowMs: number): Value {
    if (Math.abs(nowMs - this.#sinceMs) >= this.#keepMs || this.#younger.size >= MOST) this.#turn(nowMs)
    const young = this.#younger.get(name)
    if (young !== undefined) return young
    const value = this.#older.get(name) ?? this.#make()
    this.#older.delete(name)
    this.#younger.set(name, value)
    return value
  }

  /** The value of a name, if it is remembered. */
  find(name: string): Value | undefined {
    return this.#younger.get(name) ?? this.#older.get(name)
  }

  #turn(nowMs: number): void {
    this.#older = this.#younger
    this.#younger = new Map()
    this.#sinceMs = nowMs
  }
}

/** Makes something of a text, and keeps it until another text comes: for what is the same in most requests. */
export function memoizeLast<Value>(make: (text: string) => Value): (text: string) => Value {
  let last: { readonly text: string; readonly value: Value } | undefined
  return text => {
    if (last?.text !== text) last = { text, value: make(text) }
    return last.value
  }
}
