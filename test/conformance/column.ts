import type { Test } from 'tap'
import type { WireCaller, WireParameters } from '../../adapters/conformance/callers/caller.ts'
import type { EmittedContent } from '../../adapters/conformance/emitted.ts'
import type { Authenticate } from '../../runtime/access/authentication.ts'
import type { AgentDefinition } from '../../runtime/agent/define-agent.ts'
import type { Runtime, RuntimeOptions } from '../../runtime/runtime-options.ts'
import { start, type Started } from '../fixtures/runtime/runtime-helpers.ts'
import { countingStore } from '../fixtures/servers/served-agent.ts'
import { obedientAgent } from './agent.ts'
import type { Binding } from './binding.ts'
import { clientOf, type Client } from './client.ts'

/** An agent that is served over a binding. */
export interface Site extends Started {
  readonly address: string
  /** Commits until now. */
  readonly commits: () => number
  /** A client of its own. */
  open(terms?: WireParameters): Promise<Client>
  caller(terms?: WireParameters): Promise<WireCaller>
}

/** What rows are tried on: a binding, an obedient agent that is served over it, and a client. */
export interface Column extends Site {
  readonly binding: Binding
  readonly client: Client
  /** Lets the works that `hold` go on. */
  readonly release: () => void
  /** Everything that clients of this column have heard. */
  readonly heard: readonly EmittedContent[]
  /** Serves another runtime until the row ends: other options, or another agent. */
  serve(t: Test, options?: Partial<RuntimeOptions>, definition?: Partial<AgentDefinition>): Promise<Site>
}

/** Serves what a column's rows are tried on, until the test ends. */
export async function openColumn(t: Test, binding: Binding): Promise<Column> {
  const heard: EmittedContent[] = []
  const { definition, release } = obedientAgent()
  const serve = (t: Test, options: Partial<RuntimeOptions> = {}, changes: Partial<AgentDefinition> = {}) =>
    openSite(t, binding, { ...definition, ...changes }, options, heard)
  const site = await serve(t)
  return { ...site, binding, client: await site.open(), release, heard, serve }
}

async function openSite(
  t: Test,
  binding: Binding,
  definition: AgentDefinition,
  options: Partial<RuntimeOptions>,
  heard: EmittedContent[]
): Promise<Site> {
  const { store, commits } = countingStore(options.store)
  const started = start(t, definition, { ...options, store })
  const address = await binding.serve(t, started.runtime)
  const caller = (terms?: WireParameters) => binding.open(t, address, terms)
  return { ...started, address, commits, caller, open: async terms => clientOf(await caller(terms), heard) }
}

/** Knows everybody by their bearer token, except `nobody`. */
export const byName: Authenticate = ({ headers }) => {
  const [, id = ''] = /^Bearer (\w+)$/.exec(headers.authorization ?? '') ?? []
  return id === '' || id === 'nobody' ? undefined : { id }
}

export type { Runtime, Test }
