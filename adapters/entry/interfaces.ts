import { AgentInterfaceSchema, type AgentInterface } from '../../machines/protocol/card.ts'
import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import { violationsText } from '../../machines/protocol/errors.ts'
import { WEBSOCKET_BINDING } from '../../machines/protocol/uris.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import type { Kind } from '../../runtime/primitives/options.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Dialect } from '../json-rpc/dialect.ts'
import { isLoopback } from './admission.ts'

type Hosts = Runtime['settings']['hosts']

/** What a server offers at one address, beside A2A 1.0. */
export interface Offer {
  /** Whether the same address takes WebSockets. */
  readonly webSocket: boolean
  /** Whether it takes HTTP. */
  readonly http: boolean
  readonly dialects: readonly Dialect[]
  /** Where else the agent is served. Default nowhere. */
  readonly interfaces?: readonly AgentInterface[] | undefined
}

/** The interfaces (§4.4.6) of an agent at an address, `http:` or `ws:`: in order of preference, and 1.0 before what is older. Those that are elsewhere come last. */
export function interfacesAt(address: string, { webSocket, http, dialects, interfaces = [] }: Offer): AgentInterface[] {
  const versions = [{ version: PROTOCOL_VERSION, hasRest: true }, ...dialects.map(({ version, rest }) => ({ version, hasRest: rest !== undefined }))]
  const here = versions.flatMap(({ version: protocolVersion, hasRest }) => [
    ...(webSocket ? [{ url: withScheme(address, 'ws'), protocolBinding: WEBSOCKET_BINDING, protocolVersion }] : []),
    ...(http ? [{ url: withScheme(address, 'http'), protocolBinding: 'JSONRPC', protocolVersion }] : []),
    // Routes are put behind it, slash and all.
    ...(http && hasRest ? [{ url: withScheme(address, 'http').replace(/\/$/, ''), protocolBinding: 'HTTP+JSON', protocolVersion }] : [])
  ])
  return [...here, ...interfaces]
}

/** The option `interfaces` of what is served. `checkInterfaces` checks its entries. */
export const INTERFACES: Kind = [Array.isArray, "a list such as [{ url: 'agent.example:50051', protocolBinding: 'GRPC', protocolVersion: '1.0' }]"]

/** Throws TypeError for an entry that is no interface, naming the member that is wrong. */
export function checkInterfaces(interfaces: readonly AgentInterface[] | undefined): void {
  for (const [i, each] of (interfaces ?? []).entries()) {
    const { violations } = tryDecode(AgentInterfaceSchema, each, `interfaces[${i}]`)
    if (violations) throw new TypeError(violationsText(violations))
  }
}

/** A connection, by the address and port on which its server took it. */
interface Taken {
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
}

/**
 * The origin that a card gives without `publicUrl`, to a request that a server of Node's has accepted. Its name is the one asked
 * for, if the Host rule vouches for that, else the address listened on. Its port is that of the entry in `hosts`, else the one
 * listened on, and never the request's.
 */
export function originTaken(name: string, { localAddress = '127.0.0.1', localPort }: Taken, hosts: Hosts): string {
  const isVouchedFor = hosts !== undefined || (isLoopback(localAddress) && isLoopback(name))
  const address = localAddress.includes(':') ? `[${localAddress}]` : localAddress
  return originOf('http:', isVouchedFor ? name : address, hosts?.get(name) ?? localPort)
}

/**
 * The same for a mounted handler, which knows no connection: the entry in `hosts`, with the scheme's usual port unless it has
 * one. Without `hosts` it is the request's own origin if that is loopback; else `undefined`, since nothing vouches for it.
 */
export function originMounted({ protocol, hostname, origin }: URL, hosts: Hosts): string | undefined {
  if (hosts) return originOf(protocol, hostname, hosts.get(hostname))
  return isLoopback(hostname) ? origin : undefined
}

function originOf(protocol: string, name: string, port = 0): string {
  const isUsual = port === 0 || port === (protocol === 'https:' ? 443 : 80)
  return `${protocol}//${name}${isUsual ? '' : `:${port}`}`
}

/** An address of a server with one of the `hosts` of its runtime, where only those are answered. */
export function answered(url: string, hosts: ReadonlyMap<string, number | undefined> = new Map()): string {
  const address = new URL(url)
  const [[name, port] = []] = hosts
  if (name === undefined || hosts.has(address.hostname)) return url
  address.hostname = name
  if (port !== undefined) address.port = String(port)
  return address.href
}

/** An address with another scheme, as secure as before: `wss:` is `https:`. */
export function withScheme(address: string, scheme: 'http' | 'ws'): string {
  return address.replace(/^(?:http|ws)(?=s?:)/, scheme)
}

const ONE_NAME = /^\/(?<name>[^/]+)\/?$/

/** The tenant that a path names, which is below that of its agent: `/blue`. `undefined` if it is not one name, percent-encoded. */
export function tenantIn(path: string): string | undefined {
  const name = ONE_NAME.exec(path)?.groups?.['name']
  try {
    return name && decodeURIComponent(name)
  } catch {
    return undefined
  }
}
