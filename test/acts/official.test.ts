import t from 'tap'
import { grpcCaller } from '../../adapters/conformance/callers/grpc-caller.ts'
import { jsonRpcCaller, restCaller } from '../../adapters/conformance/callers/http-callers.ts'
import { AGENT_CARD_PATH } from '../../machines/protocol/uris.ts'
import { officialAgent, type OfficialAgent } from '../fixtures/servers/official-agent.ts'
import { CORRECTIONS, corrected, repaired } from './corrections.ts'
import { readCorpus, type ActsTest } from './corpus.ts'
import { ActsExecutor } from './official-executor.ts'
import { runSteps, type Target } from './runner.ts'
import { sendRaw } from './target.ts'

/** The SDK leaves the media types of a message to agents: it fails this test as it is corrected, too. */
const LEFT_TO_AGENTS = 'CORE-SEND-004'

const BINDINGS = [
  { name: 'JSONRPC', transport: 'jsonrpc', open: jsonRpcCaller, at: ({ url }: OfficialAgent) => `${url}/rpc` },
  { name: 'HTTP+JSON', transport: 'rest', open: restCaller, at: ({ url }: OfficialAgent) => `${url}/rest` },
  { name: 'GRPC', transport: 'grpc', open: grpcCaller, at: ({ grpcPort }: OfficialAgent) => `127.0.0.1:${grpcPort}` }
]

/** Its card lists all of them. */
const NAMES = BINDINGS.map(({ name }) => name)

const NOTHING = { streaming: false, pushNotifications: false, extendedAgentCard: false }
const CAPABILITIES = [{ ...NOTHING, streaming: true, pushNotifications: true }, NOTHING]

/** The tests for agents that anybody may call: the SDK leaves credentials to apps. */
const tests = readCorpus()
  .map(repaired)
  .filter(({ steps, preconditions }) => {
    const { authentication = false, extendedAgentCard = false } = preconditions?.capabilities ?? {}
    return !steps.some(step => step.client_response) && !authentication && !extendedAgentCard
  })

for (const { name, transport, open, at } of BINDINGS) {
  await t.test(`the official SDK's server needs the same corrections over ${name}`, async t => {
    // It writes what it refuses.
    t.capture(console, 'error')
    const sites = await Promise.all(
      CAPABILITIES.map(async capabilities => {
        const executor = new ActsExecutor()
        return { capabilities, executor, agent: await officialAgent(t, NAMES, { executor, capabilities }) }
      })
    )
    const run = async (test: ActsTest) => {
      const needed = Object.entries(test.preconditions?.capabilities ?? {})
      const site = sites.find(({ capabilities }) =>
        needed.every(([name, isNeeded]) => capabilities[name as keyof typeof capabilities] === isNeeded)
      )
      if (!site) throw new Error(`No agent has what ${test.id} needs.`)
      const address = at(site.agent)
      const caller = open(address, { version: '1.0' })
      t.teardown(() => caller.close())
      const target: Target = {
        caller,
        card: async () => (await fetch(`${site.agent.url}${AGENT_CARD_PATH}`)).json(),
        raw: request => sendRaw(address, request),
        variables: { webhookUrl: 'http://127.0.0.1:9/' },
        goOn: () => site.executor.goOn()
      }
      return runSteps(test, target)
    }
    for (const test of tests.filter(test => test.transport?.includes(transport) ?? true)) {
      const correction = CORRECTIONS.find(({ id }) => id === test.id)
      const faults = await run(test)
      if (!correction) {
        t.strictSame(faults, [], test.id)
        continue
      }
      t.not(faults.length, 0, `${test.id} fails as it is written`)
      const other = corrected(test, correction)
      if (other && test.id !== LEFT_TO_AGENTS) t.strictSame(await run(other), [], test.id)
    }
  })
}
