import type { Binding } from './binding.ts'
import { jsonRpc } from './bindings/json-rpc.ts'
import { rest } from './bindings/rest.ts'
import { webSocket } from './bindings/websocket.ts'

/** The columns of the table. */
export const BINDINGS: readonly Binding[] = [webSocket, jsonRpc, rest]
