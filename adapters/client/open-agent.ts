import { invalidParams } from '../../machines/protocol/errors.ts'
import type { Calls } from './calls.ts'
import { readBindings, type Binding } from './card/bindings.ts'
import { checkAccess, explainRefusal } from './credentials.ts'
import { isSocketAddress } from './hosts.ts'
import { OPENERS } from './openers.ts'
import { backOffOptions, type ConnectOptions, type PlacedOptions } from './options.ts'
import { wholeStreams } from './retries/whole-streams.ts'
import type { CalledAgent } from './traced-calls.ts'

/** A connected agent. */
export interface OpenAgent {
  readonly calls: Calls
  readonly binding: Binding
  readonly tenant: TenantRule
  /** The options, with the places of the credentials. */
  readonly options: PlacedOptions
}

/**
 * Chooses an interface of the agent, and opens a connection to it, as documented at `connect`. Without a card, nothing
 * is loaded that reads one. If a WebSocket cannot send the headers, a `ws:` URL is only that of the card.
 */
export async function openAgentConnection(url: string, options: ConnectOptions, openers = OPENERS): Promise<OpenAgent> {
  const given = readBindings(options.bindings)
  checkAccess(options)
  const { headers, credentials, verifyCard, versions, card } = options
  const { clock } = backOffOptions(options)
  const isMute = openers['1.0'].WEBSOCKET?.lacks?.header !== undefined && (headers ?? credentials) !== undefined
  const isSocket = isSocketAddress(url) && (given?.includes('WEBSOCKET') ?? true) && !isMute
  if (!isSocket || verifyCard || versions || card) {
    const { openByCard } = await import('./open-by-card.ts')
    const {
      calls,
      binding,
      tenant,
      name,
      streams,
      options: placedOptions
    } = await openByCard(url, options, isSocket ? ['WEBSOCKET'] : given, openers)
    return {
      calls: await traced(wholeStreams(calls, { streams, clock }), options, { binding, name }),
      binding,
      tenant: { asCard: tenant },
      options: placedOptions
    }
  }
  const placedOptions = credentials ? await (await import('./open-by-card.ts')).placedForSocket(url, options) : options
  const { openSocketCalls } = await import('./transports/websocket/calls.ts')
  const binding = 'WEBSOCKET'
  const calls = await openSocketCalls(url, placedOptions).catch(error => {
    throw explainRefusal(error, placedOptions)
  })
  return {
    calls: await traced(wholeStreams(calls, { streams: true, clock }), options, { binding }),
    binding,
    tenant: 'as given',
    options: placedOptions
  }
}

async function traced(calls: Calls, { telemetry }: ConnectOptions, agent: CalledAgent): Promise<Calls> {
  if (!telemetry) return calls
  const { tracedCalls } = await import('./traced-calls.ts')
  return tracedCalls(calls, agent, telemetry)
}

/** The tenant of requests (§8.3.2): from the card, or from the caller if there was no card. */
type TenantRule = { readonly asCard: string | undefined } | 'as given'

/** Adds the tenant to params. Throws InvalidParams if they name another. */
export function withTenant(params: object & { readonly tenant?: unknown }, rule: TenantRule): object {
  if (rule === 'as given') return params
  const { asCard } = rule
  const { tenant = asCard } = params
  if (tenant !== asCard) {
    const description =
      asCard === undefined
        ? "must be left out: the agent's card names none"
        : `must be ${JSON.stringify(asCard)}, as the agent's card says`
    throw invalidParams({ field: 'tenant', description })
  }
  return asCard === undefined ? params : { ...params, tenant: asCard }
}
