import { createHash } from 'node:crypto'
import { isObject } from '../machines/protocol/json.ts'
import type { Message } from '../machines/protocol/parts.ts'

/**
 * A message that is not to be taken twice: `key` names it within its scope by its messageId and by what it addresses,
 * `fingerprint` tells whether another message under that key is the same one.
 */
export interface Send {
  readonly key: string
  readonly fingerprint: string
  /** When it came, and when it may be forgotten, in milliseconds since 1970. */
  readonly atMs: number
  readonly expiresAtMs: number
}

/** What became of a send: the task that it opened or that took it, or the message that answered it. */
export type SendRow = Send & ({ readonly taskId: string } | { readonly reply: Message })

/** Names a client's message for de-duplication. */
export function sendOf(message: Message, atMs: number, rememberedMs: number): Send {
  const { messageId, taskId, contextId } = message
  const address = taskId === undefined ? (contextId === undefined ? ['none'] : ['context', contextId]) : ['task', taskId]
  const fingerprint = createHash('sha256').update(JSON.stringify(message, sorted)).digest('base64url')
  return { key: JSON.stringify([messageId, ...address]), fingerprint, atMs, expiresAtMs: atMs + rememberedMs }
}

/**
 * Names a task as its client does, to find it again: a row under this key says which task it is. All messages under a name are
 * the same to de-duplication, which does not look at them.
 */
export function namingOf(name: string, atMs: number, rememberedMs: number): Send {
  return { key: JSON.stringify([name, 'name']), fingerprint: '', atMs, expiresAtMs: atMs + rememberedMs }
}

/** Puts the members of objects in one order, so that equal values have equal text. */
function sorted(_name: string, value: unknown): unknown {
  return isObject(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value
}
