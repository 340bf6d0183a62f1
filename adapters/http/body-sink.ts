import { HIGH_WATER_BYTES, type Sink, type SinkEvents } from './sink.ts'

const UTF8 = new TextEncoder()

/** Writes to the body of a Response, which whoever asked for it sends. */
export class BodySink implements Sink {
  /** The body. */
  readonly body: ReadableStream<Uint8Array>
  readonly #destroy: (() => void) | undefined
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #events: SinkEvents | undefined

  /** `destroy` ends the connection; without it the body fails instead. */
  constructor(destroy?: () => void) {
    this.#destroy = destroy
    this.body = new ReadableStream<Uint8Array>({
      start: controller => void (this.#controller = controller),
      pull: () => this.#events?.drained(),
      cancel: () => this.#events?.gone()
    }, new ByteLengthQueuingStrategy({ highWaterMark: HIGH_WATER_BYTES }))
  }

  open(events: SinkEvents): void {
    this.#events = events
  }

  get room(): number {
    return Number(this.#controller?.desiredSize)
  }

  write(text: string): void {
    if (text !== '') this.#controller?.enqueue(UTF8.encode(text))
  }

  end(): void {
    this.#controller?.close()
  }

  cutOff(): void {
    if (this.#destroy) this.#destroy()
    else this.#controller?.error(new Error('The client read nothing for 30 seconds.'))
  }
}
