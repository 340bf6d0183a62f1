import { ERROR_INFO, BAD_REQUEST, ERRORS, errorCodeOf, type ErrorCode, type ErrorDetail } from '../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'

/** On what terms a call is made. */
export interface Terms {
  /** `A2A-Version`; empty: none is sent. Default that of the caller. */
  readonly version?: string
  readonly extensions?: readonly string[]
  /** Who calls, as a bearer token; empty: nobody. */
  readonly credentials?: string
  /** Other service parameters (§3.2.6). */
  readonly parameters?: Readonly<Record<string, string>>
  /** Cuts the connection of a call that waits. */
  readonly cut?: AbortSignal
}

/** A client as simple as can be. It takes and gives wire JSON; of what is in that nothing is checked. */
export interface Caller {
  /** Calls. Rejects with a {@link Refusal}, or with another error when there was no answer that A2A knows. */
  call(method: OperationMethod, params: object, terms?: Terms): Promise<Answer>
  stream(method: OperationMethod, params: object, terms?: Terms): Stream
  /** Sends text as it is, where a request is one JSON-RPC object, and gives the answer's. */
  readonly raw?: (text: string) => Promise<Record<string, unknown>>
  close(): void
}

export interface Answer {
  readonly result: unknown
  /** The extensions that the answer says are active. */
  readonly extensions: string
}

/** A stream under way. */
export interface Stream {
  /** The next event; `undefined` when the stream has ended well. Rejects with a {@link Refusal}. */
  next(): Promise<StreamResponse | undefined>
  /** Ends it from this side. */
  leave(): void
}

/** Hears how the wire meets a requirement: its number, whether it does, what was wanted, and what was found instead. */
export type Note = (id: number, isMet: boolean, wanted: string, found: unknown) => void

/** Hears nothing. */
export const unheard: Note = () => {}

/** An error as a binding tells it. */
export class Refusal extends Error {
  /** What it is called on this binding: `-32001`, `404 NOT_FOUND`, `NOT_FOUND`. */
  readonly native: string
  readonly details: readonly ErrorDetail[]

  constructor(native: string, message: string, details: unknown) {
    super(message)
    this.native = native
    this.details = Array.isArray(details) ? details.filter(detail => typeof (detail as ErrorDetail | null)?.['@type'] === 'string') : []
  }

  /** The reason of its ErrorInfo: which error it is. */
  get reason(): unknown {
    return this.details.find(detail => detail['@type'] === ERROR_INFO)?.reason
  }

  /** Which error it is, by its number or its reason; `undefined` where neither says. */
  get code(): ErrorCode | undefined {
    const byNumber = /^-\d+$/.test(this.native) ? errorCodeOf(Number(this.native)) : undefined
    return byNumber ?? (Object.keys(ERRORS) as ErrorCode[]).find(code => ERRORS[code].reason === this.reason)
  }

  /** The fields that are wrong. */
  get fields(): readonly unknown[] {
    const violations = this.details.find(detail => detail['@type'] === BAD_REQUEST)?.fieldViolations
    return Array.isArray(violations) ? violations.map(({ field }: { field: unknown }) => field) : []
  }
}
