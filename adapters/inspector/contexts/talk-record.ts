import type { Part } from '../../../machines/protocol/objects.ts'
import type { Commit, ContextKey, MessageRow } from '../../../runtime/store/store.ts'
import type { Observation } from '../../../runtime/telemetry-port.ts'
import type { WatchedMessage } from '../feed.ts'
import type { Redact } from '../recorder/seen-step.ts'

/** The messages of a context that a page gets: the newest, in both measures. */
export const TALK_MESSAGES = 500
const TALK_BYTES = 4 * 1024 * 1024

/** The largest message without a task that a page gets whole, as JSON. */
const MOST_CHARACTERS = 1024 * 1024

/** What the record needs. */
export interface TalkRecordSources {
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
