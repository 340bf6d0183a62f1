import { createHmac, timingSafeEqual } from 'node:crypto'
import { A2AError, isA2AError, type ErrorCode, type FieldViolation } from '../../../machines/protocol/errors.ts'
import type { ChangeName } from '../../../runtime/operations/cluster.ts'
import type { Erasure, Scope, TaskEvent } from '../../../runtime/store/store.ts'

/** A request to another node. Each has a number of its own on its connection. */
export type Request =
  | { readonly change: ChangeName; readonly shard: number; readonly request: object }
  | { readonly watch: string; readonly shard: number; readonly scope: Scope }
  | { readonly withhold: Erasure }

/** A frame from the node that asks: a request, the end of one, or the end of an erasure. */
export type Asked = { readonly id: number } & (Request | { readonly stop: true } | { readonly erased: boolean })

/** An answer. A request has one of the last three, or, if it is to be watched or withheld, any number of the others. */
export type Answer =
  | { readonly told: readonly TaskEvent[] }
  | { readonly advanced: number }
  | { readonly withheld: true }
  | { readonly answer: unknown }
  /** `isUnknown`: what was asked may have been done. */
  | { readonly error: WireError; readonly isUnknown?: true }
  /** The node does not have the shard. */
  | { readonly moved: true }

export type Answered = { readonly id: number } & Answer

/** An error of an operation, as JSON. */
interface WireError {
  readonly code?: ErrorCode
  readonly message: string
  readonly metadata?: Readonly<Record<string, string>>
  readonly violations?: readonly FieldViolation[]
  readonly retryAfterMs?: number
}

export function toWireError(error: unknown): WireError {
  if (!isA2AError(error)) return { message: (error as Error).message }
  const { code, message, metadata, violations, retryAfterMs } = error
  return { code, message, metadata, violations, ...(retryAfterMs !== undefined && { retryAfterMs }) }
}

export function fromWireError({ code, message, ...options }: WireError): Error {
  return code === undefined ? new Error(message) : new A2AError(code, message, options)
}

/** The first frames of a connection: each side proves that it knows the secret, by a number of the other. The secret itself is never sent. */
export type Side = 'caller' | 'server'

/** Proves knowledge of the secret for one connection: an HMAC (RFC 2104) over the numbers of both sides. */
export function proofOf(secret: string, side: Side, numbers: readonly string[]): string {
  return createHmac('sha256', secret).update(JSON.stringify(['taskchart link 1', side, ...numbers])).digest('base64url')
}

export function isProof(given: unknown, secret: string, side: Side, numbers: readonly string[]): boolean {
  const wanted = Buffer.from(proofOf(secret, side, numbers))
  const proof = Buffer.from(String(given))
  return proof.length === wanted.length && timingSafeEqual(proof, wanted)
}
