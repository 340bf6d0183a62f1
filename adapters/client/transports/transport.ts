import type { RequestFrame } from '../requests.ts'

/** Receives the answer to one request. */
export interface ResponseSink {
  /** The agent answered. `extensions` is its `A2A-Extensions` header: the active extensions. */
  answered(extensions?: string | null): void
  /** The result, or an event of a stream. */
  result(value: unknown): void
  /** The stream has certainly ended. A stream that stops without this may have been interrupted. */
  ended(): void
}

/** Sends single requests to an agent, without retries. Implemented by each binding without a lasting connection. */
export interface AgentTransport {
  /**
   * Sends a request and passes its answer to `hearer` until it ends. Throws ConnectionLost if the connection fails, and A2AError for the
   * agent's errors and invalid answers. Errors after `signal` aborted are ignored.
   */
  carry(frame: RequestFrame, hearer: ResponseSink, signal: AbortSignal): Promise<void>
  /** Closes what stays open between requests. */
  close(): void
}
