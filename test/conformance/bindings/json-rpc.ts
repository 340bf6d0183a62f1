import type { StreamResponse } from '../../../machines/protocol/objects.ts'
import type { Binding, Caller, Terms } from '../binding.ts'
import { headersOf } from './headers.ts'
import { exchange, serveHttp } from './http.ts'
import { resultOf, type RpcResponse } from './json-rpc-answer.ts'
import { asItIs, type Translation } from './translation.ts'

/** JSON-RPC over HTTP (§9). */
export const jsonRpc: Binding = {
  name: 'JSON-RPC',
  version: '1.0',
  serve: serveHttp,
  open: async (_, address, terms) => jsonRpcCaller(address, asItIs, { version: '1.0', ...terms })
}

/** A client that posts JSON-RPC, in the words of a version. */
export function jsonRpcCaller(address: string, { extensionsHeader, ...translation }: Translation, usual: Terms): Caller {
  let lastId = 0
  const post = (body: string, terms: Terms, signal?: AbortSignal) => {
    const headers = { 'content-type': 'application/json', ...headersOf({ ...usual, ...terms }, extensionsHeader) }
    return exchange(`${address}/`, { method: 'POST', body, headers, ...(signal && { signal }) })
  }
  const request = (method: string, params: unknown) => JSON.stringify({ jsonrpc: '2.0', id: (lastId += 1), method, params })
  return {
    call: async (operation, params, terms = {}) => {
      const { response, json } = await post(request(translation.method(operation), translation.params(operation, params)), terms, terms.cut)
      return { result: translation.result(operation, resultOf(json as RpcResponse)), extensions: response.headers.get(extensionsHeader) ?? '' }
    },
    stream: (operation, params, terms = {}) => {
      const abort = new AbortController()
      const answer = post(request(translation.method(operation), translation.params(operation, params)), terms, abort.signal)
      answer.catch(() => {})
      const next = async () => {
        const { json, next } = await answer
        const event = next ? await next() : json
        return event === undefined ? undefined : (translation.result(operation, resultOf(event as RpcResponse)) as StreamResponse)
      }
      return { next, leave: () => abort.abort() }
    },
    raw: async text => (await post(text, {})).json as Record<string, unknown>
  }
}
