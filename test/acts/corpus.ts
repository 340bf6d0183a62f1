import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

/** A test of the corpus, with the variables of its document. */
export interface ActsTest {
  readonly id: string
  readonly name: string
  readonly level: 'must' | 'should' | 'may'
  readonly description?: string
  readonly spec_ref?: string
  readonly tags?: readonly string[]
  /** The bindings that it is for; without it, all. */
  readonly transport?: readonly string[]
  readonly preconditions?: { readonly capabilities?: Readonly<Record<string, boolean>> }
  readonly requires_behaviors?: readonly string[]
  readonly steps: readonly Step[]
  readonly variables: Readonly<Record<string, unknown>>
}

export type Members = Readonly<Record<string, unknown>>

/** A step: an operation, a raw request, or an answer for a client; and what has to come of it. */
export interface Step {
  readonly id: string
  readonly operation?: string
  readonly params?: Members
  readonly raw?: RawRequest
  readonly client_response?: { readonly operation: string; readonly wire_payload: Members }
  readonly expect?: Members
  readonly expect_error?: Members
  readonly expect_stream?: ExpectedStream
  readonly expect_parsed?: Members
  readonly assertions?: readonly Search[]
  /** What later steps may name: the path of each. */
  readonly capture?: Readonly<Record<string, string>>
  readonly repeat?: { readonly until: string; readonly max_attempts: number; readonly delay_ms: number }
}

/** A request that is sent as it is. `path` follows the address of the agent. */
export interface RawRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly body_raw?: string
}

export interface ExpectedStream {
  readonly min_count?: number
  readonly ordering?: 'monotonic_state'
  readonly each_event?: Members
  readonly final_event?: Members
  readonly events?: readonly Members[]
}

/** A search in a list: any, all or none of the values at a path match. */
export interface Search {
  readonly source: unknown
  readonly any?: Sought
  readonly all?: Sought
  readonly none?: Sought
}

export interface Sought {
  readonly path: string
  readonly match: unknown
}

interface ActsDocument {
  readonly spec_version: string
  readonly variables?: Members
  readonly suites: readonly { readonly tests: readonly Omit<ActsTest, 'variables'>[] }[]
}

const FOLDER = 'test/acts/corpus'

/** Every test of the corpus as it is written, in the order of its suite. */
export function readCorpus(): ActsTest[] {
  const { include } = read('suite.acts.yaml') as { include: readonly string[] }
  return include.flatMap(name => {
    const { suites, variables = {}, spec_version: version } = read(name) as ActsDocument
    if (version !== '1.0') throw new Error(`${name} is for A2A ${version}, which the agent under test does not speak.`)
    return suites.flatMap(({ tests }) => tests.map(test => ({ ...test, variables })))
  })
}

function read(name: string): unknown {
  return parse(readFileSync(`${FOLDER}/${name}`, 'utf8'))
}
