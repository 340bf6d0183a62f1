import type { Test } from 'tap'
import type { ErrorDetail } from '../../machines/protocol/errors.ts'
import type { StreamResponse } from '../../machines/protocol/objects.ts'
import type { OperationMethod } from '../../machines/protocol/operations.ts'
import type { Runtime } from '../../runtime/runtime.ts'

/** One way to reach an agent: a column of the table. */
export interface Binding {
  readonly name: BindingName
  /** The version of A2A that is spoken. */
  readonly version: '1.0' | '0.3'
  /** Serves a runtime until the test ends. Gives the address: of the host for all that comes over HTTP. */
  serve(t: Test, runtime: Runtime): Promise<string>
  /** A client of its own, on these terms unless a call says otherwise. */
  open(t: Test, address: string, terms?: Terms): Promise<Caller>
}

export type BindingName = 'WebSocket' | 'JSON-RPC' | 'REST' | 'gRPC' | '0.3 WebSocket' | '0.3 JSON-RPC' | '0.3 REST'

/** On what terms a call is made. */
export interface Terms {
  /** `A2A-Version`; empty: none is sent. Default that of the binding. */
  readonly version?: string
  readonly extensions?: readonly string[]
  /** Who calls, as a bearer token. */
  readonly credentials?: string
  /** Other service parameters (§3.2.6). */
  readonly parameters?: Readonly<Record<string, string>>
  /** Cuts the connection of a call that waits. */
  readonly cut?: AbortSignal
}

/** A client as simple as can be. It takes and gives the wire JSON of A2A 1.0, whatever is on the wire; nothing is checked. */
export interface Caller {
  /** Calls. Rejects with a {@link Refusal}. */
  call(method: OperationMethod, params: object, terms?: Terms): Promise<Answer>
  stream(method: OperationMethod, params: object, terms?: Terms): Stream
  /** Sends text as it is, where a request is one JSON-RPC object, and gives the answer's. */
  readonly raw?: (text: string) => Promise<Record<string, unknown>>
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

/** An error as a binding tells it. */
export class Refusal extends Error {
  /** What it is called on this binding: `-32001`, `404 NOT_FOUND`, `NOT_FOUND`. */
  readonly native: string
  readonly details: readonly ErrorDetail[]

  constructor(native: string, message: string, details: readonly ErrorDetail[]) {
    super(message)
    this.native = native
    this.details = details
  }

  /** The reason of its ErrorInfo: which error it is. */
  get reason(): unknown {
    return this.details.find(detail => detail['@type'].endsWith('.ErrorInfo'))?.reason
  }

  /** The fields that are wrong. */
  get fields(): readonly unknown[] {
    const violations = this.details.find(detail => detail['@type'].endsWith('.BadRequest'))?.fieldViolations
    return Array.isArray(violations) ? violations.map(({ field }: { field: unknown }) => field) : []
  }
}
