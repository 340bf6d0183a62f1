import type { ELK } from 'elkjs'

/** What is used of elkjs. It is CommonJS: its default export is a member of ours. */
interface Elkjs {
  readonly default: { readonly default: new () => ELK }
}

/** What lays out charts: made once, since it takes a third of a second to get ready. */
let elk: Promise<ELK> | undefined

/** The layout engine. Rejects with TypeError without elkjs, an optional peer. */
export function layoutEngine(): Promise<ELK> {
  elk ??= loadElk()
  return elk
}

/** Loads it. */
export async function loadElk(load: () => Promise<Elkjs> = () => import('elkjs')): Promise<ELK> {
  try {
    const { default: { default: Engine } } = await load()
    return new Engine()
  } catch (cause) {
    throw new TypeError('Charts are laid out by elkjs. Install it: npm install --save-dev elkjs', { cause })
  }
}
