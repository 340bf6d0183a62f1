import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Tally } from './tally.ts'

/** A TCP connection of the attacker, on which every byte is its choice. It counts the answers that it reads. */
export class Wire {
  readonly #socket: Socket
  readonly #tally: Tally
  readonly #gone: Promise<void>
  #isGone = false

  private constructor(socket: Socket, tally: Tally) {
    this.#socket = socket.on('error', () => {}).on('data', (data: Buffer) => tally.take(data))
    this.#tally = tally
    this.#gone = new Promise(resolve => {
      socket.once('close', () => {
        this.#isGone = true
        resolve()
      })
    })
  }

  /** Connects. Throws Error if that is refused, as it is once the server is gone. */
  static async to(port: number, tally: Tally): Promise<Wire> {
    const socket = connect(port, '127.0.0.1').setNoDelay(true).setMaxListeners(0)
    await once(socket, 'connect')
    return new Wire(socket, tally)
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Reads nothing from now on. */
  unread(): void {
    this.#socket.pause()
  }

  /** Resolves when the system has taken the bytes, the connection is gone or the time is over. */
  async write(bytes: string | Buffer, withinMs: number): Promise<void> {
    if (this.#isGone) return
    this.#tally.sent(Buffer.byteLength(bytes))
    if (!this.#socket.write(bytes)) await this.#within(withinMs, resolve => void this.#socket.once('drain', resolve))
  }

  /** Resolves after a time, or when the connection is gone. */
  hold(ms: number): Promise<void> {
    return this.#within(ms, () => {})
  }

  /** Ends it, by a reset if `isRude`. */
  end(isRude: boolean): void {
    if (isRude) this.#socket.resetAndDestroy()
    else this.#socket.destroy()
  }

  async #within(ms: number, until: (resolve: () => void) => void): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await Promise.race([
      this.#gone,
      new Promise<void>(resolve => {
        timer = setTimeout(resolve, ms)
        until(resolve)
      })
    ])
    clearTimeout(timer)
  }
}

/** A text frame (RFC 6455 §5.2), masked with zeros, which costs nothing. */
export function textFrame(text: string): Buffer {
  const payload = Buffer.from(text)
  const head = payload.length < 126 ? Buffer.alloc(6) : payload.length < 65_536 ? Buffer.alloc(8) : Buffer.alloc(14)
  head[0] = 0x81
  head[1] = 0x80 | (head.length === 6 ? payload.length : head.length === 8 ? 126 : 127)
  if (head.length === 8) head.writeUInt16BE(payload.length, 2)
  if (head.length === 14) head.writeBigUInt64BE(BigInt(payload.length), 2)
  return Buffer.concat([head, payload])
}
