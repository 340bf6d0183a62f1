import { invalidParams } from '../../machines/protocol/errors.ts'
import type { Calls } from './calls.ts'
import { readBindings, type Binding } from './card/bindings.ts'
import { checkOrigins, isSocketAddress } from './hosts.ts'
import type { ConnectOptions } from './options.ts'
import type { CalledAgent } from './traced-calls.ts'

/** A connected agent. */
export interface OpenAgent {
  readonly calls: Calls
  readonly binding: Binding
  readonly tenant: TenantRule
}

/**
 * Chooses an interface of the agent, and opens a connection to it, as documented at `connect`. Without a card, nothing is loaded that
 * reads one.
 */
export async function openAgent(url: string, options: ConnectOptions): Promise<OpenAgent> {
  const given = readBindings(options.bindings)
  checkOrigins(options.credentialOrigins)
  const isSocket = isSocketAddress(url) && (given?.includes('WEBSOCKET') ?? true)
  if (!isSocket || options.verifyCard) {
    const { openByCard } = await import('./open-by-card.ts')
    const { calls, binding, tenant, name } = await openByCard(url, options, isSocket ? ['WEBSOCKET'] : given)
    return { calls: await traced(calls, options, { binding, name }), binding, tenant: { asCard: tenant } }
  }
  const { openSocketCalls } = await import('./transports/websocket/open-calls.ts')
  const binding = 'WEBSOCKET'
  return { calls: await traced(await openSocketCalls(url, options), options, { binding }), binding, tenant: 'as given' }
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
    const description = asCard === undefined ? "must be left out: the agent's card names none" : `must be ${JSON.stringify(asCard)}, as the agent's card says`
    throw invalidParams({ field: 'tenant', description })
  }
  return asCard === undefined ? params : { ...params, tenant: asCard }
}
