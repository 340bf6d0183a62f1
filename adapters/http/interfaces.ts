import type { AgentInterface } from '../../machines/protocol/card.ts'
import { WEBSOCKET_BINDING } from '../../machines/protocol/uris.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { Dialect } from '../legacy/dialect.ts'

/** What a server offers at one address, beside A2A 1.0. */
export interface Offer {
  /** Whether the same address takes WebSockets. */
  readonly webSocket: boolean
  /** Whether it takes HTTP. */
  readonly http: boolean
  readonly dialects: readonly Dialect[]
}

/** The interfaces (§4.4.6) of an agent at an address, `http:` or `ws:`: in order of preference, and 1.0 before what is older. */
export function interfacesAt(address: string, { webSocket, http, dialects }: Offer): AgentInterface[] {
  const versions = [{ version: PROTOCOL_VERSION, hasRest: true }, ...dialects.map(({ version, rest }) => ({ version, hasRest: rest !== undefined }))]
  return versions.flatMap(({ version: protocolVersion, hasRest }) => [
    ...(webSocket ? [{ url: withScheme(address, 'ws'), protocolBinding: WEBSOCKET_BINDING, protocolVersion }] : []),
    ...(http ? [{ url: withScheme(address, 'http'), protocolBinding: 'JSONRPC', protocolVersion }] : []),
    // Routes are put behind it, slash and all.
    ...(http && hasRest ? [{ url: withScheme(address, 'http').replace(/\/$/, ''), protocolBinding: 'HTTP+JSON', protocolVersion }] : [])
  ])
}

/** An address with another scheme, as secure as before: `wss:` is `https:`. */
export function withScheme(address: string, scheme: 'http' | 'ws'): string {
  return address.replace(/^(?:http|ws)(?=s?:)/, scheme)
}
