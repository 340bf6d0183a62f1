import { inspect } from 'node:util'
import type { Agent } from '../../runtime/agent/define-agent.ts'
import { agentTests, type AgentTestOptions } from './agent-tests.ts'
import type { Coverage } from './coverage.ts'
import { PathError } from './path-error.ts'

/** What is needed of a test runner: tap's `t`, and that of others which nest tests alike. */
export interface TestContext {
  test(name: string, run: (t: TestContext) => Promise<void>): Promise<unknown>
  comment?(text: string): void
}

/**
 * Tests every path of an agent: a test for each driver, in it one for each path. A failure says after which step
 * what was to be there, and what was there.
 */
export async function testAgent(t: TestContext, agent: Agent, options: AgentTestOptions = {}): Promise<Coverage> {
  const { tests, coverage, notes } = await agentTests(agent, options)
  for (const driver of new Set(tests.map(({ driver }) => driver))) {
    await t.test(driver, async t => {
      for (const { name, run } of tests.filter(test => test.driver === driver)) await t.test(name, () => run().catch(explainFailure))
    })
  }
  for (const line of notes()) t.comment?.(line)
  return coverage()
}

/** Throws the error with all that is to be known of it in its message. */
export function explainFailure(error: unknown): never {
  if (error instanceof PathError) throw new Error(`${error.message}\n${wantedAndFound(error)}`, { cause: error })
  throw error
}

function wantedAndFound({ wanted, found }: PathError): string {
  const shown = (value: unknown) => inspect(value, { depth: 8, breakLength: 120, compact: 4 })
  return `  wanted: ${shown(wanted)}\n  found:  ${shown(found)}`
}
