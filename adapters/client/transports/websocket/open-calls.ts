import { fetchCard, isSocketAddress } from '../../card/discovery.ts'
import { offersOf } from '../../card/interfaces.ts'
import { checkOrigins, originRefusal } from '../../hosts.ts'
import { backOffOptions, currentHeaders, type ConnectOptions } from '../../options.ts'
import { ClientCalls } from './calls.ts'
import { openSocket } from './socket.ts'

/** Connects to an agent over WebSocket. `url` is a `ws:` URL, or the URL of its card. */
export async function openCalls(url: string, options: ConnectOptions): Promise<ClientCalls> {
  if (isSocketAddress(url) && !options.verifyCard) return openSocketCalls(url, options)
  checkOrigins(options.credentialOrigins)
  const [{ url: address }] = offersOf(await fetchCard(url, options), url, ['WEBSOCKET'])
  const refusal = originRefusal(url, address, options)
  if (refusal) throw refusal
  return openSocketCalls(address, options)
}

/** Connects to a `ws:` URL. */
export async function openSocketCalls(url: string, options: ConnectOptions): Promise<ClientCalls> {
  const { extensions = [], signal } = options
  const open = async (signal: AbortSignal) => openSocket(url, currentHeaders(options), signal)
  const calls = new ClientCalls({ url, open, ...backOffOptions(options) }, extensions)
  await calls.link.start(signal)
  return calls
}

export type { ConnectOptions }
