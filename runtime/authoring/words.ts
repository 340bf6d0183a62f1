import { isObject, type JsonValue } from '../../machines/protocol/codec/json.ts'
import type { Message, Part } from '../../machines/protocol/objects.ts'
import type { ArtifactContent, MessageContent } from '../../machines/task-events.ts'
import type { Ids } from '../ports/ids.ts'
import {
  checkArgument,
  checkOptions,
  type Kind,
  kindOf,
  objectSuchAs,
  textSuchAs,
  TRUE_OR_FALSE
} from '../primitives/options.ts'

/** A message of the agent (§4.1.4), with its context and, if there is one, its task. */
export function agentMessage(
  content: MessageContent,
  place: { taskId?: string; contextId: string },
  ids: Ids
): Message {
  const { contextId, taskId } = place
  return { messageId: ids(), contextId, ...(taskId !== undefined && { taskId }), role: 'ROLE_AGENT', ...content }
}

/** Content of a message, as an author may write it: text, one part, parts, or parts with metadata. */
export type Words = string | Part | Part[] | MessageContent

/**
 * Content of an artifact, as an author may write it: text, one part, parts, or a whole artifact. Without an id it gets
 * a new one.
 */
export type ArtifactWords = string | Part | Part[] | ArtifactContent

/** Progress of work. The state stays WORKING, and the status carries the message. */
export interface Progress {
  readonly type: 'progress'
  readonly message?: Words
  readonly metadata?: Record<string, unknown>
}

/** An artifact of work, or a chunk of one. */
export interface ProducedArtifact {
  readonly type: 'artifact'
  readonly artifact: ArtifactWords
  readonly append?: boolean
  readonly lastChunk?: boolean
}

/** Words of running work. Charts `emit` them. */
export type WorkWords = Progress | ProducedArtifact

/** Result of completed work: a function returns it, a chart outputs it. It may be empty. */
export interface WorkResult {
  readonly artifact?: ArtifactWords
  readonly artifacts?: readonly ArtifactWords[]
  readonly message?: Words
  readonly metadata?: Record<string, unknown>
}

/** Rejects the task (TASK_STATE_REJECTED) with a reason. */
export interface Rejected {
  readonly type: 'rejected'
  readonly reason: Words
}

/** Fails the task (TASK_STATE_FAILED) with a reason. */
export interface Failed {
  readonly type: 'failed'
  readonly reason: Words
}

/** A negotiation's answer that opens no task. */
export interface Reply {
  readonly type: 'reply'
  readonly message: Words
}

/** A negotiation's acceptance: opens a task with these terms. */
export interface Accepted<Terms = Record<string, unknown> | undefined> {
  readonly type: 'accepted'
  readonly terms?: Terms
}

/** A negotiation's offer: the agent does the task on these terms if the client accepts them. */
export interface Offered<Terms = Record<string, unknown>> {
  readonly type: 'offer'
  readonly terms: Terms
  readonly message?: Words
}

/** Ends a negotiation without a deal, and withdraws the open offer. */
export interface Declined {
  readonly type: 'declined'
  readonly message: Words
}

/** A text part (§4.1.6). */
export function text(value: string): Part {
  return { text: value }
}

/** The part of a type that JSON can express, interfaces included: `never` for functions, `undefined` and `unknown`. */
type Json<T> = T extends JsonValue
  ? T
  : T extends (...given: never) => unknown
    ? never
    : T extends object
      ? { [Member in keyof T]: Json<T[Member]> }
      : never

/** A part with structured data: any JSON value, including null (§4.1.6). `dataOf` reads it. */
export function data<T>(value: T & Json<T>): Part {
  return { data: value }
}

const FILE = { filename: textSuchAs("'ticket.pdf'"), mediaType: textSuchAs("'application/pdf'") }

const ABOUT = { metadata: objectSuchAs('{ percent: 50 }') }

const BYTES: Kind = [value => ArrayBuffer.isView(value), 'bytes as a Uint8Array']

const CHUNK = { append: TRUE_OR_FALSE, lastChunk: TRUE_OR_FALSE }

