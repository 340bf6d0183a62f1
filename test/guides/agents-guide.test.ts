import {
  Role,
  TaskState,
  type Message as SdkMessage,
  type Part as SdkPart,
  type SendMessageRequest,
  type Task as SdkTask
} from '@a2a-js/sdk'
import { ClientFactory } from '@a2a-js/sdk/client'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { tsImport } from 'tsx/esm/api'
import { serve } from '../../adapters/serve/serve.ts'
import { createRuntime, type Agent } from '../../runtime/index.ts'
import { runBare } from '../fixtures/processes/bare-process.ts'
import { compilerOutput, guideConfig } from '../fixtures/guides/compiled-guide.ts'
import {
  messageIn,
  reaches,
  rejection,
  rest,
  say,
  stateName,
  taskIn,
  textOf
} from '../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../fixtures/runtime/test-clock.ts'
import { servedRuntime } from '../../runtime/runtime-options.ts'

const guides = ['agents', 'negotiation', 'refinement', 'delegation', 'models', 'traces', 'types']
const blocks = guides.flatMap(guide => {
  const text = readFileSync(`docs/${guide}.md`, 'utf8')
  return Array.from(text.matchAll(/^```ts\n([\s\S]*?)^```$/gm), ([, text = ''], i) => ({ name: `${guide}-${i}`, text }))
})

const folder = t.testdir(
  Object.fromEntries([
    ...blocks.map(({ name, text }) => [`${name}.ts`, text]),
    [
      'all.ts',
      [
        ...blocks.map(({ name }) => `await import('./${name}.ts')`),
        `console.log('all of them')`,
        'process.exit(0)',
        'export {}'
      ].join('\n')
    ],
    [
      'agents.ts',
      blocks
        .filter(({ name }) => name.startsWith('agents-'))
        .map(({ name }, i) => `export { default as agent${i} } from './${name}.ts'`)
        .join('\n')
    ],
    ['tsconfig.json', guideConfig(t.testdirName)]
  ])
)

const agents = (await tsImport(pathToFileURL(join(folder, 'agents.ts')).href, import.meta.url)) as Record<string, Agent>

/** Brings an agent of the guide to life. */
function lifeOf(t: Test, block: number) {
  const clock = new TestClock()
  const runtime = createRuntime({ agent: agents[`agent${block}`] as Agent, clock })
  t.teardown(() => runtime.close())
  return { runtime, clock }
}

await t.test('every block of the guides compiles under the strictest settings, and runs', async t => {
  t.ok(blocks.length >= 15)
  t.equal(await compilerOutput(folder), '')
  const { stdout } = await runBare('--import', 'tsx', join(folder, 'all.ts'))
  t.match(stdout, /Roses are red\. Violets are blue\.[^]*all of them/)
})

