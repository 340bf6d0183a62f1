import type { Test } from 'tap'
import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import { JsonSocket } from '../../fixtures/served-agent.ts'
import type { Binding, Caller, Terms } from '../binding.ts'
import { headersOf } from './headers.ts'
import { serveHttp } from './http.ts'
import { resultOf, type RpcResponse } from './json-rpc-answer.ts'
import { asItIs, type Translation } from './translation.ts'

/** JSON-RPC over WebSocket, as docs/websocket-binding.md has it. */
export const webSocket: Binding = {
  name: 'WebSocket',
  version: '1.0',
  serve: serveHttp,
  open: (t, address, terms) => webSocketCaller(t, address, asItIs, { version: '1.0', ...terms })
}

/** A client with one connection, in the words of a version. */
export async function webSocketCaller(t: Test, address: string, translation: Translation, usual: Terms): Promise<Caller> {
  const socket = await JsonSocket.open(t, address.replace('http', 'ws'), { headers: headersOf(usual, translation.extensionsHeader) })
  let lastId = 0
  const begin = (method: string, params: unknown, terms: Terms) => {
    const id = `c-${(lastId += 1)}`
    const given = { ...(terms.version === '' && { 'a2a-version': '' }), ...headersOf(terms, translation.extensionsHeader) }
    const own = Object.keys(given).length > 0 && { 'a2a-service-parameters': given }
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params, ...own }))
    return id
  }
  const answer = async (id: string | undefined | null) => (await socket.next(id)) as RpcResponse
  return {
    call: async (operation, params, terms = {}) => {
      terms.cut?.addEventListener('abort', () => socket.socket.terminate(), { once: true })
      const response = await answer(begin(translation.method(operation), translation.params(operation, params), terms))
      return { result: translation.result(operation, resultOf(response)), extensions: response['a2a-service-parameters']?.['a2a-extensions'] ?? '' }
    },
    stream: (operation, params, terms = {}) => {
      const id = begin(translation.method(operation), translation.params(operation, params), terms)
      const next = async () => {
        const response = await answer(id)
        return response.streamEnd ? undefined : (translation.result(operation, resultOf(response)) as StreamResponse)
      }
      return { next, leave: () => socket.cancelStream(id) }
    },
    raw: async text => {
      const { id } = parsed(text)
      socket.send(text)
      return (await answer(typeof id === 'string' || Number.isInteger(id) ? (id as string) : null)) as Record<string, unknown>
    }
  }
}

function parsed(text: string): { id?: unknown } {
  try {
    return { ...(JSON.parse(text) as object) }
  } catch {
    return {}
  }
}
