import type { Test } from 'tap'
import type { WireCaller, WireParameters } from '../../../adapters/conformance/callers/caller.ts'
import type { Translation } from '../../../adapters/conformance/callers/exchange.ts'
import { webSocketCaller } from '../../../adapters/conformance/callers/websocket-caller.ts'
import type { Binding } from '../binding.ts'
import { serveHttp } from './http.ts'

/** JSON-RPC over WebSocket, as docs/websocket-binding.md has it. */
export const webSocket: Binding = {
  name: 'WebSocket',
  version: '1.0',
  serve: serveHttp,
  open: (t, address, terms) => openWebSocket(t, address, { version: '1.0', ...terms })
}

/** A client with one connection, in the words of a version, until the test ends. */
export async function openWebSocket(
  t: Test,
  address: string,
  usual: WireParameters,
  translation?: Translation
): Promise<WireCaller> {
  const caller = webSocketCaller(address.replace('http', 'ws'), usual, undefined, translation)
  t.teardown(() => caller.close())
  return caller
}
