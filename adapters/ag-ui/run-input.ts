import { createHash } from 'node:crypto'
import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import { isObject, type JsonValue } from '../../machines/protocol/codec/json.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import { movePart, MoveSchema, type NegotiationMove } from '../../machines/protocol/negotiation.ts'
import type { Part } from '../../machines/protocol/objects.ts'
import { NEGOTIATION_EXTENSION } from '../../machines/protocol/uris.ts'

/** The metadata key of a request for what its front end says besides: `{ tools, context, forwardedProps }`. */
export const AG_UI_METADATA = 'urn:taskchart:ag-ui:1'

/** The input of one run: `RunAgentInput` of AG-UI, as far as an agent can use it. */
export interface RunInput {
  readonly threadId: string
  readonly runId: string
  /** The context of the thread. */
  readonly contextId: string
  /** The version of AG-UI; `undefined` for clients before 1.0. */
  readonly protocolVersion: string | undefined
  /** The members of the client's state that are not the task's. They stay as they are. */
  readonly state: Readonly<Record<string, unknown>>
  /** The texts of the agent that the client has, by the ids of their messages. */
  readonly texts: ReadonlyMap<string, string>
  /** Whether the client has no messages, as a page that was just loaded. */
  readonly isEmpty: boolean
  readonly action: RunAction
  /** The metadata of the request for the agent. */
  readonly metadata: Record<string, unknown> | undefined
}

/** The action that a client's input asks for. */
export type RunAction =
  | { readonly kind: 'message'; readonly messageId: string; readonly parts: Part[] }
  | { readonly kind: 'move'; readonly messageId: string; readonly parts: Part[] }
  | { readonly kind: 'resume'; readonly interruptId: string; readonly answer: InterruptAnswer }
  | { readonly kind: 'cancel'; readonly taskId: string }
  | { readonly kind: 'rejoin' }

/** The answer to an interrupt: a part, none, or a no. */
export type InterruptAnswer = Part | 'nothing' | 'cancel'

type Members = Readonly<Record<string, unknown>>

/** Bytes of `tools`, `context` and `forwardedProps` together. Agents get them as metadata. */
const LONGEST_METADATA = 64 * 1024

/** Thread ids that are ids of contexts. Others are hashed. */
const PLAIN_ID = /^[\w.~:@-]{1,128}$/

/**
 * Reads the input of a run. Unknown members are ignored, and so are members that are null. Throws InvalidParams that
 * names the member that is wrong, and TooLarge.
 */
export function readRunInput(body: Members): RunInput {
  const threadId = textIn(body, 'threadId')
  const runId = textIn(body, 'runId')
  const messages = listIn(body, 'messages').map((message, i) => objectAt(message, `messages[${i}]`))
  const protocolVersion = body['protocolVersion'] ?? undefined
  if (protocolVersion !== undefined && typeof protocolVersion !== 'string')
    throw wrong('protocolVersion', 'must be a string such as "1.0"')
  const props = objectIn(body, 'forwardedProps')
  const contextId = contextOf(threadId)
  const { task: _, ...state } = isObject(body['state']) ? body['state'] : {}
  return {
    threadId,
    runId,
    contextId,
    protocolVersion,
    state,
    texts: new Map(
      messages.flatMap(({ id, role, content }) =>
        role === 'assistant' && typeof id === 'string' && typeof content === 'string' ? [[id, content] as const] : []
      )
    ),
    isEmpty: messages.length === 0,
    action: actionOf(body, messages, props, { contextId, runId }),
    metadata: metadataOf(body, props)
  }
}

function actionOf(
  body: Members,
  messages: readonly Members[],
  props: Members,
  { contextId, runId }: { readonly contextId: string; readonly runId: string }
): RunAction {
  const [entry, second] = listIn(body, 'resume', true)
  if (second !== undefined) throw wrong('resume', 'must have one entry, for the one question of the run')
  if (entry !== undefined) return resumeOf(objectAt(entry, 'resume[0]'))
  const last = messages.length - 1
  const newest = messages[last]
  const sent = newest?.['role'] === 'user' ? messageOf(newest, `messages[${last}]`) : undefined
  const own = props[AG_UI_METADATA] ?? undefined
  if (own !== undefined) return cancelOf(own)
  const given = props[NEGOTIATION_EXTENSION] ?? undefined
  if (given === undefined) return sent ?? { kind: 'rejoin' }
  const { value, violations } = tryDecode(MoveSchema, given, `forwardedProps["${NEGOTIATION_EXTENSION}"]`)
  if (violations) throw invalidParams(...violations)
  return moveOf(value, sent?.parts ?? [], contextId, runId)
}

/** An answer to an offer. It has the same id each time, apart from a proposal, which may be made again. */
function moveOf(move: NegotiationMove, parts: readonly Part[], contextId: string, runId: string): RunAction {
  const messageId = stableId('move', contextId, move, 'propose' in move ? runId : '')
  return { kind: 'move', messageId, parts: [...parts, movePart(move)] }
}

