import type { Runtime } from '../../runtime/index.ts'
import { checkOptions, TRUE_OR_FALSE, type OptionKinds } from '../../runtime/primitives/options.ts'
import { checkRuntime } from '../../runtime/runtime-options.ts'
import type { Dialect } from '../json-rpc/dialect.ts'
import type { Card03Options } from '../v03/card.ts'
import type * as v03 from './v03.ts'

/** The module for 0.3, or the error of loading it. Awaited here, since `dialect03` is synchronous. */
const loaded: typeof v03 | { readonly cause: unknown } = await import('./v03.ts').catch((cause: unknown) => ({ cause }))

const OPTIONS: OptionKinds<Card03Options> = { webSocketInCards: TRUE_OR_FALSE }

/**
 * A2A 0.3 over a runtime, through the official SDK's compatibility layer: JSON-RPC according to its JSON schema, and
 * REST under `/v1` in the JSON form of its proto. Throws TypeError if `@a2a-js/sdk` is not installed, and for an
 * unknown option.
 */
export function dialect03(runtime: Runtime, options: Card03Options = {}): Dialect {
  checkRuntime(runtime, 'dialect03')
  checkOptions(options, OPTIONS, 'dialect03', 'dialect03(runtime, { webSocketInCards: true })')
  if ('cause' in loaded)
    throw new TypeError('dialect03 needs the official SDK. Install it: npm install @a2a-js/sdk', {
      cause: loaded.cause
    })
  return loaded.createDialect03(runtime, options)
}

export { dialect01, type Dialect01Options } from './v01.ts'
export type { Dialect, RestCall, RestRequest } from '../json-rpc/dialect.ts'
export type { Card03Options } from '../v03/card.ts'
