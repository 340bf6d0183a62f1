import { invalidParams } from '../../machines/protocol/errors.ts'

/** Which tenant requests have to name (§8.3.2): as the card says, or as the caller does where there was no card. */
export type TenantRule = { readonly asCard: string | undefined } | 'as given'

/** Params with the tenant that the rule gives them. Throws InvalidParams if they name another. */
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
