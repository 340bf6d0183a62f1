/** The way to an agent failed under a request, before its answer was whole. Never leaves the client. */
export class ConnectionLost extends Error {
  override readonly name = 'ConnectionLost'
  /** Whether it is certain that the request did not reach the agent. */
  readonly isUnsent: boolean

  constructor(why: string, { isUnsent = false, cause }: { isUnsent?: boolean; cause?: unknown } = {}) {
    super(why, { cause })
    this.isUnsent = isUnsent
  }
}