await t.test('the links of the guides have targets', t => {
  for (const guide of guides) {
    for (const [, link = ''] of readFileSync(`docs/${guide}.md`, 'utf8').matchAll(/\]\((?!https?:)([^)#]+)/g))
      t.ok(existsSync(join('docs', link)), `${guide}: ${link}`)
  }
  t.end()
})

await t.test('the baker of ten lines bakes', async t => {
  const { runtime } = lifeOf(t, 0)
  t.match(taskIn(await runtime.sendMessage(say('Ada'))).artifacts?.map(textOf), ['A cake for Ada.'])
})

await t.test('the asking baker accepts a number of candles, and nothing else', async t => {
  const { runtime } = lifeOf(t, 1)
  const { id: taskId, status } = taskIn(await runtime.sendMessage(say('Ada')))
  t.equal(textOf(status.message), 'How many candles?')
  t.match(await rejection(runtime.sendMessage(say('many', { taskId }))), {
    code: 'InvalidParams',
    message: /is not a number of candles/
  })
  t.match(taskIn(await runtime.sendMessage(say('30', { taskId }))).artifacts?.map(textOf), [
    'A cake for Ada, with 30 candles.'
  ])
})

await t.test("the baker's chart bakes its cakes in a minute, and rejects others", async t => {
  const { runtime, clock } = lifeOf(t, 2)
  const asked = async () => taskIn(await runtime.sendMessage(say('Ada'))).id
  const taskId = await asked()
  await runtime.sendMessage(say('plum', { taskId }, { returnImmediately: true }))
  await rest()
  clock.increment(60_000)
  t.match((await reaches(runtime, taskId, 'completed')).artifacts?.map(textOf), ['plum cake for Ada.'])
  t.equal(
    stateName(taskIn(await runtime.sendMessage(say('stone', { taskId: await asked() }))).status.state),
    'rejected'
  )
})

await t.test('the negotiating baker answers, accepts and rejects', async t => {
  const { runtime } = lifeOf(t, 3)
  t.equal(textOf(messageIn(await runtime.sendMessage(say('hello')))), 'I bake cakes. Shall I bake one for 40 euros?')
  t.equal(stateName(taskIn(await runtime.sendMessage(say('bread'))).status.state), 'rejected')
  t.match(taskIn(await runtime.sendMessage(say('cake'))).artifacts?.map(textOf), ['A cake for 40 euros.'])
})

/** A message as the official client sends it. */
function saying(text: string, more: Partial<SdkMessage> = {}): SendMessageRequest {
  const part: SdkPart = { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }
  const message: SdkMessage = {
    messageId: crypto.randomUUID(),
    role: Role.ROLE_USER,
    parts: [part],
    contextId: '',
    taskId: '',
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
    ...more
  }
  return { tenant: '', message, configuration: undefined, metadata: undefined }
}

function wordsOf({ parts }: { parts: SdkPart[] }): string {
  return parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : [])).join(' ')
}

await t.test(
  "the official SDK's client completes the hybrid agent's negotiation, task, question and refinement",
  async t => {
    const { runtime } = lifeOf(t, 4)
    const served = await serve(runtime, { port: 0 })
    t.teardown(() => served.close())
    const client = await new ClientFactory().createFromUrl(served.url)
    const answerTo = async (text: string, more?: Partial<SdkMessage>): Promise<SdkMessage | SdkTask> =>
      client.sendMessage(saying(text, more))
    const message = (answer: SdkMessage | SdkTask): SdkMessage => {
      if ('status' in answer) throw new TypeError('It is a task.')
      return answer
    }
    const task = (answer: SdkMessage | SdkTask): SdkTask => {
      if ('status' in answer) return answer
      throw new TypeError(`It is the message ${wordsOf(answer)}.`)
    }

    const hello = message(await answerTo('hello'))
    t.equal(wordsOf(hello), 'I bake cakes. Shall I?')
    const { contextId } = hello
    t.equal(wordsOf(message(await answerTo('A cake, please.', { contextId }))), 'A cake is 40 euros.')
    const asked = task(await answerTo('Deal.', { contextId }))
    t.equal(asked.status?.state, TaskState.TASK_STATE_INPUT_REQUIRED)
    t.equal(asked.status?.message && wordsOf(asked.status.message), 'How many candles?')
    await t.rejects(answerTo('lots', { contextId, taskId: asked.id }), /candles/)
    const baked = task(await answerTo('7', { contextId, taskId: asked.id }))
    t.equal(baked.status?.state, TaskState.TASK_STATE_COMPLETED)
    t.match(baked.metadata, { 'urn:taskchart:extension:negotiation:1': { terms: { euros: 40 } } })
    const [cake] = baked.artifacts
    t.equal(cake && wordsOf(cake), 'A cake for 40 euros, with 7 candles.')

    const changed = task(await answerTo('with cream', { contextId, referenceTaskIds: [baked.id] }))
    const [other] = changed.artifacts
    t.not(changed.id, baked.id)
    t.equal(changed.contextId, contextId)
    t.equal(other?.name, cake?.name)
    t.not(other?.artifactId, cake?.artifactId)
    t.equal(other && wordsOf(other), 'A cake for 40 euros, with 7 candles. And: with cream')
    await t.rejects(answerTo('one more', { contextId, taskId: baked.id }), 'an ended task accepts nothing')
  }
)

await t.test('the baker with fewer capabilities declares none', async t => {
  const { runtime } = lifeOf(t, 5)
  t.strictSame(servedRuntime(runtime, 'a test').agentCard([]).capabilities, {
    streaming: false,
    pushNotifications: false,
    extendedAgentCard: false,
    extensions: []
  })
  t.match(await rejection(runtime.sendStreamingMessage(say('Ada')).next()), { code: 'UnsupportedOperation' })
})
