/** When the newest messages were committed. Adding one allocates nothing, because each message of a flood is added. */
export class MessageTimes {
  readonly #capacity: number
  readonly #contexts: string[] = []
  readonly #ids: string[] = []
  readonly #times: number[] = []
  #next = 0

  constructor(capacity: number) {
    this.#capacity = capacity
  }

  /** Adds a message of a context, by the context's name. `atMs` is in milliseconds since 1970. */
  add(context: string, messageId: string, atMs: number): void {
    this.#contexts[this.#next] = context
    this.#ids[this.#next] = messageId
    this.#times[this.#next] = atMs
    this.#next = (this.#next + 1) % this.#capacity
  }

  /** The known times of a context's messages, by their ids. */
  of(context: string): Map<string, number> {
    const times = new Map<string, number>()
    for (const [i, name] of this.#contexts.entries())
      if (name === context) times.set(this.#ids[i] as string, this.#times[i] as number)
    return times
  }
}
