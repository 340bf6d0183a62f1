import { WebSocket } from 'ws'

/** The WebSocket of a client, whose frames its `Outbox` writes to the socket below it. */
export class ServedSocket extends WebSocket {
  /** Called before a close frame, which ends what the client reads. */
  beforeClose: (() => void) | undefined

  override close(code?: number, data?: string | Buffer): void {
    this.beforeClose?.()
    super.close(code, data)
  }
}
