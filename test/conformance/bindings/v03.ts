import type { Test } from 'tap'
import { jsonRpcCaller, restCaller } from '../../../adapters/conformance/callers/http-callers.ts'
import { dialect03 } from '../../../adapters/legacy/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import type { Runtime } from '../../../runtime/runtime-options.ts'
import type { Binding } from '../binding.ts'
import { inJson03 } from './v03-json.ts'
import { inRest03 } from './v03-rest.ts'
import { openWebSocket } from './websocket.ts'

/** 0.3 over JSON-RPC. Its clients send no version. */
export const jsonRpc03: Binding = {
  name: '0.3 JSON-RPC',
  version: '0.3',
  serve: serve03,
  open: async (_, address, terms = {}) => jsonRpcCaller(`${address}/`, terms, undefined, inJson03)
}

/** 0.3 over REST. */
export const rest03: Binding = {
  name: '0.3 REST',
  version: '0.3',
  serve: serve03,
  open: async (_, address, terms = {}) => restCaller(address, terms, undefined, inRest03)
}

/** 0.3 over WebSocket, where service parameters have the names of the binding. */
export const webSocket03: Binding = {
  name: '0.3 WebSocket',
  version: '0.3',
  serve: serve03,
  open: (t, address, terms = {}) =>
    openWebSocket(t, address, terms, { ...inJson03, extensionsHeader: 'a2a-extensions' })
}

async function serve03(t: Test, runtime: Runtime): Promise<string> {
  const served = await serve(runtime, { port: 0, dialects: [dialect03(runtime)] })
  t.teardown(() => served.close())
  return new URL(served.url).origin
}
