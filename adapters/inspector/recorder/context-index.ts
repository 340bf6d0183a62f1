import type { AnyActorRef } from 'xstate'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Part } from '../../../machines/protocol/objects.ts'
import {
  type Commit,
  type ContextKey,
  contextName,
  type Erasure,
  isErased,
  type MessageRow
} from '../../../runtime/store/store.ts'
import type { LiveActors, Observation } from '../../../runtime/telemetry-port.ts'
import type { InspectedContext, WatchedMessage } from '../feed.ts'
import { type Kept, Recent, shownWords, wordsOf } from './recent.ts'
import type { Redact } from './seen-step.ts'

/** The number of contexts kept, last changed first. */
export const KNOWN_CONTEXTS = 10_000

/** The number of contexts that are read when the observation begins. */
const LIVE_CONTEXTS = 1000

/** The number of messages whose time is kept, the newest. */
const TIMED_MESSAGES = 20_000

/** The messages that are read to find the first one of a context from before the observation. */
const FIRST_READ = { limit: 200, bytes: 256 * 1024 }

/** A listed context, which changes in place. Its row is made when a page gets it. */
export interface ListedContext extends Kept {
  readonly key: ContextKey
  /** The words of its first message; empty if unknown. */
  words: string
  /** Made of the words when a page first gets its row. */
  title: string | undefined
  readonly openedMs: number
  changedMs: number
  offer: StandingOffer | undefined
}

/** A standing offer, with the stored value of the author's chart that made it, if it is one. */
interface StandingOffer {
  readonly offerId: string
  readonly expiresMs: number
  readonly value: unknown
}

/** Receives changes of contexts. */
export interface ContextListener {
  changedContext(context: ListedContext): void
  removedContext(context: ListedContext): void
  /** A turn of a context added messages. */
  onMessages(commit: Commit): void
}

/** The sources of the index. */
interface ContextSources {
  /** The contexts in memory. */
  readonly live: { readonly live: readonly LiveActors[]; liveOf(name: string): LiveActors | undefined }
  readonly readMessages: Observation['store']['readMessages']
  /** The ids of the states of the author's negotiation chart that a stored value has. */
  readonly statesOf: (value: unknown) => readonly string[]
  readonly troubled: (error: unknown) => void
}

/** The contexts of all callers, from commits and from memory: what each is about, and its standing offer. */
export class ContextIndex {
  readonly #redact: Redact
  readonly #listener: ContextListener
  /** By context name. */
  readonly #contexts = new Recent<ListedContext>(KNOWN_CONTEXTS)
  readonly #times = new MessageTimes(TIMED_MESSAGES)
  #sources: ContextSources | undefined

  constructor(redact: Redact, listener: ContextListener) {
    this.#redact = redact
    this.#listener = listener
  }

  /** Reads from these sources from now on: those of another runtime after a reload of the agent. */
  readFrom(sources: ContextSources): void {
    this.#sources = sources
  }

  /** All contexts, last changed first. */
  get newest(): ListedContext[] {
    return this.#contexts.values().toSorted((a, b) => b.changedMs - a.changedMs)
  }

  /** The key of the newest context of an id. */
  keyOf(contextId: string): ContextKey | undefined {
    return this.#contexts.values().findLast(({ key }) => key.contextId === contextId)?.key
  }

  has(name: string): boolean {
    return this.#contexts.has(name)
  }

  /** When the messages of a context were committed, by their ids, as far as they were observed. */
  timesOf(key: ContextKey): ReadonlyMap<string, number> {
    return this.#times.of(contextName(key))
  }

  /**
   * Adds the contexts that are in memory already and have messages, as of now. Older ones are not in memory, and no
   * store lists them.
   */
  async readLive(nowMs: number): Promise<void> {
    const sources = this.#sources
    if (!sources) return
    for (const { key, name, root } of sources.live.live.filter(({ name }) => !this.has(name)).slice(0, LIVE_CONTEXTS)) {
      const words = await this.#wordsOf(key)
      if (words === undefined || this.#contexts.has(name) || !sources.live.liveOf(name) || this.#sources !== sources)
        continue
      this.#add(name, {
        key,
        words,
        title: undefined,
        openedMs: nowMs,
        changedMs: nowMs,
        offer: offerIn(root),
        isChanged: false
      })
    }
  }

  committed(commit: Commit, { name, root }: LiveActors): void {
    const { key, atMs, log, expected } = commit
    let first: string | undefined
    for (const entry of log) {
      if (!('message' in entry)) continue
      first ??= wordsOf(entry.message)
      this.#times.add(name, entry.message.messageId, atMs)
    }
    const known = this.#contexts.get(name)
    const offer = offerIn(root)
    if (known) {
      if (first !== undefined && known.words === '') this.#call(known, first)
      known.changedMs = atMs
      known.offer = offer
      known.isChanged = true
      this.#listener.changedContext(known)
    } else
      this.#add(name, {
        key,
        words: (expected === 0 && first) || '',
        title: undefined,
        openedMs: atMs,
        changedMs: atMs,
        offer,
        isChanged: false
      })
    if (first !== undefined) this.#listener.onMessages(commit)
    if (!known && expected > 0) void this.#addTitle(name, key)
  }

  erased(whose: Erasure): void {
    for (const context of this.#contexts.values()) {
      if (!isErased(whose, context.key)) continue
      this.#contexts.delete(contextName(context.key))
      this.#listener.removedContext(context)
    }
  }

  /** A context for pages. */
  rowOf(context: ListedContext): InspectedContext {
    const {
      key: { tenant, principal, contextId },
      words,
      openedMs,
      changedMs,
      offer
    } = context
    context.title ??= shownWords(words, this.#redact)
    return {
      contextId,
      owner: { tenant, principal },
      title: context.title,
      openedMs,
      changedMs,
      ...(offer && {
        offer: {
          offerId: offer.offerId,
          expiresMs: offer.expiresMs,
          states: this.#sources?.statesOf(offer.value) ?? []
        }
      })
    }
  }

  #call(context: ListedContext, words: string): void {
    context.words = words
    context.title = undefined
  }

  async #addTitle(name: string, key: ContextKey): Promise<void> {
    const words = await this.#wordsOf(key)
    const known = this.#contexts.get(name)
    if (words === undefined || !known) return
    this.#call(known, words)
    this.#listener.changedContext(known)
  }

  /** The words of a context's first message by its stored messages; `undefined` without any. */
  async #wordsOf(key: ContextKey): Promise<string | undefined> {
    if (!this.#sources) return undefined
    const { readMessages, troubled } = this.#sources
    try {
      const [first] = await readMessages(key, FIRST_READ.limit, { bytes: FIRST_READ.bytes })
      return first && wordsOf(first.message)
    } catch (error) {
      troubled(error)
      return undefined
    }
  }

  #add(name: string, context: ListedContext): void {
    const displaced = this.#contexts.add(name, context)
    this.#listener.changedContext(context)
    if (displaced) this.#listener.removedContext(displaced)
  }
}

