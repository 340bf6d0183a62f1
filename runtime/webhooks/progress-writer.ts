import type { WebhookNote } from '../store/rows.ts'
import type { Store } from '../store/store.ts'

interface Waiting {
  readonly note: WebhookNote
  readonly settle: (outcome: Promise<boolean>) => void
}

/** Writes how far webhooks have come: those that come while a write is under way share the next. */
export class ProgressWriter {
  readonly #store: Store
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /** Resolves, when it is durable, to whether the webhook is there. Rejects if the store is in trouble. */
  write(note: WebhookNote): Promise<boolean> {
    return new Promise(settle => {
      this.#waiting.push({ note, settle })
      this.#writing ??= this.#writeAll()
    })
  }

  /** Resolves when none waits. */
  async settled(): Promise<void> {
    while (this.#writing) await this.#writing
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const written = this.#waiting
      this.#waiting = []
      const answers = this.#store.noteWebhooks(written.map(({ note }) => note))
      for (const [i, { settle }] of written.entries()) settle(answers.then(each => each[i] === true))
      await answers.catch(() => {})
    }
    // At once, so that no note comes between the last look and this.
    this.#writing = undefined
  }
}
