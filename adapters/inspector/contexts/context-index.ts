import type { AnyActorRef } from 'xstate'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { Message } from '../../../machines/protocol/parts.ts'
import type { LiveActors, Observation } from '../../../runtime/contexts/observers.ts'
import { contextName, isErased, type Commit, type ContextKey, type Erasure, type MessageRow } from '../../../runtime/store/store.ts'
import type { ContextRow } from '../feed.ts'
import { Recent } from '../recorder/recent.ts'

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

/** The row of a context, which changes in place, so that a commit costs little. */
type ChangingRow = { -readonly [Name in keyof ContextRow]: ContextRow[Name] }

/**
 * The contexts of all callers, from commits and from memory: what each is about, and its standing offer. A row that a listener gets changes
 * in place later.
 */
export class ContextIndex {
  readonly #listener: ContextListener
  /** By context name, the longest unchanged first. */
  readonly #rows = new Recent<ChangingRow>(KNOWN_CONTEXTS)
  /** When messages were committed, in milliseconds since 1970, oldest first, by context name and message id. */
  readonly #times = new Recent<number>(TIMED_MESSAGES)

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
    return this.#rows.values().toSorted((a, b) => b.changedMs - a.changedMs)
  }

  /** The key of the newest context of an id. */
  keyOf(contextId: string): ContextKey | undefined {
    const row = this.#rows.values().findLast(row => row.contextId === contextId)
    return row && { ...row.owner, contextId }
  }

  has(name: string): boolean {
    return this.#rows.has(name)
  }

  /** When a message was committed; `undefined` before the observation. */
  atMs(key: ContextKey, messageId: string): number | undefined {
    return this.#times.get(`${contextName(key)} ${messageId}`)
  }

  /** Adds the contexts that are in memory already and have messages, as of now. Older ones are not in memory, and no store lists them. */
  async readLive(nowMs: number): Promise<void> {
    const sources = this.#sources
    if (!sources) return
    for (const { key, root } of sources.live.live.filter(({ key }) => !this.has(contextName(key))).slice(0, LIVE_CONTEXTS)) {
      const name = contextName(key)
      const title = await this.#titleOf(key)
      if (title === undefined || this.#rows.has(name) || !sources.live.liveOf(name) || this.#sources !== sources) continue
      const { tenant, principal, contextId } = key
      const offer = offerIn(root)
      this.#set(name, { contextId, owner: { tenant, principal }, title, openedMs: nowMs, changedMs: nowMs, ...(offer && { offer }) })
    }
  }

  committed(commit: Commit, name = contextName(commit.key)): void {
    const { key, atMs, log, expected } = commit
    let first: MessageRow | undefined
    for (const entry of log) {
      if (!('message' in entry)) continue
      first ??= entry
      this.#times.set(`${name} ${entry.message.messageId}`, atMs)
    }
    const before = this.#rows.get(name)
    const { tenant, principal, contextId } = key
    const row: ChangingRow = before ?? { contextId, owner: { tenant, principal }, title: '', openedMs: atMs, changedMs: atMs }
    if (row.title === '' && first && (before || expected === 0)) row.title = this.#sources?.title(first.message) ?? ''
    row.changedMs = atMs
    const live = this.#sources?.live.liveOf(name)
    const offer = live && offerIn(live.root)
    if (offer) row.offer = offer
    else if (row.offer) delete row.offer
    this.#set(name, row)
    if (first) this.#listener.said(commit)
    if (!before && expected > 0) void this.#addTitle(name, key)
  }

  erased(whose: Erasure): void {
    for (const { owner, contextId } of this.#rows.values()) {
      const key = { ...owner, contextId }
      if (!isErased(whose, key)) continue
      this.#rows.delete(contextName(key))
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

  #set(name: string, row: ChangingRow): void {
    const displaced = this.#rows.set(name, row)
    this.#listener.changedContext(row)
    if (displaced) this.#listener.removedContext(displaced.contextId)
  }
}

/** The standing offer of a context's negotiation, if any. */
function offerIn(root: AnyActorRef): ContextRow['offer'] {
  const { children } = root.getSnapshot() as { readonly children: Readonly<Record<string, AnyActorRef | undefined>> }
  const context: unknown = children['bargaining']?.getSnapshot()?.context
  const standing = isObject(context) ? context['standing'] : undefined
  return isObject(standing) ? { offerId: String(standing['offerId']), expiresMs: Number(standing['expiresAtMs']) } : undefined
}
