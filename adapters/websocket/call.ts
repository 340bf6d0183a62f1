import type { AgentInterface } from '../../machines/protocol/card.ts'
import type { CallContext, Conditions, Budget } from '../../runtime/access/call-context.ts'
import { resultTexts, type ResultTexts, type RequestId } from '../json-rpc/dispatch.ts'
import type { CallParameters, TraceParameters } from '../json-rpc/service-parameters.ts'
import { LargeAnswer, type LargeAnswers } from './large-answer.ts'

/** The parts that all calls of a connection share. */
export interface ConnectionOfCalls {
  readonly caller: Pick<CallContext, 'tenant' | 'principal' | 'claims' | 'connection'>
  readonly interfaces: readonly AgentInterface[]
  readonly largeAnswers: LargeAnswers
}

/** The parts of a call that come from its request. */
export interface WebSocketCallOptions {
  readonly id: RequestId
  readonly parameters: CallParameters
  /** Its size on the wire. */
  readonly bytes: number
  /** Aborts when its client disconnects or ends its stream. */
  readonly signal: AbortSignal
  /** The controller of its stream. */
  readonly stop: AbortController | undefined
  readonly traced: TraceParameters | undefined
}

/** An active request and the context of its call, in one object: a copy of a context costs 0.5 kB. */
export class Call implements CallContext {
  readonly id: RequestId
  readonly stop: AbortController | undefined
  readonly activated: readonly string[]
  readonly signal: AbortSignal
  readonly interfaces: readonly AgentInterface[]
  readonly bytes: number
  readonly version: string
  readonly extensions: readonly string[]
  readonly conditions: Conditions
  readonly connection: CallContext['connection']
  readonly tenant: string | undefined
  readonly principal: string | undefined
  readonly claims: CallContext['claims']
  readonly trace: CallContext['trace']
  readonly binding: CallContext['binding']
  readonly #answers: LargeAnswers
  #large: LargeAnswer | undefined

  constructor(
    { caller, interfaces, largeAnswers }: ConnectionOfCalls,
    { id, parameters, bytes, signal, stop, traced }: WebSocketCallOptions
  ) {
    this.id = id
    this.stop = stop
    this.activated = parameters.activated
    this.signal = signal
    this.interfaces = interfaces
    this.bytes = bytes
    this.version = parameters.version
    this.extensions = parameters.extensions
    this.conditions = parameters.conditions
    this.connection = caller.connection
    this.tenant = caller.tenant
    this.principal = caller.principal
    this.claims = caller.claims
    this.trace = traced?.trace
    this.binding = traced?.binding
    this.#answers = largeAnswers
  }

  /** The answer, or the first event of the stream, if it is large. */
  get large(): LargeAnswer | undefined {
    return this.#large
  }

  readonly budget: Budget = bytes => {
    this.#large ??= new LargeAnswer(this.#answers, this.id, this.activated, this.signal)
    return this.#large.reserve(bytes)
  }

  /** Releases the memory of a large answer. */
  end(): void {
    this.#large?.end()
  }

  /** The texts around each result. */
  resultTexts(): ResultTexts {
    return resultTexts(this.id, this.activated)
  }
}
