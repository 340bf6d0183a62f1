import type { Server } from 'node:http'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import type { Runtime } from '../../runtime/index.ts'
import type { Handler, HttpRequest, Tap } from '../entry/connection.ts'

/** An app on the port of an agent, such as an inspector. */
export interface PortExtension {
  /** Observes the frames of the agent's connections. */
  readonly tap: Tap
  /** Answers its own requests; `undefined` for requests of the agent. */
  answer(request: HttpRequest): Promise<Response | undefined> | undefined
  /**
   * Starts beside this runtime on a listening server; the agent is at `url` (`ws:`). Resolves with the function that
   * ends it.
   */
  open(server: Server, runtime: Runtime, url: string): Promise<() => Promise<void>>
}

/** A binding with its own port, which `serve` opens and closes: `grpc({ port })` of `taskchart/grpc`. */
export interface PortBinding {
  /** Serves a runtime. Rejects if the port cannot be bound. */
  open(runtime: Runtime): Promise<OpenBinding>
}

/** A binding that accepts calls. */
export interface OpenBinding {
  /** The interfaces of the binding. */
  readonly interfaces: readonly AgentInterface[]
  /** Sets the interfaces in its cards: all interfaces of the agent. */
  list(interfaces: readonly AgentInterface[]): void
  /** Refuses new calls from now on. */
  drain(): void
  /** Ends its calls and closes its port. May be called twice. */
  close(): Promise<void>
}

/** A handler that lets the extension answer first. */
export function withExtension(other: PortExtension | undefined, handler: Handler): Handler {
  if (!other) return handler
  return (request, served) => {
    const answered = other.answer(request)
    return answered ? answered.then(answer => answer ?? handler(request, served)) : handler(request, served)
  }
}
