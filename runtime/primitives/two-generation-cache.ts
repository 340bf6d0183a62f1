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
