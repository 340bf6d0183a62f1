/** Bytes that may wait for a client before its stream waits for it. */
export const HIGH_WATER_BYTES = 64 * 1024

/** What a sink tells of its client. */
export interface SinkEvents {
  /** There is room again. */
  readonly drained: () => void
  /** The client has left. Called once, and not after the end. */
  readonly gone: () => void
}

/** Where the text of a stream goes on its way to one client. */
export interface Sink {
  /** Called once, before all else. */
  open(events: SinkEvents): void
  /** Bytes that may still wait for the client; 0 or less where the next have to wait for it. */
  readonly room: number
  /** Sends text on at once; the empty text begins the response. */
  write(text: string): void
  /** Ends the response. */
  end(): void
  /** Ends the connection to a client that does not read. */
  cutOff(): void
}
