/**
 * The promise of a step as the author's code gets it: it knows whether anybody has waited for it. `await` and everything that
 * calls `then` read its `constructor` first. Its rejection does not end the process.
 */
export class StepPromise<T> extends Promise<T> {
  #isAwaited = false

  static {
    Reflect.defineProperty(this.prototype, 'constructor', {
      get(this: object) {
        if (#isAwaited in this) this.#isAwaited = true
        return Promise
      }
    })
  }

  /** Settles as `promise` does; `rejected` hears if that rejects. */
  static of<T>(promise: Promise<T>, rejected: (error: unknown, step: StepPromise<T>) => void): StepPromise<T> {
    const step = new StepPromise<T>((resolve, reject) => void promise.then(resolve, reject))
    step.catch((error: unknown) => rejected(error, step))
    step.#isAwaited = false
    return step
  }

  get isAwaited(): boolean {
    return this.#isAwaited
  }
}
