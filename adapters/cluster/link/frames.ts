import { createHmac, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { anyString, type Schema, tryDecode } from '../../../machines/protocol/codec/decode.ts'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError, ERRORS, isA2AError, type ErrorCode, type FieldViolation } from '../../../machines/protocol/errors.ts'
import { OWNER_CALL_NAMES, type OwnerCallName } from '../../../runtime/operations/cluster.ts'
import type { Scope } from '../../../runtime/store/rows.ts'
import type { Erasure, TaskEntry } from '../../../runtime/store/store.ts'

/** A request to another node. Each has a number of its own on its connection. */
export type Request =
  | { readonly change: OwnerCallName; readonly shard: number; readonly request: object }
  | { readonly watch: string; readonly shard: number; readonly scope: Scope }
  | { readonly withhold: Erasure }

/** A frame from the requesting node: a request, the end of one, or the end of an erasure. */
export type NodeRequestFrame = { readonly id: number } & (
  | Request
  | { readonly stop: true }
  | { readonly erased: boolean }
)

/** An answer. A request has one of the last three, or, if it is to be watched or withheld, any number of the others. */
export type NodeAnswer =
  | { readonly told: readonly TaskEntry[] }
  | { readonly advanced: number }
  | { readonly withheld: true }
  | { readonly answer: unknown }
  /** `isUnknown`: the request may have been carried out. */
  | { readonly error: WireError; readonly isUnknown?: true }
  /** The node does not have the shard. */
  | { readonly moved: true }

export type NodeAnswerFrame = { readonly id: number } & NodeAnswer

/** An error of an operation, as JSON. */
interface WireError {
  readonly code?: ErrorCode
  readonly message: string
  readonly metadata?: Readonly<Record<string, string>>
  readonly violations?: readonly FieldViolation[]
  readonly retryAfterMs?: number
}

/**
 * The close codes of a connection whose other side does not prove that it knows the secret, and of one that is no node
 * at all.
 */
export const OTHER_SECRET = 4401
export const NO_NODE = 4400

const whole = z.int()
const free = z.custom<object>(isObject)
const scope = z.object({ tenant: anyString, principal: anyString })
const code = z.enum(Object.keys(ERRORS) as ErrorCode[]).catch('InternalError')

/** A union of frames with an id and these members. */
const frames = (...shapes: readonly z.ZodRawShape[]) => z.union(shapes.map(shape => z.object({ id: whole, ...shape })))

/** Any frame with an id. */
export const NUMBERED: Schema<{ readonly id: number }> = z.object({ id: whole })

/** The frames of the requesting node. */
export const REQUEST_FRAMES = frames(
  { change: z.enum(OWNER_CALL_NAMES), shard: whole, request: free },
  { watch: anyString, shard: whole, scope },
  { withhold: z.object({ tenant: anyString, principal: anyString, contextId: z.optional(anyString) }) },
  { stop: z.literal(true) },
  { erased: z.boolean() }
) as Schema<unknown> as Schema<NodeRequestFrame>

/** The frames of the node that answers. A code of a newer node is InternalError here. */
export const ANSWERED = frames(
  {
    told: z.array(
      z.object({ taskId: anyString, generation: whole, update: z.optional(free), ordinal: z.optional(whole) })
    )
  },
  { advanced: whole },
  { withheld: z.literal(true) },
  { moved: z.literal(true) },
  {
    error: z.object({
      code: z.optional(code),
      message: anyString,
      metadata: z.optional(z.record(z.string(), anyString)),
      violations: z.optional(z.array(z.object({ field: anyString, description: anyString }))),
      retryAfterMs: z.optional(z.number())
    }),
    isUnknown: z.optional(z.literal(true))
  },
  { answer: z.custom(value => value !== undefined) }
) as Schema<unknown> as Schema<NodeAnswerFrame>

/** The first frame of the node that was called: a random text for the proofs of this connection. */
export const GREETING: Schema<{ readonly number: string }> = z.object({ number: anyString })
/** The answer to it, and the proof of the node that calls. */
export const PROVED: Schema<{ readonly number: string; readonly proof: string }> = z.object({
  number: anyString,
  proof: anyString
})
/** The proof of the node that was called. */
export const WELCOME: Schema<{ readonly proof: string }> = z.object({ proof: anyString })

/** Decodes a frame. Throws TypeError for text that is none of the schema. */
export function readFrame<T>(schema: Schema<T>, data: unknown): T {
  const { value, violations } = tryDecode(schema, parseFrame(data))
  if (violations) throw new TypeError('The frame is not one of a node of taskchart.')
  return value
}

/** The JSON value of a frame; `undefined` for other text. */
export function parseFrame(data: unknown): unknown {
  try {
    return JSON.parse(String(data))
  } catch {
    return undefined
  }
}

export function toFrameError(error: unknown): WireError {
  if (!isA2AError(error)) return { message: (error as Error).message }
  const { code, message, metadata, violations, retryAfterMs } = error
  return { code, message, metadata, violations, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

export function fromFrameError({ code, message, ...options }: WireError): Error {
  return code === undefined ? new Error(message) : new A2AError(code, message, options)
}

/**
 * The sides of a connection. Each proves that it knows the secret, by a number of the other. The secret itself is never
 * sent.
 */
export type Side = 'caller' | 'server'

/** Proves knowledge of the secret for one connection: an HMAC (RFC 2104) over the numbers of both sides. */
export function proofOf(secret: string, side: Side, numbers: readonly string[]): string {
  return createHmac('sha256', secret)
    .update(JSON.stringify(['taskchart link 1', side, ...numbers]))
    .digest('base64url')
}

export function isProof(given: string, secret: string, side: Side, numbers: readonly string[]): boolean {
  const wanted = Buffer.from(proofOf(secret, side, numbers))
  const proof = Buffer.from(given)
  return proof.length === wanted.length && timingSafeEqual(proof, wanted)
}
