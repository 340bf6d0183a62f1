import { newer, only } from '../row.ts'

/** Why a row makes no sense on some bindings, where several rows share the reason. */
export const NO_LIST = newer('0.3 has no ListTasks')
export const NO_TENANT = newer('0.3 has no tenants')
export const NOT_03 = newer('0.3 does it its own way: see the rows of A2A 0.3')
export const JSON_RPC_ONLY = only(['WebSocket', 'JSON-RPC', '0.3 WebSocket', '0.3 JSON-RPC'], 'not JSON-RPC')
export const RPC_HTTP_ONLY = only(['JSON-RPC', '0.3 JSON-RPC'], 'not JSON-RPC over HTTP')
export const REST_ONLY = only(['REST'], 'not the REST of 1.0')
export const GRPC_ONLY = only(['gRPC'], 'not gRPC')
export const WEBSOCKET_ONLY = only(['WebSocket'], 'not the WebSocket binding')
export const CARD_BY_HTTP = only(
  ['WebSocket', 'JSON-RPC', 'REST', '0.3 WebSocket', '0.3 JSON-RPC', '0.3 REST'],
  'the official gRPC server has no card; taskchart serves it over HTTP'
)