/** The standing offer of a context's negotiation, if any. */
function offerIn(root: AnyActorRef): StandingOffer | undefined {
  const { children } = root.getSnapshot() as { readonly children: Readonly<Record<string, AnyActorRef | undefined>> }
  const context: unknown = children['bargaining']?.getSnapshot()?.context
  const { standing, memory } = isObject(context) ? context : {}
  return isObject(standing)
    ? {
        offerId: String(standing['offerId']),
        expiresMs: Number(standing['expiresAtMs']),
        value: isObject(memory) ? memory['value'] : undefined
      }
    : undefined
}

/** When the newest messages were committed. Adding one allocates nothing, because each message of a flood is added. */
class MessageTimes {
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

/** The messages of a context that a page gets: the newest, in both measures. */
const TALK_MESSAGES = 500

const TALK_BYTES = 4 * 1024 * 1024

/** The largest message without a task that a page gets whole, as JSON. */
const MOST_CHARACTERS = 1024 * 1024

/** The sources of the record. */
interface TalkRecordSources {
  readonly readMessages: Observation['store']['readMessages']
  readonly redact: Redact
  /** When the messages of a context were committed, by their ids, as far as that is known. */
  readonly timesOf: (key: ContextKey) => ReadonlyMap<string, number>
}

/** The messages of one context for one page: those that are stored, then those of each commit. */
export class TalkRecord {
  readonly contextId: string
  readonly #sources: TalkRecordSources
  #waiting: WatchedMessage[] = []
  #isRead = false
  #isSent = false

  constructor(contextId: string, sources: TalkRecordSources) {
    this.contextId = contextId
    this.#sources = sources
  }

  /** Reads the stored messages. Those of commits meanwhile come after them. */
  async read(key: ContextKey): Promise<void> {
    const rows = await this.#sources.readMessages(key, TALK_MESSAGES, { bytes: TALK_BYTES })
    const meanwhile = this.#waiting
    this.#waiting = []
    this.#isRead = true
    const known = new Set(rows.map(({ message }) => message.messageId))
    const times = this.#sources.timesOf(key)
    this.#add([
      ...rows.map(row => this.#toMessage(key, row, times.get(row.message.messageId))),
      ...meanwhile.filter(({ messageId }) => !known.has(messageId))
    ])
  }

  committed({ key, log, atMs }: Commit): void {
    const messages = log
      .filter((entry): entry is MessageRow => 'message' in entry)
      .map(row => this.#toMessage(key, row, atMs))
    if (this.#isRead) this.#add(messages)
    else this.#waiting.push(...messages)
  }

  /** The messages since the last call; `undefined` if there are none, or before the stored ones were read. */
  take(): WatchedMessage[] | undefined {
    if (!this.#isRead || (this.#isSent && this.#waiting.length === 0)) return undefined
    this.#isSent = true
    const messages = this.#waiting
    this.#waiting = []
    return messages
  }

  #add(messages: readonly WatchedMessage[]): void {
    this.#waiting = [...this.#waiting, ...messages].slice(-TALK_MESSAGES)
  }

  #toMessage(key: ContextKey, { message, taskId, generation }: MessageRow, atMs: number | undefined): WatchedMessage {
    const { messageId } = message
    const time = atMs !== undefined && { atMs }
    if (taskId !== undefined) return { messageId, ...time, taskId, generation: generation ?? 0 }
    const { role, contextId = key.contextId } = message
    const isLarge = JSON.stringify(message.parts).length > MOST_CHARACTERS
    const parts = isLarge
      ? [{ text: 'This message is larger than 1 MB and is not shown.' }]
      : message.parts.map(part => this.#shown(part))
    return { messageId, ...time, message: { messageId, role, contextId, parts } }
  }

  /** A part without secrets. Bytes of files are no text. */
  #shown(part: Part): Part {
    if (!('raw' in part)) return this.#sources.redact(part) as Part
    const { raw, ...named } = part
    return { ...(this.#sources.redact(named) as typeof named), raw }
  }
}
