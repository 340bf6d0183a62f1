import { taskNotFound } from '../../machines/protocol/errors.ts'
import type { StreamResponse, Task } from '../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import { type NativeVersion, NEXT_VERSION } from '../../machines/protocol/versions.ts'
import type { Budget } from '../access/call-context.ts'
import { memoizePerRound, roundEnd } from '../primitives/event-loop.ts'
import { jsonBytes } from '../primitives/json.ts'
import type { Scope } from '../store/rows.ts'
import type { MessageRow, ReadOptions, Store, StoredTask, TaskEvent } from '../store/store.ts'
import { applyEvents, applyMessage, newTaskRecord, projectTask } from '../store/task-record.ts'
import type { ReadResult, TaskTail } from './task-tail.ts'

export type { ReadResult } from './task-tail.ts'

/** How many events of a stream are sent in one round of the event loop, before other work. */
export const EVENTS_PER_ROUND = 32

/** The form of a call's tasks and events. */
export interface WireForm {
  /** In 1.1 they have their generation as a member. */
  readonly version: NativeVersion
  /** Whether they have their generation in metadata: with the reliability extension. */
  readonly reliable: boolean
}

/** Options of a call for the events of its stream. */
interface StreamOptions extends WireForm {
  /** Called with the generation of each event, just before the stream gives it. */
  readonly onGeneration: ((generation: number) => void) | undefined
}

/** Contents of a stream: `first`, then the events of the tail in wire form. */
export interface OpenedStream {
  readonly first?: StreamResponse
  readonly following?: { readonly tail: TaskTail; readonly call: StreamOptions }
}

/**
 * The stream of an operation, which opens on the first read. An async generator would do the same, but costs several
 * more promises per event. Concurrent calls of `next` are answered in order.
 */
export class TaskStream implements AsyncGenerator<StreamResponse, void, undefined> {
  readonly #open: () => OpenedStream | Promise<OpenedStream>
  readonly #failure: (error: unknown) => unknown
  #state: 'new' | 'open' | 'over' = 'new'
  #following: OpenedStream['following']
  #pendingReads = 0
  #last: Promise<unknown> | undefined

  /** `failure` converts an error to the one that the reader gets. */
  constructor(open: () => OpenedStream | Promise<OpenedStream>, failure: (error: unknown) => unknown) {
    this.#open = open
    this.#failure = failure
  }

  next(): Promise<IteratorResult<StreamResponse, undefined>> {
    this.#pendingReads += 1
    const step = this.#pendingReads === 1 ? this.#step() : Promise.allSettled([this.#last]).then(() => this.#step())
    this.#last = step
    return step
  }

