/**
 * An AbortController and its signal in one, for the streams of a connection: thousands may come and go in a second, and making
 * Node's takes as long as telling an event.
 */
export class Stop {
  #reason: DOMException | undefined
  #callbacks: (() => void)[] = []

  get aborted(): boolean {
    return this.#reason !== undefined
  }

  /** Why it was aborted; `undefined` before. */
  get reason(): unknown {
    return this.#reason
  }

  throwIfAborted(): void {
    if (this.#reason) throw this.#reason
  }

  /** Tells those who wait for it. May be called twice. */
  abort(): void {
    this.#reason ??= new DOMException('This was ended early.', 'AbortError')
    const callbacks = this.#callbacks
    this.#callbacks = []
    for (const callback of callbacks) callback()
  }

  /** Calls back when it is aborted, unless the answer was called before; it may be called twice. */
  onAbort(callback: () => void): () => void {
    this.#callbacks.push(callback)
    return () => void (this.#callbacks = this.#callbacks.filter(other => other !== callback))
  }
}