function cancelOf(own: unknown): RunAction {
  const field = `forwardedProps["${AG_UI_METADATA}"]`
  const { cancel } = objectAt(own, field)
  if (typeof cancel === 'string' && cancel !== '') return { kind: 'cancel', taskId: cancel }
  throw wrong(field, 'must be { "cancel": taskId }: the id of the task to cancel')
}

function resumeOf(entry: Members): RunAction {
  const { interruptId, status, payload = null } = entry
  if (typeof interruptId !== 'string' || interruptId === '')
    throw wrong('resume[0].interruptId', 'must be the id of an interrupt')
  if (status !== 'resolved' && status !== 'cancelled')
    throw wrong('resume[0].status', 'must be "resolved" or "cancelled"')
  return { kind: 'resume', interruptId, answer: status === 'cancelled' ? 'cancel' : answerOf(payload as JsonValue) }
}

function answerOf(payload: JsonValue): InterruptAnswer {
  if (payload === null) return 'nothing'
  return typeof payload === 'string' ? { text: payload } : { data: payload }
}

function messageOf(message: Members, field: string): RunAction & { readonly kind: 'message' } {
  const { id, content } = message
  if (typeof id !== 'string' || id === '') throw wrong(`${field}.id`, 'must be a string that is not empty')
  if (typeof content === 'string') return { kind: 'message', messageId: id, parts: [{ text: content }] }
  if (!Array.isArray(content) || content.length === 0)
    throw wrong(`${field}.content`, 'must be a string, or a list of at least one part')
  const parts = content.map((part, i) => partOf(objectAt(part, `${field}.content[${i}]`), `${field}.content[${i}]`))
  return { kind: 'message', messageId: id, parts }
}

/** The kinds of files in a message. `binary` is that of clients before 1.0. */
const FILES: readonly unknown[] = ['image', 'audio', 'video', 'document']

function partOf(part: Members, field: string): Part {
  const { type, text } = part
  if (type === 'text') {
    if (typeof text === 'string') return { text }
    throw wrong(`${field}.text`, 'must be a string')
  }
  if (type === 'binary') return fileOf(part, field)
  if (!FILES.includes(type))
    throw wrong(`${field}.type`, `must be text, binary, ${FILES.join(', ')}, not ${JSON.stringify(type)}`)
  const source = objectAt(part['source'], `${field}.source`)
  const name = source['type'] === 'url' ? 'url' : 'data'
  if (source['type'] !== name) throw wrong(`${field}.source.type`, 'must be data or url')
  return fileOf({ [name]: source['value'], mimeType: source['mimeType'] }, `${field}.source`)
}

function fileOf({ data = null, url = null, mimeType = null, filename = null }: Members, field: string): Part {
  const about = {
    ...(typeof mimeType === 'string' && { mediaType: mimeType }),
    ...(typeof filename === 'string' && { filename })
  }
  if (typeof data === 'string') return { raw: data, ...about }
  if (typeof url === 'string') return { url, ...about }
  throw wrong(field, 'must have its bytes as base64, or a URL')
}

/** The front end's tools, context and properties for the agent; `undefined` if there are none. */
function metadataOf(body: Members, forwardedProps: Members): Record<string, unknown> | undefined {
  const given = { tools: listIn(body, 'tools', true), context: listIn(body, 'context', true), forwardedProps }
  const own = Object.fromEntries(Object.entries(given).filter(([, value]) => Object.keys(value).length > 0))
  if (Object.keys(own).length === 0) return undefined
  if (Buffer.byteLength(JSON.stringify(own)) > LONGEST_METADATA)
    throw new A2AError(
      'TooLarge',
      `tools, context and forwardedProps may have at most ${LONGEST_METADATA} bytes together.`
    )
  return { [AG_UI_METADATA]: own }
}

/** The context of a thread: its id, or a digest of an id that contexts cannot have. */
function contextOf(threadId: string): string {
  return PLAIN_ID.test(threadId) ? threadId : stableId('thread', threadId)
}

/** An id that is the same for the same values. */
export function stableId(...values: readonly unknown[]): string {
  return `ag-ui-${createHash('sha256').update(JSON.stringify(values)).digest('base64url')}`
}

function textIn(members: Members, name: string): string {
  const value = members[name]
  if (typeof value === 'string' && value !== '') return value
  throw wrong(name, 'must be a string that is not empty')
}

function listIn(members: Members, name: string, isOptional = false): readonly unknown[] {
  const value = members[name] ?? (isOptional ? [] : undefined)
  if (Array.isArray(value)) return value
  throw wrong(name, 'must be a list')
}

function objectIn(members: Members, name: string): Members {
  return objectAt(members[name] ?? {}, name)
}

function objectAt(value: unknown, field: string): Members {
  if (isObject(value)) return value
  throw wrong(field, 'must be an object')
}

function wrong(field: string, description: string): A2AError {
  return invalidParams({ field, description })
}
