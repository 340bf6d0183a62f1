import type { Test } from 'tap'
import type { WireCaller, WireParameters } from '../../adapters/conformance/callers/caller.ts'
import type { Runtime } from '../../runtime/runtime-options.ts'

/** One way to reach an agent: a column of the table. */
export interface Binding {
  readonly name: BindingName
  /** The version of A2A that is spoken. */
  readonly version: '1.0' | '0.3'
  /** Serves a runtime until the test ends. Gives the address: of the host for all that comes over HTTP. */
  serve(t: Test, runtime: Runtime): Promise<string>
  /** A client of its own, on these terms unless a call says otherwise. */
  open(t: Test, address: string, terms?: WireParameters): Promise<WireCaller>
}

export type BindingName = 'WebSocket' | 'JSON-RPC' | 'REST' | 'gRPC' | '0.3 WebSocket' | '0.3 JSON-RPC' | '0.3 REST'
