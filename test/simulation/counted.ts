import type { Store } from '../../runtime/store/store.ts'

/** A store that says whether it is at work on something, for engines that take real time. */
export function counted(engine: Store): { readonly store: Store; readonly isBusy: () => boolean } {
  let underWay = 0
  const methods = Object.entries(engine) as [string, (...args: unknown[]) => Promise<unknown>][]
  const store = methods.map(([name, method]) => [
    name,
    async (...args: unknown[]) => {
      underWay += 1
      try {
        return await method(...args)
      } finally {
        underWay -= 1
      }
    }
  ])
  return { store: Object.fromEntries(store) as Store, isBusy: () => underWay > 0 }
}