  /** Calls `see` with the rest of the stream, as {@link TaskTail.each} does. */
  async each(see: (event: StreamResponse) => ReadResult): Promise<void> {
    try {
      const first = this.#state === 'new' ? await this.#begin() : undefined
      if (first && (await see(first)) === false) return
      if (!this.#following) return
      const { tail, call } = this.#following
      await tail.each(event => {
        call.onGeneration?.(event.generation)
        return see(toWireEvent(event, call))
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
      this.#pendingReads -= 1
      return step
    } catch (error) {
      this.#pendingReads -= 1
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
        call.onGeneration?.(event.generation)
        return { done: false, value: toWireEvent(event, call) }
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
  see: (event: object) => ReadResult
): Promise<void> {
  if (events instanceof TaskStream) return events.each(see)
  for await (const event of events) {
    if ((await see(event)) === false) return
  }
}

/** A stored task in wire form. */
export function toWireTask({ task, generation }: StoredTask, { version, reliable }: WireForm): Task {
  const shown = reliable ? { ...task, metadata: withGeneration(task.metadata, generation) } : task
  return version === NEXT_VERSION ? { ...shown, generation: String(generation) } : shown
}

/** An event in wire form: one shared object for all streams with this form. */
export function toWireEvent(event: TaskEvent, { version, reliable }: WireForm): StreamResponse {
  if (version === NEXT_VERSION) return reliable ? numberedTwice(event) : numbered(event)
  return reliable ? numberedInMetadata(event) : event.update
}

const numbered = memoizePerRound(({ update, generation }: TaskEvent) =>
  withMembers(update, () => ({ generation: String(generation) }))
)

const numberedInMetadata = memoizePerRound(({ update, generation }: TaskEvent) =>
  withMembers(update, metadata => ({ metadata: withGeneration(metadata, generation) }))
)

const numberedTwice = memoizePerRound(({ update, generation }: TaskEvent) =>
  withMembers(update, metadata => ({
    metadata: withGeneration(metadata, generation),
    generation: String(generation)
  }))
)

/** A copy of an update with other members, made of its metadata. */
function withMembers(
  update: TaskEvent['update'],
  members: (metadata: Record<string, unknown> | undefined) => Pick<Task, 'generation' | 'metadata'>
): StreamResponse {
  if ('statusUpdate' in update) {
    const { statusUpdate } = update
    return { statusUpdate: Object.assign({}, statusUpdate, members(statusUpdate.metadata)) }
  }
  const { artifactUpdate } = update
  return { artifactUpdate: Object.assign({}, artifactUpdate, members(artifactUpdate.metadata)) }
}

function withGeneration(metadata: Record<string, unknown> | undefined, generation: number): Record<string, unknown> {
  return { ...metadata, [RELIABILITY_EXTENSION]: { generation } }
}

/** The parts of a task in the answer to a call: in 1.1 with its timeline, which is whole without a length. */
export function readOptionsFor(
  { version }: Pick<WireForm, 'version'>,
  { historyLength, timelineLength = Infinity }: Pick<ReadOptions, 'historyLength' | 'timelineLength'> = {}
): ReadOptions {
  return version === NEXT_VERSION ? { historyLength, timelineLength } : { historyLength }
}

/**
 * How a store reads a task that is then completed: without artifacts and history if it is large, and always for a
 * timeline, which is made of its entries.
 */
export function firstRead(options: ReadOptions): ReadOptions {
  return options.timelineLength === undefined ? { ...options, within: LARGE_BYTES } : { within: NOTHING_AT_ONCE }
}

/** As `within`, so that a store gives no task with artifacts and history, not even an empty one. */
export const NOTHING_AT_ONCE = -1

/** A task with more bytes than this is read and answered in pieces. */
export const LARGE_BYTES = 1024 * 1024

/**
 * The size of a piece in bytes, and its maximum of events: even the smallest then fill one. Both are small, so that a
 * piece is garbage before the next collection.
 */
export const PIECE_BYTES = LARGE_BYTES / 4
const EVENTS_A_PIECE = 1024

/** The part of a store that reads whole tasks. */
export type WholeTaskReader = Pick<Store, 'readTask' | 'readTaskMessages' | 'readEvents'>

/** The part of a store that adapters read beside the operations. */
export type HistoryReader = WholeTaskReader & Pick<Store, 'readMessages' | 'measureTasks'>

/** Reads a task. A large one waits for `budget`, and is read in pieces, so that it does not block the event loop. */
export async function readWhole(
  store: WholeTaskReader,
  scope: Scope,
  taskId: string,
  options: ReadOptions = {},
  budget?: Budget
): Promise<StoredTask | undefined> {
  const stored = await store.readTask(scope, taskId, firstRead(options))
  return stored && loadWholeTask(store, scope, stored, options, budget)
}

/** Reads a task as {@link readWhole} does. Throws TaskNotFound. */
export async function readWholeOrThrow(
  store: WholeTaskReader,
  scope: Scope,
  taskId: string,
  options: ReadOptions,
  budget?: Budget
): Promise<StoredTask> {
  const whole = await readWhole(store, scope, taskId, options, budget)
  if (!whole) throw taskNotFound(taskId)
  return whole
}

/** The whole of a task that was read with `firstRead(options)`. Throws TaskNotFound. */
export async function completedOrThrow(
  store: WholeTaskReader,
  scope: Scope,
  taskId: string,
  stored: StoredTask | undefined,
  options: ReadOptions,
  budget?: Budget
): Promise<StoredTask> {
  const whole = stored && (await loadWholeTask(store, scope, stored, options, budget))
  if (!whole) throw taskNotFound(taskId)
  return whole
}

/** Reads a task of a scope, by default without history and artifacts. Throws TaskNotFound. */
export async function readTaskOrThrow(
  store: Pick<Store, 'readTask'>,
  scope: Scope,
  taskId: string,
  options: ReadOptions = { historyLength: 0, artifacts: false }
): Promise<StoredTask> {
  const stored = await store.readTask(scope, taskId, options)
  if (!stored) throw taskNotFound(taskId)
  return stored
}

/**
 * Adds artifacts and history to a large task, which a store gave without them. `undefined` if the task was removed
 * since.
 */
export async function loadWholeTask(
  store: WholeTaskReader,
  scope: Scope,
  stored: StoredTask,
  options: ReadOptions,
  budget?: Budget
): Promise<StoredTask | undefined> {
  const { task, generation, large } = stored
  if (!large) return stored
  if (options.timelineLength === undefined || large.bytes > LARGE_BYTES) await budget?.(large.bytes)
  const record = newTaskRecord({ ...scope, contextId: task.contextId }, task.id, options.timelineLength !== undefined)
  const messages: MessageRow[] = []
  while (messages.length < large.messages) {
    const piece = await store.readTaskMessages(scope, task.id, messages.length, PIECE_BYTES)
    if (piece.length === 0) return undefined
    messages.push(...piece.slice(0, large.messages - messages.length))
    await roundEnd()
  }
  let next = 0
  for await (const piece of eventPieces(store, scope, task.id, generation))
    next = applyEvents(record, piece, messages, next)
  for (const message of messages.slice(next)) applyMessage(record, message)
  if (record.generation < generation) return undefined
  return projectTask(record, options)
}

/**
 * The events of a task up to a generation, in pieces, so that they do not block the event loop. The store reads the
 * next piece while the caller uses one. They end early if the store does not have all of them.
 */
export async function* eventPieces(
  store: Pick<Store, 'readEvents'>,
  scope: Scope,
  taskId: string,
  generation: number
): AsyncGenerator<TaskEvent[], void, undefined> {
  const read = (after: number) =>
    store.readEvents(scope, taskId, after, Math.min(EVENTS_A_PIECE, generation - after), PIECE_BYTES)
  let after = 0
  for (let next: Promise<TaskEvent[]> | undefined = read(after); next;) {
    // Messages have generations too, so the limit may let later events in.
    const piece = (await next).filter(event => event.generation <= generation)
    const newest = piece.at(-1)
    if (!newest) return
    after = newest.generation
    next = after < generation ? read(after) : undefined
    // The caller may leave before it is awaited.
    next?.catch(() => {})
    yield piece
    if (next) await roundEnd()
  }
}

/** All events of a task up to a generation, read in pieces. */
export async function readAllEvents(
  store: Pick<Store, 'readEvents'>,
  scope: Scope,
  taskId: string,
  generation: number
): Promise<TaskEvent[]> {
  const events: TaskEvent[] = []
  for await (const piece of eventPieces(store, scope, taskId, generation)) events.push(...piece)
  return events
}

/** Bytes of the parts that an event adds to its task. */
export function eventBytes({ update }: TaskEvent): number {
  return jsonBytes(
    'artifactUpdate' in update ? update.artifactUpdate.artifact.parts : update.statusUpdate.status.message?.parts
  )
}
