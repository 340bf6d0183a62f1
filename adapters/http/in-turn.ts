import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { PrivateProperty } from '../../runtime/primitives/private-property.ts'

/** The requests of one connection: whether one is being answered, and what begins those behind it. */
interface Line {
  isBusy: boolean
  readonly waiting: (() => void)[]
}

/**
 * Answers the requests of one connection one after the other, in their order (RFC 9112 §9.3.2). Node hands over every request
 * of a chunk at once: answered together, all of their answers would wait in memory for a client that may not read. With more
 * than `most` requests waiting, no more bytes are read from the connection.
 */
export class InTurn {
  readonly #most: number
  readonly #lines = new PrivateProperty<Socket, Line>()

  constructor(most: number) {
    this.#most = most
  }

  /** Calls `answer` when the responses before this one are finished. Nothing is called once the connection is closed. */
  add({ socket }: IncomingMessage, response: ServerResponse, answer: () => void): void {
    const line = this.#lineOf(socket)
    response.once('close', () => this.#next(line, socket))
    if (!line.isBusy) {
      line.isBusy = true
      return answer()
    }
    line.waiting.push(answer)
    if (line.waiting.length > this.#most) socket.pause()
  }

  #next(line: Line, socket: Socket): void {
    if (socket.destroyed) return
    const answer = line.waiting.shift()
    if (line.waiting.length === this.#most) socket.resume()
    line.isBusy = answer !== undefined
    answer?.()
  }

  #lineOf(socket: Socket): Line {
    const known = this.#lines.get(socket)
    if (known) return known
    const line: Line = { isBusy: false, waiting: [] }
    this.#lines.set(socket, line)
    // Node resumes the connection whenever a body is read, also after it was paused in the same turn. Then only the event stops it.
    socket.on('resume', () => {
      if (line.waiting.length <= this.#most) return
      socket.pause()
      socket.emit('pause')
    })
    return line
  }
}
