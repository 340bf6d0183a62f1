import { isObject, type JsonValue } from '../../machines/protocol/codec/json.ts'
import type { Message, Part } from '../../machines/protocol/parts.ts'
import type { ArtifactContent, MessageContent } from '../../machines/task-events.ts'
import type { Ids } from '../ports/ids.ts'
import { checkOptions, kindOf, textSuchAs, TRUE_OR_FALSE } from '../primitives/options.ts'

/** A message of the agent's (§4.1.4): with its context, and its task where there is one. */
export function agentMessage(content: MessageContent, place: { taskId?: string; contextId: string }, ids: Ids): Message {
  const { contextId, taskId } = place
  return { messageId: ids(), contextId, ...(taskId !== undefined && { taskId }), role: 'ROLE_AGENT', ...content }
}

/** What an author may give where something is said: text, one part, parts, or parts with metadata. */
export type Words = string | Part | Part[] | MessageContent

/** What an author may give as an artifact: text, one part, parts, or a whole artifact. Without an id it gets a fresh one. */
export type ArtifactWords = string | Part | Part[] | ArtifactContent

/** Work says how it is getting on; the status stays WORKING and carries the message. */
export interface Progress {
  readonly type: 'progress'
  readonly message?: Words
  readonly metadata?: Record<string, unknown>
}

/** Work hands over an artifact, or a chunk of one. */
export interface ProducedArtifact {
  readonly type: 'artifact'
  readonly artifact: ArtifactWords
  readonly append?: boolean
  readonly lastChunk?: boolean
}

/** What work may say while it lasts: charts `emit` these. */
export type WorkWords = Progress | ProducedArtifact

/** How work ends well: what a function returns and what a chart outputs. Nothing at all is a result too. */
export interface WorkResult {
  readonly artifact?: ArtifactWords
  readonly artifacts?: readonly ArtifactWords[]
  readonly message?: Words
  readonly metadata?: Record<string, unknown>
}

/** The agent will not do the task (TASK_STATE_REJECTED), and says why. */
export interface Rejected {
  readonly type: 'rejected'
  readonly reason: Words
}

/** The work did not succeed (TASK_STATE_FAILED), and says why. */
export interface Failed {
  readonly type: 'failed'
  readonly reason: Words
}

/** A negotiation's answer without a task. */
export interface Reply {
  readonly type: 'reply'
  readonly message: Words
}

/** A negotiation's assent: a task opens, with these terms. */
export interface Accepted<Terms = Record<string, unknown> | undefined> {
  readonly type: 'accepted'
  readonly terms?: Terms
}

/** A negotiation's offer: on these terms the agent does the task, if its client accepts them. */
export interface Offered<Terms = Record<string, unknown>> {
  readonly type: 'offer'
  readonly terms: Terms
  readonly message?: Words
}

/** A negotiation ends without a deal, and nothing that was offered stands any more. */
export interface Declined {
  readonly type: 'declined'
  readonly message: Words
}

/** A text part (§4.1.6). */
export function text(value: string): Part {
  return { text: value }
}

/** What of a type JSON holds: nothing of functions, `undefined` and what is of no known type; interfaces are taken, too. */
export type Json<T> = T extends JsonValue ? T : T extends (...given: never) => unknown ? never : T extends object ? { [Member in keyof T]: Json<T[Member]> } : never

/** A part with structured data: any JSON value, null included (§4.1.6). `dataOf` reads it. */
export function data<T>(value: T & Json<T>): Part {
  return { data: value }
}

const FILE = { filename: textSuchAs("'ticket.pdf'"), mediaType: textSuchAs("'application/pdf'") }

const CHUNK = { append: TRUE_OR_FALSE, lastChunk: TRUE_OR_FALSE }

/** A part with a file's bytes (§4.1.6). */
export function file(bytes: Uint8Array, about: { filename?: string; mediaType?: string } = {}): Part {
  checkOptions(about, FILE, 'file', "file(bytes, { filename: 'ticket.pdf', mediaType: 'application/pdf' })")
  const { filename, mediaType } = about
  const raw = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  return { raw, ...(filename !== undefined && { filename }), ...(mediaType !== undefined && { mediaType }) }
}

/** The parts of a message or an artifact. Throws TypeError for what has none, such as a promise that was not awaited. */
export function partsOf(content: { readonly parts: readonly Part[] }, taker: string): readonly Part[] {
  const given: unknown = content
  if (isObject(given) && Array.isArray(given['parts'])) return content.parts
  const isPromise = isObject(given) && typeof given['then'] === 'function'
  throw new TypeError(`${taker} takes a message or an artifact, not ${isPromise ? `a promise. Await it: ${taker}(await …)` : `${kindOf(given)}. A task has them in status.message, history and artifacts`}.`)
}

/** The text of a message or an artifact: that of its text parts, a line each. Throws TypeError for what is neither. */
export function textOf(content: { parts: readonly Part[] }): string {
  return partsOf(content, 'textOf').flatMap(part => ('text' in part ? [part.text] : [])).join('\n')
}

/** Says how the work is getting on. `metadata` stands in the status event, and in the task from then on. */
export function progress(message?: Words, { metadata }: Pick<Progress, 'metadata'> = {}): Progress {
  return { type: 'progress', ...(message !== undefined && { message }), ...(metadata && { metadata }) }
}

/**
 * Hands over an artifact. In chunks: the same `artifactId` each time, `append` from the second on, `lastChunk` with the
 * last.
 */
export function artifact(content: ArtifactWords, chunk: { append?: boolean; lastChunk?: boolean } = {}): ProducedArtifact {
  checkOptions(chunk, CHUNK, 'artifact', 'artifact(content, { append: true })')
  return Object.assign({ type: 'artifact' as const, artifact: content }, chunk)
}

/** Ends the task as rejected: the agent will not do it. */
export function rejected(reason: Words): Rejected {
  return { type: 'rejected', reason }
}

/** Ends the task as failed, with a reason for the client to read. What a work throws stays with the log. */
export function failed(reason: Words): Failed {
  return { type: 'failed', reason }
}

/** Answers a message without opening a task. */
export function reply(message: Words): Reply {
  return { type: 'reply', message }
}

/**
 * Opens a task. The work gets the terms, and the task shows them in its metadata. In a `negotiation` left out they are those
 * at hand: what the client proposes, or else the offer that stands.
 */
export function accepted<Terms extends object | undefined = undefined>(terms?: Terms): Accepted<Terms> {
  return { type: 'accepted', ...(terms && { terms }) }
}

/** Makes an offer, in a `negotiation`; it takes the place of the one before. `message` is what is said with it. */
export function offer<Terms extends object>(terms: Terms, said: { readonly message?: Words } = {}): Offered<Terms> {
  checkOptions(said, { message: true }, 'offer', "offer(terms, { message: '…' })")
  const { message } = said
  return { type: 'offer', terms, ...(message !== undefined && { message }) }
}

/** Ends a `negotiation` without a deal, and says why. Another may begin with the next message. */
export function declined(message: Words): Declined {
  return { type: 'declined', message }
}
