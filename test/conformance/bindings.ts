import type { Binding } from './binding.ts'
import { grpcBinding } from './bindings/grpc.ts'
import { jsonRpc } from './bindings/json-rpc.ts'
import { rest } from './bindings/rest.ts'
import { jsonRpc03, rest03, webSocket03 } from './bindings/v03.ts'
import { webSocket } from './bindings/websocket.ts'

/** The columns of the table. */
export const BINDINGS: readonly Binding[] = [webSocket, jsonRpc, rest, grpcBinding, webSocket03, jsonRpc03, rest03]
