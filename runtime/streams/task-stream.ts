import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { memoizePerTick } from '../primitives/event-loop.ts'
import type { StoredTask, TaskEvent } from '../store/store.ts'
import type { Seen, TaskTail } from './task-tail.ts'

/** Options of a call for the events of its stream. */
interface StreamTerms {
  /** Whether events have their generation in metadata. */
  readonly reliable: boolean
  /** Called with the generation of each event, just before the stream gives it. */
  readonly numbered: ((generation: number) => void) | undefined
}

/** Contents of a stream: `first`, then the events of the tail in wire form. */
export interface Opened {
  readonly first?: StreamResponse
  readonly following?: { readonly tail: TaskTail; readonly call: StreamTerms }
}

/**
 * The stream of an operation, which opens on the first read. An async generator would do the same, but costs several more promises per
 * event. Concurrent calls of `next` are answered in order.
 */
export class TaskStream implements AsyncGenerator<StreamResponse, void, undefined> {
  readonly #open: () => Opened | Promise<Opened>
  readonly #failure: (error: unknown) => unknown
  #state: 'new' | 'open' | 'over' = 'new'
  #following: Opened['following']
  #asked = 0
  #last: Promise<unknown> | undefined

  /** `failure` converts an error to the one that the reader gets. */
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

  /** Calls `see` with the rest of the stream, as {@link TaskTail.each} does. */
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

  /** A part of an AsyncGenerator since ES2026. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#end()
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

  /** Opens the stream, and gives its first item, if any. */
  async #begin(): Promise<StreamResponse | undefined> {
    this.#state = 'open'
    const { first, following } = await this.#open()
    this.#following = following
    if (this.#state === 'open') return first
    // The reader has left while the stream opened.
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

/** Calls `see` with the remaining events of a stream. */
export async function eachOf(
  events: AsyncGenerator<object, void, undefined>,
  see: (event: object) => Seen
): Promise<void> {
  if (events instanceof TaskStream) return events.each(see)
  for await (const event of events) {
    if ((await see(event)) === false) return
  }
}

/** A stored task in wire form; with the reliability extension, its metadata has the generation. */
export function toWireTask({ task, generation }: StoredTask, showsGeneration: boolean): Task {
  return showsGeneration ? { ...task, metadata: withGeneration(task.metadata, generation) } : task
}

/** An event in wire form: one shared object for all streams with the extension, and one for all without. */
export function toWireEvent(event: TaskEvent, showsGeneration: boolean): StreamResponse {
  return showsGeneration ? numbered(event) : event.update
}

const numbered = memoizePerTick(({ update, generation }: TaskEvent): StreamResponse => {
  if ('statusUpdate' in update) {
    const { statusUpdate } = update
    return {
      statusUpdate: Object.assign({}, statusUpdate, { metadata: withGeneration(statusUpdate.metadata, generation) })
    }
  }
  const { artifactUpdate } = update
  return {
    artifactUpdate: Object.assign({}, artifactUpdate, { metadata: withGeneration(artifactUpdate.metadata, generation) })
  }
})

function withGeneration(metadata: Record<string, unknown> | undefined, generation: number): Record<string, unknown> {
  return { ...metadata, [RELIABILITY_EXTENSION]: { generation } }
}
