import { jsonRpcCaller } from '../../../adapters/conformance/callers/http-callers.ts'
import type { Binding } from '../binding.ts'
import { serveHttp } from './http.ts'

/** JSON-RPC over HTTP (§9). */
export const jsonRpc: Binding = {
  name: 'JSON-RPC',
  version: '1.0',
  serve: serveHttp,
  open: async (_, address, terms) => jsonRpcCaller(`${address}/`, { version: '1.0', ...terms })
}
