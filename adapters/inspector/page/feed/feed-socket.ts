import { systemClock } from '../../../../runtime/ports/clock.ts'
import { onMessageEvent } from '../../../../runtime/primitives/event-loop.ts'
import { BackOff } from '../../../client/retries/transport-state.ts'
import type { FromHub, FromPage } from '../../feed.ts'

/** The state of the feed: being opened, open, or lost and about to be retried. */
export type FeedState = 'connecting' | 'open' | 'lost'

/** Receives the feed's messages and states. */
export interface FeedUser {
  received(frame: FromHub): void
  entered(state: FeedState): void
}

/** The socket of the feed, reopened whenever it is lost. */
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

  /** Sends a request if the feed is open. After a loss, the user repeats its requests on `hello`. */
  send(frame: FromPage): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame))
  }

  #open(): void {
    const socket = new WebSocket(this.#url)
    this.#socket = socket
    socket.addEventListener('open', () => this.#user.entered('open'))
    const receive = ({ data }: { readonly data: unknown }) => {
      this.#backOff.reset()
      this.#user.received(JSON.parse(String(data)) as FromHub)
    }
    onMessageEvent(socket, receive, error => console.error(error))
    socket.addEventListener('close', () => {
      this.#user.entered('lost')
      setTimeout(() => this.#open(), this.#backOff.next())
    })
  }
}
