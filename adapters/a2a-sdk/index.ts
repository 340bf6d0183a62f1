/**
 * taskchart and the official SDK, both ways: its clients over the WebSocket binding, its servers on a runtime, its
 * executors as work. Loads neither Express nor gRPC.
 */
export { expressErrors } from './sdk-objects.ts'
export { fromExecutor } from './executor-work.ts'
export { toRequestHandler } from './request-handler.ts'
export { WebSocketTransportFactory } from './websocket-transport.ts'
export { whileConnected } from './while-connected.ts'
