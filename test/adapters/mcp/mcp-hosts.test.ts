import t, { type Test } from 'tap'
import { serve } from '../../../adapters/serve/serve.ts'
import barista from '../../../examples/barista.ts'
import haggle from '../../../examples/haggle.ts'
import sailboat from '../../../examples/sailboat.ts'
import { createRuntime, type Agent } from '../../../runtime/index.ts'
import {
  officialHost,
  oldHost,
  taskHost,
  type Answer,
  type Host,
  type HostResult
} from '../../fixtures/peers/mcp-hosts.ts'
import { recordingLogger } from '../../fixtures/runtime/runtime-helpers.ts'
import { IS_DEEP } from '../../fixtures/sample.ts'
import ends from '../../fixtures/servers/ending-agent.ts'

/** The agents that hosts call, by the files from which hosts start them. */
const AGENTS = {
  'examples/sailboat.ts': sailboat,
  'examples/barista.ts': barista,
  'examples/haggle.ts': haggle,
  'test/fixtures/servers/ending-agent.ts': ends
} as const

type AgentFile = keyof typeof AGENTS

async function mcpUrlOf(t: Test, file: AgentFile): Promise<string> {
  const agent: Agent = AGENTS[file]
  const runtime = createRuntime({ agent, logger: recordingLogger().logger })
  const served = await serve(runtime, { port: 0, mcp: true })
  t.teardown(async () => {
    await served.close()
    await runtime.close()
  })
  return served.mcpUrl ?? ''
}

/** A host, by what it knows. Each is one of the official clients. */
const HOSTS: Readonly<Record<string, (t: Test, file: AgentFile, answer: Answer) => Promise<Host>>> = {
  'the client of 2026-07-28': async (t, file, answer) => officialHost(t, await mcpUrlOf(t, file), 'auto', answer),
  'the requester of tasks': async (t, file, answer) => taskHost(t, await mcpUrlOf(t, file), answer),
  'the client of 2026-07-28 over stdio': (t, file, answer) => officialHost(t, file, 'auto', answer),
  'the client of an older version over stdio': (t, file, answer) => officialHost(t, file, 'legacy', answer),
  'the client of SDK 1.x over stdio': oldHost
}

const accept = (content: Record<string, string | number | boolean>) => ({ action: 'accept' as const, content })
const textsOf = ({ content }: HostResult) => content.map(({ text = '' }) => text).join('\n')

for (const [name, open] of Object.entries(HOSTS)) {
  // Each test over stdio starts a process.
  const sampled = { skip: name.includes('stdio') && !IS_DEEP && 'only in npm run test:deep' }
  await t.test(`${name} gets a picture of the sailboat`, sampled, async t => {
    const host = await open(t, 'examples/sailboat.ts', () => accept({}))
    const drawn = await host.call('draw', { message: 'a red sailboat' })
    t.match(drawn.content, [{ type: 'image', mimeType: 'image/png' }, { text: /state: completed/ }])
    t.match(textsOf(await host.call('draw', { message: 'hello' })), /What shall I draw\?/)
  })

  await t.test(`${name} orders a coffee, and its user answers wrongly twice`, async t => {
    const asked: unknown[] = []
    const answers = [accept({ answer: 'huge' }), accept({ answer: 'tiny' }), accept({ answer: 'large' })]
    const host = await open(t, 'examples/barista.ts', ({ message }) => {
      asked.push(message)
      return answers[asked.length - 1] ?? { action: 'cancel' }
    })
    t.match(textsOf(await host.call('coffee', { message: 'a coffee' })), /^a large coffee\ntaskId/)
    t.match(asked, ['Small or large?', /^Not accepted: .*small or large.*\n\nSmall or large\?$/, /^Not accepted: /])
  })

  await t.test(`${name} haggles, and its user decides`, sampled, async t => {
    const seen: unknown[] = []
    const host = await open(t, 'examples/haggle.ts', ({ message }) => {
      seen.push(message)
      return seen.length === 1 ? accept({ decision: 'propose', euros: 50 }) : accept({ decision: 'accept' })
    })
    const done = await host.call('Mover', { message: 'Move my piano.' })
    t.match(seen[0], /Terms: \{.*"euros":100/)
    t.match(textsOf(done), /state: completed/)
  })

  await t.test(`${name} sees a failure and a refusal as errors, and a canceled task`, async t => {
    const host = await open(t, 'test/fixtures/servers/ending-agent.ts', () => ({ action: 'decline' }))
    const failure = await host.call('failing', { message: 'x' })
    t.match(failure, { isError: true })
    t.match(textsOf(failure), /^No beans\.\n[^]*state: failed/)
    const refusal = await host.call('refusing', { message: 'x' })
    t.match(refusal, { isError: true })
    t.match(textsOf(refusal), /^Not today\.\n[^]*state: rejected/)
    t.match(await host.call('asking', { message: 'x' }), { isError: true, content: [{ text: /cancell?ed/ }] })
  })

  await t.test(`${name} sends numbers and choices`, sampled, async t => {
    const host = await open(t, 'test/fixtures/servers/ending-agent.ts', () => accept({ size: 'small', count: 2 }))
    t.match(textsOf(await host.call('asking', { message: 'x' })), /^2 small\n/)
  })
}

await t.test('an older client over HTTP goes on by the follow-up tool', async t => {
  const host = await officialHost(t, await mcpUrlOf(t, 'examples/barista.ts'), 'legacy', () => ({ action: 'cancel' }))
  const asked = textsOf(await host.call('coffee', { message: 'a coffee' }))
  t.match(asked, /^Small or large\?\nThe task waits for an answer\. Call task_followup/)
  const taskId = /taskId: (\S+)/.exec(asked)?.[1] ?? ''
  t.match(await host.call('task_followup', { taskId, message: 'huge' }), { isError: true })
  t.match(textsOf(await host.call('task_followup', { taskId, message: 'small' })), /^a small coffee\n/)
})
