import { A2AError } from '../../machines/protocol/errors.ts'
import { systemClock, type Clock } from '../../runtime/clock.ts'
import { ClientCalls } from './client-calls.ts'
import { openSocket } from './client-socket.ts'
import { agentUrl } from './discovery.ts'

/** How to connect. */
export interface ConnectOptions {
  /** Headers of the handshake, such as `authorization`; a function is asked again at each new connection. Not in browsers, which cannot set them. */
  readonly headers?: Readonly<Record<string, string>> | (() => Readonly<Record<string, string>>)
  /** URIs of extensions to activate beside the reliability extension, which always is. */
  readonly extensions?: readonly string[]
  /** Gives up connecting for the first time. */
  readonly signal?: AbortSignal
  /** How long a lost connection is tried again before calls and streams fail. Default 5 minutes; 0 never tries. */
  readonly giveUpAfterMs?: number
  readonly clock?: Clock
  /** A random number from 0 up to 1, for the jitter of the back-off. Default `Math.random`. */
  readonly random?: () => number
}

const GIVE_UP_AFTER_MS = 5 * 60 * 1000

/** Connects to an agent, for calls by the names of their methods. */
export async function openCalls(url: string, options: ConnectOptions): Promise<ClientCalls> {
  const { headers = {}, extensions = [], signal, clock = systemClock, random = Math.random, giveUpAfterMs = GIVE_UP_AFTER_MS } = options
  const address = await agentUrl(url, signal)
  if (options.headers && new URL(address).hostname !== new URL(url).hostname) throw elsewhere(url, address)
  const open = (signal?: AbortSignal) => openSocket(address, { headers: typeof headers === 'function' ? headers() : headers, signal })
  const calls = new ClientCalls({ url: address, open, clock, random, giveUpAfterMs }, extensions)
  await calls.link.start(signal)
  return calls
}

/** A card may name any host: credentials meant for the one that was asked go to no other. */
function elsewhere(url: string, address: string): A2AError {
  return new A2AError('Forbidden', `The card at ${url} names an agent on another host, ${address}. Give that address yourself to send it your headers.`)
}
