import type { RequestFrame } from '../requests.ts'

/** What hears of one request while it is under way. */
export interface ResponseSink {
  /** The agent answers. `extensions` are those that it says are active, as `A2A-Extensions` lists them. */
  answered(extensions?: string | null): void
  /** The result, or one of a stream's. */
  result(value: unknown): void
  /** The stream is at its end for certain. One that stops without this may have been cut off. */
  ended(): void
}

/**
 * Carries single requests to an agent, each by itself, and does nothing again. Made for each binding on which requests
 * find their own way.
 */
export interface AgentTransport {
  /**
   * Sends a request and tells `hearer` what comes, until no more does. Throws ConnectionLost if the way to the agent
   * failed, A2AError if the agent or its answer did; whatever it throws after `signal` aborted counts for nothing.
   */
  carry(frame: RequestFrame, hearer: ResponseSink, signal: AbortSignal): Promise<void>
  /** Lets go of what is kept open between requests. */
  close(): void
}