/** A part with a file's bytes (§4.1.6). */
export function file(bytes: Uint8Array, about: { filename?: string; mediaType?: string } = {}): Part {
  checkOptions(about, FILE, 'file', "file(bytes, { filename: 'ticket.pdf', mediaType: 'application/pdf' })")
  checkArgument(bytes, BYTES, "file(await readFile('ticket.pdf'))")
  const { filename, mediaType } = about
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  return { raw, ...(filename !== undefined && { filename }), ...(mediaType !== undefined && { mediaType }) }
}

/**
 * The parts of a message or an artifact. Throws TypeError for any other value, such as a promise that was not awaited.
 */
export function requireParts(content: { readonly parts: readonly Part[] }, taker: string): readonly Part[] {
  const given: unknown = content
  if (isObject(given) && Array.isArray(given['parts'])) return content.parts
  throw new TypeError(
    `${taker} takes a message or an artifact, not ${notYet(given, `${taker}(await …)`) ?? `${kindOf(given)}. A task has them in status.message, history and artifacts.`}`
  )
}

/** Says that a value is a question or a promise, and how to get its answer; `undefined` for any other value. */
export function notYet(given: unknown, awaited = 'await …'): string | undefined {
  if (!isObject(given)) return undefined
  if (typeof given['then'] === 'function') return `a promise. Await it: ${awaited}.`
  return isQuestionType(given['type']) ? `a question. ${ASK_FIRST}` : undefined
}

/** How to get the answer of a question. */
export const ASK_FIRST =
  'Its answer is yield* inputRequired(…) in a generator, and await ask(inputRequired(…)) in a function.'

/** Whether this is the type of a question. */
export function isQuestionType(type: unknown): type is 'input-required' | 'auth-required' {
  return type === 'input-required' || type === 'auth-required'
}

/** The text parts of a message or an artifact, joined by line breaks. Throws TypeError for any other value. */
export function textOf(content: { parts: readonly Part[] }): string {
  return requireParts(content, 'textOf')
    .flatMap(part => ('text' in part ? [part.text] : []))
    .join('\n')
}

/** Reports progress. `metadata` goes into the status event, and into the task's metadata. */
export function progress(message?: Words, about: Pick<Progress, 'metadata'> = {}): Progress {
  checkOptions(about, ABOUT, 'progress', "progress('Brewing.', { metadata: { percent: 50 } })")
  const { metadata } = about
  return trackWord({ type: 'progress', ...(message !== undefined && { message }), ...(metadata && { metadata }) })
}

/**
 * Produces an artifact. For chunks use the same `artifactId` each time, `append` from the second chunk on, and
 * `lastChunk` with the last.
 */
export function artifact(
  content: ArtifactWords,
  chunk: { append?: boolean; lastChunk?: boolean } = {}
): ProducedArtifact {
  checkOptions(chunk, CHUNK, 'artifact', 'artifact(content, { append: true })')
  return trackWord(Object.assign({ type: 'artifact' as const, artifact: content }, chunk))
}

/** Ends the task as rejected, with a reason for the client. */
export function rejected(reason: Words): Rejected {
  return trackWord({ type: 'rejected', reason })
}

/** Ends the task as failed, with a reason for the client. Errors that work throws are only logged. */
export function failed(reason: Words): Failed {
  return trackWord({ type: 'failed', reason })
}

/** Answers a message without opening a task. */
export function reply(message: Words): Reply {
  return { type: 'reply', message }
}

/**
 * Opens a task. The work gets the terms, and the task has them in its metadata. In a `negotiation` the default is what
 * the client proposes, else the open offer.
 */
export function accepted<Terms extends object | undefined = undefined>(terms?: Terms): Accepted<Terms> {
  return { type: 'accepted', ...(terms && { terms }) }
}

/** Makes an offer in a `negotiation`, which replaces the open one. `message` is sent with it. */
export function offer<Terms extends object>(terms: Terms, options: { readonly message?: Words } = {}): Offered<Terms> {
  checkOptions(options, { message: true }, 'offer', "offer(terms, { message: '…' })")
  const { message } = options
  return { type: 'offer', terms, ...(message !== undefined && { message }) }
}

