import {
  BAD_REQUEST,
  ERROR_INFO,
  type ErrorCode,
  errorCodeOf,
  type ErrorDetail,
  ERRORS
} from '../../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../../machines/protocol/operations.ts'
import { currentHeaders, type PlacedOptions } from '../../client/options.ts'

/** The parameters of a call. */
export interface WireParameters {
  /** `A2A-Version`; empty: none is sent. Default: that of the caller. */
  readonly version?: string
  readonly extensions?: readonly string[]
  /** The credentials of the caller. */
  readonly access?: PlacedOptions
  /** A bearer token in place of `access`; empty: none. */
  readonly credentials?: string
  /** Other service parameters (§3.2.6). */
  readonly parameters?: Readonly<Record<string, string>>
  /** Closes the connection of a waiting call. */
  readonly cut?: AbortSignal
}

/** A minimal client. Its params and results are unvalidated wire JSON. */
export interface WireCaller {
  /** Calls an operation. Rejects with a {@link WireRefusal}, or with another error if the answer is not A2A. */
  call(method: OperationMethod, params: object, parameters?: WireParameters): Promise<CallAnswer>
  stream(method: OperationMethod, params: object, parameters?: WireParameters): Stream
  /** Sends text unchanged, on bindings with JSON-RPC envelopes, and returns the response. */
  readonly raw?: (text: string) => Promise<Record<string, unknown>>
  close(): void
}

export interface CallAnswer {
  readonly result: unknown
  /** The extensions that the answer lists as active. */
  readonly extensions: string
}

/** An open stream. */
export interface Stream {
  /** The next event; `undefined` after a normal end. Rejects with a {@link WireRefusal}. */
  next(): Promise<StreamResponse | undefined>
  /** Cancels the stream. */
  leave(): void
}

/** Records whether the wire format meets a requirement: its number, the result, and the expected and actual values. */
export type Note = (id: number, isMet: boolean, wanted: string, found: unknown) => void

/** Ignores findings. */
export const ignoreFinding: Note = () => {}

/** An error in the form of its binding. */
export class WireRefusal extends Error {
  /** Its code on this binding: `-32001`, `404 NOT_FOUND`, `NOT_FOUND`. */
  readonly native: string
  readonly details: readonly ErrorDetail[]

  constructor(native: string, message: string, details: unknown) {
    super(message)
    this.native = native
    this.details = Array.isArray(details)
      ? details.filter(detail => typeof (detail as ErrorDetail | null)?.['@type'] === 'string')
      : []
  }

  /** The reason in its ErrorInfo, which identifies the error. */
  get reason(): unknown {
    return this.details.find(detail => detail['@type'] === ERROR_INFO)?.reason
  }

  /** The error's code, by its number or its reason; `undefined` without either. */
  get code(): ErrorCode | undefined {
    const byNumber = /^-\d+$/.test(this.native) ? errorCodeOf(Number(this.native)) : undefined
    return byNumber ?? (Object.keys(ERRORS) as ErrorCode[]).find(code => ERRORS[code].reason === this.reason)
  }

  /** The invalid fields. */
  get fields(): readonly unknown[] {
    const violations = this.details.find(detail => detail['@type'] === BAD_REQUEST)?.fieldViolations
    return Array.isArray(violations) ? violations.map(({ field }: { field: unknown }) => field) : []
  }
}

/** The headers for the parameters of a call (§3.2.6). The name of the extensions header depends on the version. */
export function parameterHeaders(
  parameters: WireParameters,
  extensionsHeader = 'a2a-extensions'
): Record<string, string> {
  const { version = '', extensions = [], parameters: others = {} } = parameters
  return {
    ...(version !== '' && { 'a2a-version': version }),
    ...(extensions.length > 0 && { [extensionsHeader]: extensions.join(',') }),
    ...currentHeaders(accessOf(parameters)),
    ...others
  }
}

/** The identity of the caller, for the URL and the headers of a request. */
export function accessOf({ access = {}, credentials }: WireParameters): PlacedOptions {
  if (credentials === undefined) return access
  return credentials === '' ? {} : { headers: { authorization: `Bearer ${credentials}` } }
}

/** The bounds of a test on one binding. */
export interface TestBounds {
  /** The time limit of an answer, and of silence on a stream. */
  readonly answerMs: number
  readonly requests: number
  readonly tasks: number
  /** The time limit of the whole test. */
  readonly totalMs: number
}

/** Ends a move: there was no valid answer, which is recorded. */
export class Unanswered extends Error {}

/** Ends the test of a binding: it reached a bound. */
export class BoundReached extends Error {}

/** Ignores a reached bound, which is recorded. */
export function ignoreBound(error: unknown): void {
  if (!(error instanceof BoundReached)) throw error
}

/** Ignores a move without an answer, which is recorded. */
export function ignoreUnanswered(error: unknown): void {
  if (!(error instanceof Unanswered)) throw error
}
