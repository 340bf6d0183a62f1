import type { WebhookNote } from '../store/rows.ts'
import type { Store } from '../store/store.ts'

interface Waiting {
  readonly note: WebhookNote
  readonly settle: (outcome: Promise<boolean>) => void
}

/** Writes the progress of webhooks in batches: entries that arrive during a write share the next one. */
export class ProgressWriter {
  readonly #store: Store
  #waiting: Waiting[] = []
  #writing: Promise<void> | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /** Resolves when the progress is stored, with whether the webhook exists. Rejects if the store fails. */
  write(note: WebhookNote): Promise<boolean> {
    return new Promise(settle => {
      this.#waiting.push({ note, settle })
      this.#writing ??= this.#writeAll()
    })
  }

  /** Resolves when nothing waits to be written. */
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
    // Synchronous with the last check, so that no entry is missed.
    this.#writing = undefined
  }
}
