import type { Scope } from '../store.ts'

/** Values by scope, without a text that would stand for each scope. */
export class ScopeMap<Value> {
  readonly #tenants = new Map<string, Map<string, Value>>()

  get({ tenant, principal }: Scope): Value | undefined {
    return this.#tenants.get(tenant)?.get(principal)
  }

  set({ tenant, principal }: Scope, value: Value): void {
    const principals = this.#tenants.get(tenant) ?? new Map<string, Value>()
    this.#tenants.set(tenant, principals.set(principal, value))
  }

  delete({ tenant, principal }: Scope): void {
    const principals = this.#tenants.get(tenant)
    if (principals?.delete(principal) && principals.size === 0) this.#tenants.delete(tenant)
  }

  *values(): Iterable<Value> {
    for (const principals of this.#tenants.values()) yield* principals.values()
  }
}
