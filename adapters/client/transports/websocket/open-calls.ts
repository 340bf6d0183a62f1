import { backOffOptions, type PlacedOptions } from '../../options.ts'
import { ClientCalls } from './calls.ts'
import { openSocket } from './socket.ts'

/** Connects to a `ws:` URL. */
export async function openSocketCalls(url: string, options: PlacedOptions): Promise<ClientCalls> {
  const { extensions = [], signal } = options
  const open = async (signal: AbortSignal) => openSocket(url, options, signal)
  const calls = new ClientCalls({ url, open, ...backOffOptions(options) }, extensions)
  await calls.link.start(signal)
  return calls
}
