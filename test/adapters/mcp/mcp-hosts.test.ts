import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import { serve } from '../../../adapters/serve/serve.ts'
import barista from '../../../examples/barista.ts'
import haggle from '../../../examples/haggle.ts'
import sailboat from '../../../examples/sailboat.ts'
import { createRuntime, defineAgent, failed, inputRequired, type Agent } from '../../../runtime/index.ts'
import { officialHost, taskHost, type Answer, type Host, type HostResult } from '../../fixtures/peers/mcp-hosts.ts'
import { recordingLogger } from '../../fixtures/runtime/runtime-helpers.ts'

/** A host, by what it knows. Each is one of the official clients. */
const HOSTS: Readonly<Record<string, (t: Test, url: string, answer: Answer) => Promise<Host>>> = {
  'the client of 2026-07-28': (t, url, answer) => officialHost(t, url, 'auto', answer),
  'the requester of tasks': taskHost
}

async function mcpUrlOf(t: Test, agent: Agent): Promise<string> {
  const runtime = createRuntime({ agent, logger: recordingLogger().logger })
  const served = await serve(runtime, { port: 0, mcp: true })
  t.teardown(async () => {
    await served.close()
    await runtime.close()
  })
  return served.mcpUrl ?? ''
}

const accept = (content: Record<string, string | number | boolean>) => ({ action: 'accept' as const, content })
const textsOf = ({ content }: HostResult) => content.map(({ text = '' }) => text).join('\n')

const ends = defineAgent({
  card: {
    name: 'Ends',
    skills: ['failing', 'asking'].map(id => ({ id, name: id, description: '', tags: [] }))
  },
  work: async ({ message, ask }) => {
    const called = message.metadata?.['urn:taskchart:mcp:1'] as { readonly tool: string } | undefined
    if (called?.tool === 'failing') return failed('No beans.')
    const schema = z.object({ size: z.enum(['small', 'large']), count: z.int().min(1).max(3) })
    const { size, count } = await ask(inputRequired('Which, and how many?', { schema }))
    return { artifact: `${count} ${size}` }
  }
})

for (const [name, open] of Object.entries(HOSTS)) {
  await t.test(`${name} gets a picture of the sailboat`, async t => {
    const host = await open(t, await mcpUrlOf(t, sailboat), () => accept({}))
    const drawn = await host.call('draw', { message: 'a red sailboat' })
    t.match(drawn.content, [{ type: 'image', mimeType: 'image/png' }, { text: /state: completed/ }])
    t.match(textsOf(await host.call('draw', { message: 'hello' })), /What shall I draw\?/)
  })

  await t.test(`${name} orders a coffee, and its user answers wrongly twice`, async t => {
    const asked: unknown[] = []
    const answers = [accept({ answer: 'huge' }), accept({ answer: 'tiny' }), accept({ answer: 'large' })]
    const host = await open(t, await mcpUrlOf(t, barista), ({ message }) => {
      asked.push(message)
      return answers[asked.length - 1] ?? { action: 'cancel' }
    })
    t.match(textsOf(await host.call('coffee', { message: 'a coffee' })), /^a large coffee\ntaskId/)
    t.match(asked, ['Small or large?', /^Not accepted: .*small or large.*\n\nSmall or large\?$/, /^Not accepted: /])
  })

  await t.test(`${name} haggles, and its user decides`, async t => {
    const seen: unknown[] = []
    const host = await open(t, await mcpUrlOf(t, haggle), ({ message }) => {
      seen.push(message)
      return seen.length === 1 ? accept({ decision: 'propose', euros: 50 }) : accept({ decision: 'accept' })
    })
    const done = await host.call('Mover', { message: 'Move my piano.' })
    t.match(seen[0], /Terms: \{.*"euros":100/)
    t.match(textsOf(done), /state: completed/)
  })

  await t.test(`${name} sees a failure as an error, and a canceled task`, async t => {
    const host = await open(t, await mcpUrlOf(t, ends), () => ({ action: 'decline' }))
    const failure = await host.call('failing', { message: 'x' })
    t.match(failure, { isError: true })
    t.match(textsOf(failure), /^No beans\.\n[^]*state: failed/)
    t.match(await host.call('asking', { message: 'x' }), { isError: true, content: [{ text: /cancell?ed/ }] })
  })

  await t.test(`${name} sends numbers and choices`, async t => {
    const host = await open(t, await mcpUrlOf(t, ends), () => accept({ size: 'small', count: 2 }))
    t.match(textsOf(await host.call('asking', { message: 'x' })), /^2 small\n/)
  })
}

await t.test('an older client over HTTP goes on by the follow-up tool', async t => {
  const host = await officialHost(t, await mcpUrlOf(t, barista), 'legacy', () => ({ action: 'cancel' }))
  const asked = textsOf(await host.call('coffee', { message: 'a coffee' }))
  t.match(asked, /^Small or large\?\nThe task waits for an answer\. Call task_followup/)
  const taskId = /taskId: (\S+)/.exec(asked)?.[1] ?? ''
  t.match(await host.call('task_followup', { taskId, message: 'huge' }), { isError: true })
  t.match(textsOf(await host.call('task_followup', { taskId, message: 'small' })), /^a small coffee\n/)
})

await t.test('a client of SDK 1.x starts the agent as its program, and asks its user', async t => {
  const client = new Client({ name: 'old', version: '1' }, { capabilities: { elicitation: {} } })
  const asked: string[] = []
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message)
    return { action: 'accept', content: { answer: asked.length === 1 ? 'huge' : 'large' } }
  })
  const args = [join('dist', 'adapters', 'cli', 'bin.js'), 'mcp', 'examples/barista.ts']
  await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: 'ignore' }))
  t.teardown(() => client.close())
  t.match(await client.listTools(), { tools: [{ name: 'coffee' }, { name: 'task_followup' }] })
  const done = (await client.callTool({ name: 'coffee', arguments: { message: 'a coffee' } })) as HostResult
  t.match(textsOf(done), /^a large coffee\n/)
  t.match(asked, ['Small or large?', /^Not accepted: /])
})
