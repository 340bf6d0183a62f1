import type { AgentCard } from '../../machines/protocol/card.ts'
import { A2AError, invalidParams } from '../../machines/protocol/errors.ts'
import { RELIABILITY_EXTENSION } from '../../machines/protocol/uris.ts'
import type { Calls } from './calls.ts'
import { readBindings, type Binding } from './card/bindings.ts'
import { fetchCard, isSocketAddress } from './card/discovery.ts'
import { offersOf } from './card/interfaces.ts'
import { checkOrigins, originRefusal } from './hosts.ts'
import type { ConnectOptions } from './options.ts'
import { tracedCalls, type CalledAgent } from './traced-calls.ts'

/** Opens a connection to an interface of an agent. `isReliable`: its card lists the reliability extension. */
export type OpenCalls = (url: string, options: ConnectOptions, isReliable: boolean) => Promise<Calls>

/** A connected agent. */
export interface OpenAgent {
  readonly calls: Calls
  readonly binding: Binding
  readonly tenant: TenantRule
}

interface Opener {
  /** Loads the module of the binding, so that unused bindings are not loaded. */
  readonly load: () => Promise<OpenCalls>
  /** The optional peers of the binding. */
  readonly peers?: string
}

const GRPC_PEERS = '@a2a-js/sdk @grpc/grpc-js @bufbuild/protobuf'

const OPENERS: Readonly<Record<Binding, Opener>> = {
  WEBSOCKET: { load: async () => (await import('./transports/websocket/open-calls.ts')).openSocketCalls },
  JSONRPC: { load: async () => (await import('./transports/json-rpc.ts')).openJsonRpc },
  'HTTP+JSON': { load: async () => (await import('./transports/official/rest.ts')).openRest, peers: '@a2a-js/sdk' },
  GRPC: { load: async () => (await import('./transports/official/grpc.ts')).openGrpc, peers: GRPC_PEERS }
}

/** The bindings of A2A 0.3. */
const OPENERS_03: Readonly<Record<Exclude<Binding, 'WEBSOCKET'>, Opener>> = {
  JSONRPC: { load: async () => (await import('./transports/json-rpc-03.ts')).openJsonRpc03 },
  'HTTP+JSON': { load: async () => (await import('./transports/rest-03.ts')).openRest03 },
  GRPC: { load: async () => (await import('./transports/official/grpc-03.ts')).openGrpc03, peers: GRPC_PEERS }
}

/** Chooses an interface of the agent, and opens a connection to it, as documented at `connect`. */
export async function openAgent(url: string, options: ConnectOptions): Promise<OpenAgent> {
  const given = readBindings(options.bindings)
  checkOrigins(options.credentialOrigins)
  const isSocket = isSocketAddress(url) && (given?.includes('WEBSOCKET') ?? true)
  if (isSocket && !options.verifyCard) {
    const open = await OPENERS.WEBSOCKET.load()
    const binding = 'WEBSOCKET'
    return { calls: traced(await open(url, options, false), options, { binding }), binding, tenant: 'as given' }
  }
  const wanted = isSocket ? ['WEBSOCKET' as const] : given
  const card = await fetchCard(url, options)
  let failure: A2AError | undefined
  for (const offer of offersOf(card, url, wanted)) {
    const { binding, url: address, tenant } = offer
    const opener = offer.version === '0.3' ? OPENERS_03[offer.binding] : OPENERS[binding]
    const refusal = originRefusal(url, address, options)
    failure ??= refusal
    if (refusal) continue
    const open = await opener.load().catch(cause => missing(url, binding, opener, cause))
    options.signal?.throwIfAborted()
    if (!(open instanceof A2AError)) return { calls: traced(await open(address, options, isReliable(card)), options, { binding, name: card.name }), binding, tenant: { asCard: tenant } }
    failure ??= open
  }
  throw failure
}

function traced(calls: Calls, { telemetry }: ConnectOptions, agent: CalledAgent): Calls {
  return telemetry ? tracedCalls(calls, agent, telemetry) : calls
}

function missing(url: string, binding: Binding, { peers = '' }: Opener, cause: unknown): A2AError {
  return new A2AError('UnsupportedOperation', `The agent at ${url} speaks ${binding}, for which a package is missing. Install it: npm install ${peers}`, { cause })
}

function isReliable({ capabilities: { extensions = [] } }: AgentCard): boolean {
  return extensions.some(({ uri }) => uri === RELIABILITY_EXTENSION)
}

/** The tenant of requests (§8.3.2): from the card, or from the caller if there was no card. */
type TenantRule = { readonly asCard: string | undefined } | 'as given'

/** Adds the tenant to params. Throws InvalidParams if they name another. */
export function withTenant(params: object & { readonly tenant?: unknown }, rule: TenantRule): object {
  if (rule === 'as given') return params
  const { asCard } = rule
  const { tenant = asCard } = params
  if (tenant !== asCard) {
    const description = asCard === undefined ? "must be left out: the agent's card names none" : `must be ${JSON.stringify(asCard)}, as the agent's card says`
    throw invalidParams({ field: 'tenant', description })
  }
  return asCard === undefined ? params : { ...params, tenant: asCard }
}
