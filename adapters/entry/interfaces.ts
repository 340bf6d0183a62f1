import { AgentInterfaceSchema, type AgentInterface } from '../../machines/protocol/card.ts'
import { tryDecode } from '../../machines/protocol/codec/decode.ts'
import { violationsText } from '../../machines/protocol/errors.ts'
import { WEBSOCKET_BINDING } from '../../machines/protocol/uris.ts'
import type { NativeVersion } from '../../machines/protocol/versions.ts'
import type { Kind } from '../../runtime/primitives/options.ts'
import type { ServedRuntime } from '../../runtime/runtime-options.ts'
import type { Dialect } from '../json-rpc/dispatch.ts'
import { isLoopback } from './admission.ts'
import { basePath } from './listen.ts'

type Hosts = ServedRuntime['settings']['hosts']

/** The bindings at one URL, in addition to the versions that the runtime itself speaks. */
export interface OfferedBindings {
  /** Whether the URL accepts WebSockets. */
  readonly webSocket: boolean
  /** Whether the URL accepts HTTP. */
  readonly http: boolean
  readonly dialects: readonly Dialect[]
  /** Other interfaces of the agent. Default none. */
  readonly interfaces?: readonly AgentInterface[] | undefined
}

/**
 * The interfaces (§4.4.6) of an agent at an `http:` or `ws:` URL, in order of preference: the newest version first,
 * other places last. `native` are the versions of its runtime.
 */
export function interfacesAt(
  address: string,
  { webSocket, http, dialects, interfaces = [] }: OfferedBindings,
  native: readonly NativeVersion[]
): AgentInterface[] {
  const versions = [
    ...native.map(version => ({ version, hasRest: true })),
    ...dialects.map(({ version, rest }) => ({ version, hasRest: rest !== undefined }))
  ]
  const here = versions.flatMap(({ version: protocolVersion, hasRest }) => [
    ...(webSocket ? [{ url: withScheme(address, 'ws'), protocolBinding: WEBSOCKET_BINDING, protocolVersion }] : []),
    ...(http ? [{ url: withScheme(address, 'http'), protocolBinding: 'JSONRPC', protocolVersion }] : []),
    // Clients append routes that begin with a slash.
    ...(http && hasRest
      ? [{ url: withScheme(address, 'http').replace(/\/$/, ''), protocolBinding: 'HTTP+JSON', protocolVersion }]
      : [])
  ])
  return [...here, ...interfaces]
}

/** The kind of the option `interfaces`. `checkInterfaces` validates its entries. */
export const INTERFACES: Kind = [
  Array.isArray,
  "a list such as [{ url: 'agent.example:50051', protocolBinding: 'GRPC', protocolVersion: '1.0' }]"
]

/** Throws TypeError for an invalid interface, with the name of the invalid member. */
export function checkInterfaces(interfaces: readonly AgentInterface[] | undefined): void {
  for (const [i, each] of (interfaces ?? []).entries()) {
    const { violations } = tryDecode(AgentInterfaceSchema, each, `interfaces[${i}]`)
    if (violations) throw new TypeError(violationsText(violations))
  }
}

/** A connection, by the local address and port that accepted it. */
interface LocalAddress {
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
}

/**
 * The origin in a card without `publicUrl`, for a connection to a Node server. Its name is the requested one, if the
 * Host rule accepts it, else the local address. Its port is the one in `hosts`, else the local port, and never the
 * request's.
 */
export function connectionOrigin(
  name: string,
  { localAddress = '127.0.0.1', localPort }: LocalAddress,
  hosts: Hosts
): string {
  const isVouchedFor = hosts !== undefined || (isLoopback(localAddress) && isLoopback(name))
  const address = localAddress.includes(':') ? `[${localAddress}]` : localAddress
  return originOf('http:', isVouchedFor ? name : address, hosts?.get(name) ?? localPort)
}

/**
 * The same for a mounted handler, which knows no connection: the entry in `hosts`, with the default port of the scheme
 * unless it has one. Without `hosts` it is the request's own origin if that is loopback; else `undefined`, since it
 * could be forged.
 */
export function originMounted({ protocol, hostname, origin }: URL, hosts: Hosts): string | undefined {
  if (hosts) return originOf(protocol, hostname, hosts.get(hostname))
  return isLoopback(hostname) ? origin : undefined
}

function originOf(protocol: string, name: string, port = 0): string {
  const isUsual = port === 0 || port === (protocol === 'https:' ? 443 : 80)
  return `${protocol}//${name}${isUsual ? '' : `:${port}`}`
}

/** A server's URL, with one of the runtime's `hosts` if only those are accepted. */
export function acceptedUrl(url: string, hosts: ReadonlyMap<string, number | undefined> = new Map()): string {
  const address = new URL(url)
  const [[name, port] = []] = hosts
  if (name === undefined || hosts.has(address.hostname)) return url
  address.hostname = name
  if (port !== undefined) address.port = String(port)
  return address.href
}

/** A URL with another scheme, with or without TLS as before: `wss:` becomes `https:`. */
export function withScheme(address: string, scheme: 'http' | 'ws'): string {
  return address.replace(/^(?:http|ws)(?=s?:)/, scheme)
}

const ONE_NAME = /^\/(?<name>[^/]+)\/?$/

/** The tenant in a path relative to its agent: `/blue`. `undefined` unless it is one percent-encoded name. */
export function tenantIn(path: string): string | undefined {
  const name = ONE_NAME.exec(path)?.groups?.['name']
  try {
    return name && decodeURIComponent(name)
  } catch {
    return undefined
  }
}

/**
 * The tenant of a path of an endpoint beside an agent: `/mcp` has none, `/blue/mcp` has blue. `undefined` for a path
 * that is not the endpoint's.
 */
export function endpointTenant(
  pathname: string,
  endpoint: string,
  hasTenants: boolean
): { readonly tenant: string | undefined } | undefined {
  const path = basePath(pathname)
  if (path === endpoint) return { tenant: undefined }
  const folder = endpoint.replace(/\/[^/]*$/, '')
  const leaf = endpoint.slice(folder.length)
  if (!hasTenants || !path.startsWith(`${folder}/`) || !path.endsWith(leaf)) return undefined
  const tenant = tenantIn(path.slice(folder.length, path.length - leaf.length))
  return tenant === undefined ? undefined : { tenant }
}
