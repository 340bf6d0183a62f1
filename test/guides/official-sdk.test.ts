import { AgentCard, TaskState, Message, type StreamResponse, type Task } from '@a2a-js/sdk'
import { ClientFactory, ClientFactoryOptions, type Client } from '@a2a-js/sdk/client'
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc'
import { credentials, ServerCredentials, type Server } from '@grpc/grpc-js'
import type { Express } from 'express'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { tsImport } from 'tsx/esm/api'
import type { Agent, Runtime } from '../../runtime/index.ts'
import { compilerOutput, guideConfig } from '../fixtures/guides/compiled-guide.ts'
import { collect } from '../fixtures/runtime/runtime-helpers.ts'
import { servedRuntime } from '../../runtime/runtime-options.ts'

const guide = readFileSync('docs/official-sdk.md', 'utf8')
const blocks = Array.from(guide.matchAll(/^```ts\n\/\/ (\w+)\.ts\n([\s\S]*?)^```$/gm), ([, name = '', text = '']) => ({
  name,
  text
}))

const folder = t.testdir(
  Object.fromEntries([
    ...blocks.map(({ name, text }) => [`${name}.ts`, text]),
    ['all.ts', blocks.map(({ name }) => `export * as ${name} from './${name}.ts'`).join('\n')],
    ['tsconfig.json', guideConfig(t.testdirName)]
  ])
)

interface Guide {
  readonly before: { readonly serve: (url: string) => Express }
  readonly after: {
    readonly serve: (agent: Agent, url: string) => { readonly app: Express; readonly runtime: Runtime }
  }
  readonly grpc: {
    readonly serve: (agent: Agent, address: string) => { readonly server: Server; readonly runtime: Runtime }
  }
  readonly agent: { readonly default: Agent }
  readonly work: { readonly default: Agent }
  readonly chart: { readonly default: Agent }
}

const all = (await tsImport(pathToFileURL(join(folder, 'all.ts')).href, import.meta.url)) as Guide

/** Serves what `app` makes of its own address, and gives that. */
async function listening(t: Test, app: (url: string) => RequestListener): Promise<string> {
  let answer: RequestListener = () => {}
  const server = createServer((request, response) => answer(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  answer = app(url)
  return url
}

let messages = 0

function saying(text: string, more: object = {}) {
  const message = Message.fromJSON({ messageId: `m-${(messages += 1)}`, role: 'ROLE_USER', parts: [{ text }], ...more })
  return { tenant: '', message, configuration: undefined, metadata: undefined }
}

function textsOf(messages: (Message | undefined)[]): unknown[] {
  return messages.map(message => message?.parts[0]?.content?.value)
}

/** The state that an event tells, with the agent's words. */
function told(event: StreamResponse | undefined): string {
  const payload = event?.payload
  const status = payload?.$case === 'task' || payload?.$case === 'statusUpdate' ? payload.value.status : undefined
  return [TaskState[status?.state ?? 0]?.replace('TASK_STATE_', ''), ...textsOf([status?.message])].join(': ')
}

/** Holds the conversation of the guide. */
async function converse(t: Test, client: Client): Promise<void> {
  const asked = (await client.sendMessage(saying('a boat'))) as Task
  t.match(asked.status, {
    state: TaskState.TASK_STATE_INPUT_REQUIRED,
    message: { parts: [{ content: { value: 'Which colour?' } }] }
  })
  const events = await collect(
    client.sendMessageStream(saying('red', { taskId: asked.id, contextId: asked.contextId }))
  )
  t.equal(told(events.at(-1)), 'COMPLETED: Here you are.')
  const done = await client.getTask({ id: asked.id, tenant: '', historyLength: undefined })
  for (const text of ['a boat', 'Which colour?', 'red', 'Painting it red.'])
    t.ok(textsOf(done.history).includes(text), text)
  t.match(done.artifacts, [
    { artifactId: 'picture', name: 'picture.txt', parts: [{ content: { value: 'a picture in red' } }] }
  ])
}

await t.test('every TypeScript block of the guide compiles under the strictest settings', async t => {
  t.equal(blocks.length, guide.match(/^```ts$/gm)?.length)
  t.equal(await compilerOutput(folder), '')
})

await t.test('the official client holds the same conversation before, after and at every step between', async t => {
  const created = (url: string, preferred = 'JSONRPC') =>
    new ClientFactory(
      ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { preferredTransports: [preferred] })
    ).createFromUrl(url)
  await t.test('before', async t => converse(t, await created(await listening(t, all.before.serve))))
  for (const name of ['agent', 'work', 'chart'] as const) {
    await t.test(name, async t => {
      const url = await listening(t, url => {
        const { app, runtime } = all.after.serve(all[name].default, url)
        t.teardown(() => runtime.close())
        return app
      })
      for (const binding of ['JSONRPC', 'HTTP+JSON']) await converse(t, await created(url, binding))
      const params = {
        message: { kind: 'message', messageId: 'old', role: 'user', parts: [{ kind: 'text', text: 'a boat' }] }
      }
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params })
      })
      t.match(await response.json(), { result: { kind: 'task', status: { state: 'input-required' } } })
    })
  }
})

await t.test('gRPC gives the same conversation', async t => {
  const { server, runtime } = all.grpc.serve(all.agent.default, 'localhost:0')
  t.teardown(() => runtime.close())
  const port = await promisify(server.bindAsync.bind(server))('127.0.0.1:0', ServerCredentials.createInsecure())
  t.teardown(() => server.forceShutdown())
  const factory = new ClientFactory({
    transports: [new GrpcTransportFactory({ grpcChannelCredentials: credentials.createInsecure() })]
  })
  const supportedInterfaces = [
    { url: `127.0.0.1:${port}`, protocolBinding: 'GRPC', protocolVersion: '1.0', tenant: '' }
  ]
  await converse(
    t,
    await factory.createFromAgentCard({
      ...AgentCard.fromJSON(servedRuntime(runtime, 'a test').agentCard([])),
      supportedInterfaces
    })
  )
})
