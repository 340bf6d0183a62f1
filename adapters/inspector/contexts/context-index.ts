import type { AnyActorRef } from 'xstate'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import type { LiveActors, Observation } from '../../../runtime/contexts/observers.ts'
import { contextName, isErased, type Commit, type ContextKey, type Erasure, type MessageRow } from '../../../runtime/store/store.ts'
import type { ContextRow } from '../feed.ts'

/** The number of contexts kept, last changed first. */
export const KNOWN_CONTEXTS = 10_000

/** The number of contexts that are read when the observation begins. */
const LIVE_CONTEXTS = 1000

/** The number of messages whose time is kept, the newest. */
export const TIMED_MESSAGES = 20_000

/** The messages that are read to find the first one of a context from before the observation. */
const FIRST_READ = { limit: 200, bytes: 256 * 1024 }

/** Receives changes of contexts. */
export interface ContextListener {
  changedContext(row: ContextRow): void
  removedContext(contextId: string): void
  /** A turn of a context added messages. */
  said(commit: Commit): void
}

/** What the index needs. */
export interface ContextSources {
  /** The contexts in memory. */
  readonly live: { readonly live: readonly LiveActors[]; liveOf(name: string): LiveActors | undefined }
  readonly readMessages: Observation['store']['readMessages']
  /** The title of a message. */
  readonly title: (message: Message) => string
  readonly troubled: (error: unknown) => void
}

/** The contexts of all callers, from commits and from memory: what each is about, and its standing offer. */
export class ContextIndex {
  readonly #listener: ContextListener
  /** By context name, the longest unchanged first. */
  readonly #rows = new Map<string, ContextRow>()
  /** When messages were committed, in milliseconds since 1970, oldest first, by context name and message id. */
  readonly #times = new Map<string, number>()

  #sources: ContextSources | undefined

  constructor(listener: ContextListener) {
    this.#listener = listener
  }

  /** Reads from these sources from now on: those of another runtime after a reload of the agent. */
  readFrom(sources: ContextSources): void {
    this.#sources = sources
  }

  /** All contexts, last changed first. */
  get newest(): ContextRow[] {
    return [...this.#rows.values()].toSorted((a, b) => b.changedMs - a.changedMs)
  }

  /** The key of the newest context of an id. */
  keyOf(contextId: string): ContextKey | undefined {
    const row = [...this.#rows.values()].findLast(row => row.contextId === contextId)
    return row && { ...row.owner, contextId }
  }

  has(key: ContextKey): boolean {
    return this.#rows.has(contextName(key))
  }

  /** When a message was committed; `undefined` before the observation. */
  atMs(key: ContextKey, messageId: string): number | undefined {
    return this.#times.get(`${contextName(key)} ${messageId}`)
  }

  /** Adds the contexts that are in memory already and have messages, as of now. Older ones are not in memory, and no store lists them. */
  async readLive(nowMs: number): Promise<void> {
    const sources = this.#sources
    if (!sources) return
    for (const { key, root } of sources.live.live.filter(({ key }) => !this.has(key)).slice(0, LIVE_CONTEXTS)) {
      const name = contextName(key)
      const title = await this.#titleOf(key)
      if (title === undefined || this.#rows.has(name) || !sources.live.liveOf(name) || this.#sources !== sources) continue
      const { tenant, principal, contextId } = key
      this.#set(name, { contextId, owner: { tenant, principal }, title, openedMs: nowMs, changedMs: nowMs, ...offerIn(root) })
    }
  }

  committed(commit: Commit): void {
    const { key, atMs, log } = commit
    const name = contextName(key)
    const rows = log.filter((entry): entry is MessageRow => 'message' in entry)
    for (const { message: { messageId } } of rows) this.#times.set(`${name} ${messageId}`, atMs)
    forgetOldest(this.#times, TIMED_MESSAGES)
    const before = this.#rows.get(name)
    const live = this.#sources?.live.liveOf(name)
    const { tenant, principal, contextId } = key
    const [first] = rows
    const title = before?.title || ((before || commit.expected === 0) && first ? (this.#sources?.title(first.message) ?? '') : '')
    this.#rows.delete(name)
    this.#set(name, { contextId, owner: { tenant, principal }, title, openedMs: before?.openedMs ?? atMs, changedMs: atMs, ...(live && offerIn(live.root)) })
    for (const oldest of forgetOldest(this.#rows, KNOWN_CONTEXTS)) this.#listener.removedContext(oldest.contextId)
    if (rows.length > 0) this.#listener.said(commit)
    if (!before && commit.expected > 0) void this.#addTitle(name, key)
  }

  erased(whose: Erasure): void {
    for (const [name, { owner, contextId }] of this.#rows) {
      if (!isErased(whose, { ...owner, contextId })) continue
      this.#rows.delete(name)
      this.#listener.removedContext(contextId)
    }
  }

  async #addTitle(name: string, key: ContextKey): Promise<void> {
    const title = await this.#titleOf(key)
    const row = this.#rows.get(name)
    if (title !== undefined && row) this.#set(name, { ...row, title })
  }

  /** The title of a context by its stored messages; `undefined` without any. */
  async #titleOf(key: ContextKey): Promise<string | undefined> {
    if (!this.#sources) return undefined
    const { readMessages, title, troubled } = this.#sources
    try {
      const [first] = await readMessages(key, FIRST_READ.limit, { bytes: FIRST_READ.bytes })
      return first && title(first.message)
    } catch (error) {
      troubled(error)
      return undefined
    }
  }

  #set(name: string, row: ContextRow): void {
    this.#rows.set(name, row)
    this.#listener.changedContext(row)
  }
}

/** The standing offer of a context's negotiation, if any. */
function offerIn(root: AnyActorRef): Pick<ContextRow, 'offer'> {
  const { children } = root.getSnapshot() as { readonly children: Readonly<Record<string, AnyActorRef | undefined>> }
  const context: unknown = children['bargaining']?.getSnapshot()?.context
  const standing = isObject(context) ? context['standing'] : undefined
  return isObject(standing) ? { offer: { offerId: String(standing['offerId']), expiresMs: Number(standing['expiresAtMs']) } } : {}
}

/** Removes the oldest entries above a limit, and gives them. */
function forgetOldest<Value>(map: Map<string, Value>, limit: number): Value[] {
  const gone: Value[] = []
  for (const [name, value] of map) {
    if (map.size <= limit) break
    map.delete(name)
    gone.push(value)
  }
  return gone
}
