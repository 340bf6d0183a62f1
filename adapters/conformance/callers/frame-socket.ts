import { WebSocket } from 'ws'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { A2AError } from '../../../machines/protocol/errors.ts'
import { WEBSOCKET_SUBPROTOCOL } from '../../../machines/protocol/uris.ts'
import { onReceived } from '../../../runtime/primitives/received.ts'

/** The maximum length of a frame. */
const LONGEST_FRAME_BYTES = 16 * 1024 * 1024

/** The time limit of a handshake, which `ws` enforces. */
const HANDSHAKE_MS = 10_000

/** The frames that answer one request. */
export interface Frames {
  /** The next frame. Rejects with InvalidAgentResponse when the connection has ended. */
  next(): Promise<unknown>
  /** No more are expected. */
  done(): void
  /** Cancels the stream; its task goes on. */
  leave(): void
}

/** A WebSocket whose frames are sorted by request id. */
export class FrameSocket {
  readonly #socket: WebSocket
  readonly #opened: Promise<void>
  readonly #waiting = new Map<unknown, { frames: unknown[]; wake: () => void }>()
  #end: string | undefined

  constructor(url: string, headers: Record<string, string>) {
    this.#socket = new WebSocket(url, WEBSOCKET_SUBPROTOCOL, {
      headers,
      maxPayload: LONGEST_FRAME_BYTES,
      handshakeTimeout: HANDSHAKE_MS,
      followRedirects: false
    })
    this.#opened = new Promise(resolve => {
      this.#socket.once('open', resolve)
      this.#socket.once('close', () => resolve())
    })
    this.#socket.on('error', ({ message }) => this.#ended(message))
    this.#socket.on('close', (code, reason) => this.#ended(`closed with ${code} ${String(reason)}`.trim()))
    onReceived(this.#socket, 'message', (data: Buffer) => this.#heard(data.toString('utf8')))
  }

  get isClosed(): boolean {
    return this.#end !== undefined
  }

  /** Sends a request as text. */
  ask(id: unknown, text: string): Frames {
    const entry = { frames: [] as unknown[], wake: () => {} }
    this.#waiting.set(id, entry)
    const send = (given: string) => void this.#opened.then(() => this.#end ?? this.#socket.send(given))
    send(text)
    const next = async () => {
      while (entry.frames.length === 0 && this.#end === undefined)
        await new Promise<void>(resolve => (entry.wake = resolve))
      if (entry.frames.length > 0) return entry.frames.shift()
      throw new A2AError('InvalidAgentResponse', `The connection has ended: ${this.#end}`)
    }
    const leave = () => send(JSON.stringify({ jsonrpc: '2.0', method: 'cancelStream', params: { id } }))
    return { next, leave, done: () => void this.#waiting.delete(id) }
  }

  terminate(): void {
    this.#ended('cut by this client')
    this.#socket.terminate()
  }

  #heard(text: string): void {
    const frame = parsed(text)
    const entry = isObject(frame) ? this.#waiting.get(frame.id) : undefined
    // A frame with an unknown id counts as the answer to the last request, with a wrong id.
    const meant = entry ?? [...this.#waiting.values()].at(-1)
    meant?.frames.push(frame)
    meant?.wake()
  }

  #ended(why: string): void {
    this.#end ??= why
    for (const { wake } of this.#waiting.values()) wake()
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
