import type * as z from 'zod'
import {
  list,
  optionalId,
  optionalList,
  optionalText,
  presenceField,
  requiredField,
  nullableField
} from './codec/fields.ts'
import { isObject } from './codec/json.ts'
import { message, oneOf } from './codec/message.ts'
import { bytes, enumeration, identifier, json, nonEmptyText, struct, anyString } from './codec/values.ts'

/** The roles with their numbers in the proto (§4.1.5), without `ROLE_UNSPECIFIED`, which is never sent. */
export const ROLES = { ROLE_USER: { number: 1 }, ROLE_AGENT: { number: 2 } } as const

/** The sender of a message: the client or the agent (§4.1.5). */
export type Role = keyof typeof ROLES

/** A part of a message or an artifact (§4.1.6): exactly one of `text`, `raw`, `url` and `data`. */
export const PartSchema = oneOf(
  {
    text: requiredField(anyString),
    raw: requiredField(bytes),
    url: requiredField(nonEmptyText),
    data: nullableField(json)
  },
  { metadata: presenceField(struct), filename: optionalText, mediaType: optionalText }
)

/**
 * A part of a message or an artifact (§4.1.6). Narrow it with `'text' in part` and the like; `raw` is base64, `data`
 * any JSON value, including null.
 */
export type Part = z.output<typeof PartSchema>

/** One or more parts. */
export const partsField = requiredField(list(PartSchema, { min: 1, simple: textAlone }))

/** One message of a client or an agent (§4.1.4). */
export const MessageSchema = message({
  messageId: requiredField(identifier),
  contextId: optionalId,
  taskId: optionalId,
  role: requiredField(enumeration(ROLES)),
  parts: partsField,
  metadata: presenceField(struct),
  extensions: optionalList(nonEmptyText),
  referenceTaskIds: optionalList(identifier)
})

/** One message of a client or an agent (§4.1.4). The sender makes the `messageId`. */
export interface Message extends z.output<typeof MessageSchema> {}

/**
 * Fast path for a part that has only `text`, as most have: decoding it would take nearly as long as the rest of its
 * message.
 */
function textAlone(part: unknown): Part | undefined {
  if (!isObject(part) || Object.keys(part).length !== 1) return undefined
  const { text } = part
  return typeof text === 'string' && Object.hasOwn(part, 'text') ? { text } : undefined
}
