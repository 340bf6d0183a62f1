import { httpLoad } from './load/http-load.ts'
import type { Load } from './load/load.ts'
import { inspectedLoad } from './load/inspected-load.ts'
import { a2aPollLoad, mcpPollLoad } from './load/poll-load.ts'
import { webSocketLoad } from './load/websocket-load.ts'

/** A server that takes part: its name in the tables, its file in `servers/`, and how it is loaded. */
export interface Contender {
  readonly name: string
  readonly file: string
  /** The checkout with its server, built by `npm run build:bench`. Default this one. */
  readonly folder?: string
  readonly load: (port: number, inFlight: number) => Promise<Load>
  /** What its server is started with beside the work of the race. */
  readonly options?: Readonly<Record<string, unknown>>
}

/** taskchart over WebSocket; all requests over one connection. */
export const ours: Contender = { name: 'taskchart, WebSocket', file: 'ours', load: port => webSocketLoad(port, 1) }

/** The same, every event synced to a SQLite file before anybody hears of it. */
export const oursDurable: Contender = { ...ours, name: 'taskchart, WebSocket, SQLite', options: { durable: true } }

/** The same with a connection for each request in flight: as many clients that know nothing of each other. */
export const oursCrowd: Contender = {
  name: 'taskchart, WebSocket, a connection for each',
  file: 'ours',
  load: webSocketLoad
}

/** The same with its inspector beside it, at which nobody looks. */
export const oursInspectable: Contender = {
  ...ours,
  name: 'taskchart with its inspector, nobody looks',
  options: { inspected: true }
}

/** The same while it records, as in `taskchart dev`, and nobody looks. */
export const oursRecorded: Contender = {
  ...ours,
  name: 'taskchart with its inspector, which records',
  options: { inspected: true, recorded: true }
}

/** The inspector while a page is connected, which reads what it is told. */
export const oursInspected: Contender = {
  ...oursInspectable,
  name: 'taskchart with its inspector, a page looks',
  load: inspectedLoad
}

/** The same with properties observed. */
export const oursObserving: Contender = {
  ...ours,
  name: 'taskchart with observeProperties',
  options: { observed: true }
}

/** taskchart over HTTP: JSON-RPC, streams as server-sent events; a connection for each request in flight. */
export const oursHttp: Contender = { name: 'taskchart, HTTP', file: 'ours', load: httpLoad }

/** Polls over MCP: `tasks/get`. */
export const oursMcp: Contender = {
  name: 'taskchart, tasks/get over MCP',
  file: 'ours',
  load: (port, inFlight) => mcpPollLoad(port, inFlight),
  options: { mcp: true }
}

/** Polls of the same server over HTTP: `GetTask`. */
export const oursMcpHttp: Contender = {
  ...oursMcp,
  name: 'taskchart, GetTask over HTTP',
  load: (port, inFlight) => a2aPollLoad(port, inFlight)
}

/** The handler of the SDK of MCP, with answers from a map. */
export const sdkMcp: Contender = {
  name: "MCP's SDK alone, answers from a Map",
  file: 'sdk-mcp',
  load: (port, inFlight) => mcpPollLoad(port, inFlight)
}

/** The official SDK as its README serves it, which the others are compared with. */
export const express: Contender = { name: 'official SDK, Express', file: 'express', load: httpLoad }

/** The official SDK's core without Express. */
export const core: Contender = { name: 'official SDK, bare node:http', file: 'core', load: httpLoad }

/** What is left when nothing is done: JSON over `ws`. */
export const echo: Contender = { name: 'bare ws, JSON echo', file: 'echo', load: port => webSocketLoad(port, 1) }
