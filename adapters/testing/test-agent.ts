import { inspect } from 'node:util'
import type { Agent } from '../../runtime/agent/define-agent.ts'
import { agentTests, type AgentTestOptions } from './agent-tests.ts'
import type { Coverage } from './coverage.ts'
import { errorText, PathError } from './path-error.ts'

/** The required part of a test runner: tap's `t`, or a compatible one with nested tests. */
export interface TestContext {
  test(name: string, run: (t: TestContext) => Promise<void>): Promise<unknown>
  comment?(text: string): void
}

/** Tests every path of an agent: one test per driver, one subtest per path. A failure shows the step, and both values. */
export async function testAgent(t: TestContext, agent: Agent, options: AgentTestOptions = {}): Promise<Coverage> {
  const { tests, coverage, notes } = await agentTests(agent, options)
  for (const driver of new Set(tests.map(({ driver }) => driver))) {
    await t.test(driver, async t => {
      for (const { name, run } of tests.filter(test => test.driver === driver))
        await t.test(name, () => run().catch(explainFailure))
    })
  }
  for (const line of notes()) t.comment?.(line)
  return coverage()
}

/** Throws the error with expected and actual values in its message. */
export function explainFailure(error: unknown): never {
  if (error instanceof PathError) throw new Error(`${error.message}\n${wantedAndFound(error)}`, { cause: error })
  throw error
}

function wantedAndFound({ wanted, found, cause }: PathError): string {
  const shown = (value: unknown) => inspect(value, { depth: 8, breakLength: 120, compact: 4 })
  return `  wanted: ${shown(wanted)}\n  found:  ${shown(found)}${cause === undefined ? '' : `\n  error:  ${errorText(cause)}`}`
}
