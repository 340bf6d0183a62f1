import type { StreamResponse } from '../../machines/protocol/objects.ts'
import type { Seen, TaskTail } from './task-tail.ts'
import { toWireEvent } from './wire-view.ts'

/** What a call says of how its events are told. */
interface Telling {
  /** Generations are shown. */
  readonly reliable: boolean
  /** Hears the generation of each event, just before the stream gives that. */
  readonly numbered: ((generation: number) => void) | undefined
}

/** What a stream tells: `first`, then the events of the tail as a client sees them. */
export interface Opened {
  readonly first?: StreamResponse
  readonly following?: { readonly tail: TaskTail; readonly call: Telling }
}

/**
 * The stream of an operation, which opens when it is first asked. An async generator would do the same, but each in a chain
 * of them costs every event some promises more. Who asks before the last answer gets theirs after it.
 */
export class TaskStream implements AsyncGenerator<StreamResponse, void, undefined> {
  readonly #open: () => Opened | Promise<Opened>
  readonly #failure: (error: unknown) => unknown
  #state: 'new' | 'open' | 'over' = 'new'
  #following: Opened['following']
  #asked = 0
  #last: Promise<unknown> | undefined

  /** `failure` makes the error that its reader gets of one that comes. */
  constructor(open: () => Opened | Promise<Opened>, failure: (error: unknown) => unknown) {
    this.#open = open
    this.#failure = failure
  }

  next(): Promise<IteratorResult<StreamResponse, undefined>> {
    this.#asked += 1
    const step = this.#asked === 1 ? this.#step() : Promise.allSettled([this.#last]).then(() => this.#step())
    this.#last = step
    return step
  }

  /** Hands the rest of the stream to `see`, as {@link TaskTail.each} does. */
  async each(see: (event: StreamResponse) => Seen): Promise<void> {
    try {
      const first = this.#state === 'new' ? await this.#begin() : undefined
      if (first && (await see(first)) === false) return
      if (!this.#following) return
      const { tail, call } = this.#following
      await tail.each(event => {
        call.numbered?.(event.generation)
        return see(toWireEvent(event, call.reliable))
      })
    } catch (error) {
      throw this.#failure(error)
    } finally {
      this.#end()
    }
  }

  async return(): Promise<IteratorResult<StreamResponse, undefined>> {
    this.#end()
    return OVER
  }

  async throw(error: unknown): Promise<never> {
    this.#end()
    throw error
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async #step(): Promise<IteratorResult<StreamResponse, undefined>> {
    try {
      const first = this.#state === 'new' ? await this.#begin() : undefined
      const step = first ? { done: false as const, value: first } : await this.#goOn()
      this.#asked -= 1
      return step
    } catch (error) {
      this.#asked -= 1
      this.#end()
      throw this.#failure(error)
    }
  }

  /** Opens the stream, and gives what it begins with. */
  async #begin(): Promise<StreamResponse | undefined> {
    this.#state = 'open'
    const { first, following } = await this.#open()
    this.#following = following
    if (this.#state === 'open') return first
    // Its reader has left meanwhile.
    this.#end()
    return undefined
  }

  async #goOn(): Promise<IteratorResult<StreamResponse, undefined>> {
    if (!this.#following) return OVER
    const { tail, call } = this.#following
    for (;;) {
      const event = tail.take()
      const more = event ? undefined : tail.more()
      if (event) {
        call.numbered?.(event.generation)
        return { done: false, value: toWireEvent(event, call.reliable) }
      }
      if (!more) return OVER
      await more
    }
  }

  #end(): void {
    this.#state = 'over'
    this.#following?.tail.end()
    this.#following = undefined
  }
}

const OVER = { done: true, value: undefined } as const

/** Hands every event of a stream, or of what is left of it, to `see`. */
export async function eachOf(events: AsyncGenerator<object, void, undefined>, see: (event: object) => Seen): Promise<void> {
  if (events instanceof TaskStream) return events.each(see)
  for await (const event of events) {
    if ((await see(event)) === false) return
  }
}
