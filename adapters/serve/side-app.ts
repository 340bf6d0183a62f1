import type { Server } from 'node:http'
import type { AgentInterface } from '../../machines/protocol/card.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Handler } from '../entry/connection.ts'
import type { Tap } from '../entry/frame-tap.ts'

/** What is served beside an agent on its port, such as an inspector. */
export interface SideApp {
  /** Where it listens to the frames of the agent's connections, when it wants to. */
  readonly tap: Tap
  /** Answers a request that is for it; undefined for all others, which are for the agent. */
  answer(request: Request): Promise<Response | undefined> | undefined
  /** Takes its place on a server that listens, beside this runtime, whose agent is at `url` (`ws:`). The answer ends it. */
  open(server: Server, runtime: Runtime, url: string): Promise<() => Promise<void>>
}

/** A binding with a port of its own, which `serve` opens and closes with the rest: `grpc({ port })` of `taskchart/grpc`. */
export interface PortBinding {
  /** Serves a runtime. Rejects if the port cannot be bound. */
  open(runtime: Runtime): Promise<OpenBinding>
}

/** A binding that takes calls on its port. */
export interface OpenBinding {
  /** Its own interfaces. */
  readonly interfaces: readonly AgentInterface[]
  /** Has its cards list these, which are all interfaces of the agent. */
  list(interfaces: readonly AgentInterface[]): void
  /** Refuses new calls from now on. */
  drain(): void
  /** Ends its calls, and closes its port. May be called twice. */
  close(): Promise<void>
}

/** A handler that asks what is beside the agent first. */
export function beside(other: SideApp | undefined, handler: Handler): Handler {
  if (!other) return handler
  return (request, served) => {
    const answered = other.answer(request)
    return answered ? answered.then(answer => answer ?? handler(request, served)) : handler(request, served)
  }
}
