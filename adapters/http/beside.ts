import type { Server } from 'node:http'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Tap } from '../websocket/tap.ts'
import type { Handler } from './handler.ts'

/** What is served beside an agent on its port, such as an inspector. */
export interface Beside {
  /** Where it listens to the frames of the agent's connections, when it wants to. */
  readonly tap: Tap
  /** Answers a request that is for it; undefined for all others, which are for the agent. */
  answer(request: Request): Promise<Response | undefined> | undefined
  /** Takes its place on a server that listens, beside this runtime, whose agent is at `url` (`ws:`). The answer ends it. */
  open(server: Server, runtime: Runtime, url: string): Promise<() => Promise<void>>
}

/** A handler that asks what is beside the agent first. */
export function beside(other: Beside | undefined, handler: Handler): Handler {
  if (!other) return handler
  return (request, served) => {
    const answered = other.answer(request)
    return answered ? answered.then(answer => answer ?? handler(request, served)) : handler(request, served)
  }
}