/** Ends a `negotiation` without a deal, with a reason. The next message may begin a new one. */
export function declined(message: Words): Declined {
  return { type: 'declined', message }
}

/** The state that all generators of the process share, in all copies of this package. */
interface Shared {
  /** The unused words of the generator whose code runs in this call. */
  current: UnusedWords | undefined
  /** The unused words of generators that run, or await something of their own. */
  readonly running: Set<UnusedWords>
  /** The unused words of all generators that have any. */
  readonly holding: Set<UnusedWords>
}

const NAME = Symbol.for('taskchart.unsaid.1')
const own: Shared = { current: undefined, running: new Set(), holding: new Set() }
const shared = ((globalThis as Record<symbol, Shared | undefined>)[NAME] ??= own)

/** How a generator says each kind of word. */
const SAYING = {
  progress: 'yield progress(…)',
  artifact: 'yield artifact(…)',
  'input-required': 'yield* inputRequired(…)',
  'auth-required': 'yield* authRequired(…)',
  rejected: 'return rejected(…)',
  failed: 'return failed(…)'
} as const

/** A word that a function of taskchart's makes. */
interface MadeWord {
  readonly type: keyof typeof SAYING
}

/** Maximum words that one generator holds. */
const MOST = 4

/**
 * Words that a generator has made and not used, to find a forgotten `yield`. A word belongs to the generator whose code
 * makes it. After an `await` that is known only if no other generator runs: then such words are not found.
 */
export class UnusedWords {
  readonly #words: MadeWord[] = []

  /** The expressions that use the first of these words in the generator. */
  names(): string[] {
    return this.#words.map(({ type }) => SAYING[type])
  }

  /** Runs the generator's code up to its next `await` or `yield`. */
  run<T>(resume: () => T): T {
    const before = shared.current
    shared.current = this
    shared.running.add(this)
    try {
      return resume()
    } finally {
      shared.current = before
    }
  }

  /** Call it when the generator has yielded or ended. */
  rest(): void {
    shared.running.delete(this)
  }

  /** Call it when the generator has ended. */
  end(): void {
    this.rest()
    shared.holding.delete(this)
  }

  add(word: MadeWord): void {
    if (this.#words.length === MOST) return
    this.#words.push(word)
    shared.holding.add(this)
  }

  remove(word: unknown): void {
    const place = this.#words.lastIndexOf(word as MadeWord)
    if (place >= 0) this.#words.splice(place, 1)
    if (this.#words.length === 0) shared.holding.delete(this)
  }
}

/** Notes a word that an author's code makes, and gives it. */
export function trackWord<Word extends MadeWord>(word: Word): Word {
  const maker = shared.current ?? (shared.running.size === 1 ? shared.running.values().next().value : undefined)
  maker?.add(word)
  return word
}

/** Notes that a word is used: yielded, emitted or returned. */
export function releaseWord(word: unknown): void {
  for (const each of shared.holding) each.remove(word)
}

/** Identifies an artifact. Its id alone is unique only within its task (§4.1.7). */
export interface ArtifactReference {
  readonly taskId: string
  readonly artifactId: string
}

/**
 * The artifacts that a message names in the metadata of its parts. Two forms are in use:
 * `{ "referenceArtifacts": [{ "artifactId", "taskId" }] }`, and `artifactId` and `taskId` directly.
 */
export function namedArtifacts(message: Message): ArtifactReference[] {
  return message.parts.flatMap(({ metadata }) => {
    if (!metadata) return []
    const { referenceArtifacts } = metadata
    const candidates: unknown[] = Array.isArray(referenceArtifacts) ? referenceArtifacts : [metadata]
    return candidates.filter(isReference).map(({ taskId, artifactId }) => ({ taskId, artifactId }))
  })
}

/** Whether a value refers to an artifact. It may have more members. */
export function isReference(value: unknown): value is ArtifactReference {
  return (
    typeof value === 'object' &&
    value !== null &&
    'taskId' in value &&
    typeof value.taskId === 'string' &&
    'artifactId' in value &&
    typeof value.artifactId === 'string'
  )
}
