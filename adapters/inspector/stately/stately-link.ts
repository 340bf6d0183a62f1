import { connect, type NetConnectOpts } from 'node:net'
import { WebSocket, type ClientOptions } from 'ws'
import type { Logger } from '../../../runtime/ports/logger.ts'
import type { Hub } from '../hub.ts'
import type { Redact } from '../recorder/seen-step.ts'
import { StatelySink, type Stately } from './stately-sink.ts'

/** The pauses between attempts to connect: doubled from the first to the last. */
const FIRST_PAUSE_MS = 500
const LAST_PAUSE_MS = 30_000

/** The buffer of a receiver in bytes. Above it, the connection is replaced, and starts with the present actors. */
export const WAITING_BYTES = 1024 * 1024

/** Creates a connection that does not keep the process alive. */
const notHolding: NonNullable<ClientOptions['createConnection']> = options => connect(options as NetConnectOpts).unref()

/** The options of a link. */
export interface LinkOptions {
  readonly stately: Stately
  readonly redact: Redact
  readonly logger: Logger
}

/**
 * Sends inspection events to a receiver of Stately's (`createInspectorServer`). Reconnects until it is closed, and never keeps the
 * process alive. Returns the function that closes it.
 */
export function linkTo(url: string, hub: Hub, { stately, redact, logger }: LinkOptions): () => void {
  let pauseMs = FIRST_PAUSE_MS
  let timer: NodeJS.Timeout | undefined
  let socket: WebSocket | undefined
  let isClosed = false

  const open = () => {
    const own = new WebSocket(url, { createConnection: notHolding })
    socket = own
    let release = () => {}
    own.on('open', () => {
      pauseMs = FIRST_PAUSE_MS
      release = hub.sink(
        new StatelySink(stately, redact, text => {
          if (own.bufferedAmount > WAITING_BYTES) own.terminate()
          else if (own.readyState === own.OPEN) own.send(text)
        })
      )
    })
    own.on('close', () => {
      release()
      if (isClosed) return
      timer = setTimeout(open, pauseMs).unref()
      pauseMs = Math.min(2 * pauseMs, LAST_PAUSE_MS)
    })
    own.on('error', error => logger.info?.('the receiver of the inspection is unreachable', { url, error }))
  }
  open()
  return () => {
    isClosed = true
    clearTimeout(timer)
    socket?.terminate()
  }
}
