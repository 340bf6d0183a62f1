import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { SERVICE_PARAMETERS } from '../../../machines/protocol/uris.ts'
import { currentAddress } from '../../client/options.ts'
import { accessOf, type Caller, headersOf, type Note, type Terms, unheard } from './caller.ts'
import { FrameSocket } from './frame-socket.ts'
import { asItIs, resultOf, type RpcResponse, type Translation } from './rpc-response.ts'

/** A WebSocket client according to docs/websocket-binding.md, in a version of A2A. The next call restores a lost connection. */
export function webSocketCaller(
  url: string,
  usual: Terms,
  note: Note = unheard,
  translation: Translation = asItIs
): Caller {
  let lastId = 0
  let socket: FrameSocket | undefined
  const connection = () => {
    if (!socket || socket.isClosed)
      socket = new FrameSocket(currentAddress(url, accessOf(usual)), headersOf(usual, translation.extensionsHeader))
    return socket
  }
  const begin = (method: string, params: unknown, terms: Terms) => {
    lastId += 1
    const id = lastId % 2 === 0 ? `c-${lastId}` : lastId
    const given = {
      ...(terms.version === '' && { 'a2a-version': '' }),
      ...headersOf(terms, translation.extensionsHeader)
    }
    const own = Object.keys(given).length > 0 && { [SERVICE_PARAMETERS]: given }
    const used = connection()
    const frames = used.ask(id, JSON.stringify({ jsonrpc: '2.0', id, method, params, ...own }))
    terms.cut?.addEventListener('abort', () => used.terminate(), { once: true })
    return { id, frames }
  }
  return {
    call: async (operation, params, terms = {}) => {
      const { id, frames } = begin(translation.method(operation), translation.params(operation, params), terms)
      const response = (await frames.next()) as RpcResponse
      frames.done()
      const result = resultOf(response, id, note)
      return {
        result: translation.result(operation, result),
        extensions: response[SERVICE_PARAMETERS]?.['a2a-extensions'] ?? ''
      }
    },
    stream: (operation, params, terms = {}) => {
      const { id, frames } = begin(translation.method(operation), translation.params(operation, params), terms)
      const next = async () => {
        const response = (await frames.next()) as RpcResponse
        if (response.streamEnd !== true)
          return translation.result(operation, resultOf(response, id, note)) as StreamResponse
        note(147, true, '', undefined)
        frames.done()
        return undefined
      }
      return { next, leave: () => frames.leave() }
    },
    raw: async text => {
      const id = idIn(text)
      const frames = connection().ask(id, text)
      const response = await frames.next()
      frames.done()
      return response as Record<string, unknown>
    },
    close: () => socket?.terminate()
  }
}

/** The request id of this text. */
function idIn(text: string): string | number | null {
  try {
    const { id } = { ...(JSON.parse(text) as { id?: unknown }) }
    return typeof id === 'string' || Number.isInteger(id) ? (id as string) : null
  } catch {
    return null
  }
}
