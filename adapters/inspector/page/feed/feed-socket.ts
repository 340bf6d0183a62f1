import { systemClock } from '../../../../runtime/ports/clock.ts'
import { BackOff } from '../../../client/retries/back-off.ts'
import type { FromHub, FromPage } from '../../feed.ts'

/** How the feed stands: being opened, there, or lost and tried again. */
export type FeedState = 'connecting' | 'open' | 'lost'

/** What hears of the feed. */
export interface FeedUser {
  received(frame: FromHub): void
  entered(state: FeedState): void
}

/** The socket of the feed, opened again whenever it is lost, for as long as the page is there. */
export class FeedSocket {
  readonly #url: string
  readonly #user: FeedUser
  readonly #backOff = new BackOff({ clock: systemClock, random: Math.random, giveUpAfterMs: Infinity })
  #socket: WebSocket | undefined

  constructor(url: string, user: FeedUser) {
    this.#url = url
    this.#user = user
    this.#open()
  }

  /** Asks the hub for something, if it is there; what has to be asked again after a loss, the user asks when it hears `hello`. */
  send(frame: FromPage): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame))
  }

  #open(): void {
    const socket = new WebSocket(this.#url)
    this.#socket = socket
    socket.addEventListener('open', () => this.#user.entered('open'))
    socket.addEventListener('message', ({ data }) => {
      this.#backOff.reset()
      this.#user.received(JSON.parse(String(data)) as FromHub)
    })
    socket.addEventListener('close', () => {
      this.#user.entered('lost')
      setTimeout(() => this.#open(), this.#backOff.next())
    })
  }
}
