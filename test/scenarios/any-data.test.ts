import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as sdk from '@a2a-js/sdk'
import t, { type Test } from 'tap'
import * as z from 'zod'
import { fromExecutor } from '../../adapters/a2a-sdk/index.ts'
import { WebSocketTransportFactory } from '../../adapters/a2a-sdk/websocket-transport.ts'
import type { AgentClient } from '../../adapters/client/agent-client.ts'
import { connect } from '../../adapters/client/connect.ts'
import { grpc } from '../../adapters/grpc/index.ts'
import { dialect01, dialect03 } from '../../adapters/legacy/index.ts'
import { serve } from '../../adapters/serve/serve.ts'
import type { JsonValue } from '../../machines/protocol/codec/json.ts'
import type { AgentCard } from '../../machines/protocol/card.ts'
import type { Message, Part } from '../../machines/protocol/objects.ts'
import { ANSWER_SCHEMA } from '../../machines/protocol/uris.ts'
import {
  accepted,
  artifact,
  data,
  inputRequired,
  progress,
  reply,
  textOf,
  type WorkFunction
} from '../../runtime/index.ts'
import type { ReceivedMessage } from '../../runtime/authoring/work-arguments.ts'
import { ask as askHttp, rpc } from '../fixtures/servers/http-agent.ts'
import { collect, messageIn, say, start, taskIn } from '../fixtures/runtime/runtime-helpers.ts'

/** JSON that careless code loses: null, and members named as those of prototypes. */
const NAMES = {
  constructor: { prototype: [null, { constructor: 'x' }] },
  prototype: null,
  toString: 1,
  hasOwnProperty: null
}
const VALUES: readonly JsonValue[] = [null, [null], { a: null }, NAMES]

const BINDINGS = ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON', 'GRPC', '0.3 JSONRPC', '0.3 HTTP+JSON'] as const

/** What a message and an artifact have in common. */
type Content = Pick<Message, 'parts' | 'metadata'>

const contentOf = ({ parts, metadata }: Content): Content => ({ parts, ...(metadata && { metadata }) })

/** Gives the content of its message back as progress, as artifacts, and with its end. */
const echo: WorkFunction = ({ message, emit }) => {
  const content = contentOf(message)
  emit({ ...progress(content), ...(message.metadata && { metadata: message.metadata }) })
  emit(artifact({ artifactId: 'one', ...content }))
  return { artifact: { artifactId: 'two', ...content }, message: content }
}

/** Serves the echo over everything. `reply` is answered without a task. */
async function served(t: Test, work: WorkFunction = echo) {
  const negotiate = ({ message }: ReceivedMessage) =>
    textOf(message) === 'reply' ? reply(contentOf(message)) : accepted()
  const { runtime } = start(t, { card: { name: 'Echo', defaultInputModes: ['*/*'] }, negotiate, work })
  const { url, close } = await serve(runtime, {
    port: 0,
    dialects: [dialect03(runtime), dialect01(runtime)],
    grpc: grpc({ port: 0 })
  })
  t.teardown(close)
  return { url, runtime }
}

/** The address of the card of 0.3 of an agent that also speaks 1.0. */
async function only03(t: Test, url: string): Promise<string> {
  const {
    supportedInterfaces: _,
    securityRequirements: __,
    ...card
  } = (await (await fetch(`${url}.well-known/agent-card.json`)).json()) as AgentCard
  const server = createServer(
    (_, response) => void response.setHeader('connection', 'close').end(JSON.stringify(card))
  ).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

async function connected(t: Test, url: string, binding: string): Promise<AgentClient> {
  const client = await connect(url, { bindings: [binding], giveUpAfterMs: 0 })
  t.teardown(() => client.close())
  return client
}

/** Compares as JSON text: tap takes a member `constructor` for the class of an object. */
function equalJson(t: Test, found: unknown, wanted: unknown, what = ''): void {
  t.equal(JSON.stringify(found), JSON.stringify(wanted), what)
}

await t.test(
  'null, and members of any name but __proto__, are data in messages, artifacts and metadata, over every binding',
  async t => {
    const { url } = await served(t)
    const url03 = await only03(t, url)
    for (const name of BINDINGS) {
      const binding = name.replace('0.3 ', '')
      const client = await connected(t, binding === name ? url : url03, binding)
      for (const value of VALUES) {
        for (const metadata of [undefined, NAMES]) {
          await t.test(`${JSON.stringify(value)}, ${metadata ? 'with' : 'without'} metadata, over ${name}`, async t => {
            const parts = (word: string): Part[] => [{ text: word }, { data: value, ...(metadata && { metadata }) }]
            const sent = (word: string) => say('', { parts: parts(word), ...(metadata && { metadata }) })
            const same = (content: Content | undefined, what: string, word = 'x') => {
              equalJson(t, content && contentOf(content), { parts: parts(word), ...(metadata && { metadata }) }, what)
            }
            same(messageIn(await client.sendMessage(sent('reply'))), 'the reply', 'reply')

            const { id } = taskIn(await client.sendMessage(sent('x')))
            const task = await client.getTask({ id })
            const { contextId = '' } = task
            for (const content of [...(task.artifacts ?? []), ...(task.history ?? []), task.status.message])
              same(content, 'of the task')
            t.equal(task.artifacts?.length, 2)
            if (metadata) equalJson(t, { ...task.metadata, ...metadata }, task.metadata, 'the metadata of the task')
            if (name === binding) {
              const { tasks } = await client.listTasks({ contextId, includeArtifacts: true })
              for (const content of tasks[0]?.artifacts ?? []) same(content, 'of the page')
              t.equal(tasks[0]?.id, id)
            }

            const events = await collect(client.sendStreamingMessage(sent('x')))
            const told = events.flatMap(
              event =>
                ('artifactUpdate' in event
                  ? event.artifactUpdate.artifact
                  : 'statusUpdate' in event
                    ? event.statusUpdate.status.message
                    : undefined) ?? []
            )
            for (const content of told as Content[]) same(content, 'of the stream')
            t.equal(told.length, 4)
          })
        }
      }
    }
    t.equal(Reflect.get({}, 'polluted'), undefined)
  }
)

await t.test('a part without content is refused over every binding, and is not data that is null', async t => {
  const { url } = await served(t)
  for (const binding of ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON', 'GRPC']) {
    const client = await connected(t, url, binding)
    await t.rejects(
      client.sendMessage(say('', { parts: [{ filename: 'x' } as never] })),
      { code: 'InvalidParams', message: /exactly one of text, raw, url, data/ },
      binding
    )
  }
})

await t.test('clients of 0.3 and 0.1 send and get null as they write it', async t => {
  const { url } = await served(t)
  const metadata = { data_part_compat: true, constructor: 1 }
  const part = { data: { value: null }, metadata }
  const {
    json: { result: task01 }
  } = await rpc(
    url,
    'tasks/send',
    { id: 'mine', message: { role: 'user', parts: [{ type: 'data', ...part }], metadata: NAMES } },
    { 'a2a-version': '0.1' }
  )
  t.match(task01, {
    status: { state: 'completed', message: { parts: [part], metadata: NAMES } },
    artifacts: [{ parts: [part] }, { parts: [part] }]
  })
  const {
    json: { result: task03 }
  } = await rpc(
    url,
    'message/send',
    { message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'data', ...part }], metadata: NAMES } },
    { 'a2a-version': '0.3' }
  )
  t.match(task03, {
    status: { state: 'completed', message: { parts: [part], metadata: NAMES } },
    artifacts: [{ parts: [part] }, { parts: [part] }]
  })
  const { json: found } = await askHttp(`${url}v1/tasks/${(task03 as { id: string }).id}`, {
    headers: { 'a2a-version': '0.3' }
  })
  t.match(found, { artifacts: [{ parts: [{ data: { data: { value: null } }, metadata }] }, {}] })
})

await t.test('an executor and a client of the official SDK get null, and give it back', async t => {
  const { url } = await served(
    t,
    fromExecutor({
      execute: async ({ taskId, contextId, userMessage }, bus) => {
        bus.publish({
          kind: 'artifactUpdate',
          data: {
            taskId,
            contextId,
            artifact: { ...sdk.Artifact.fromJSON({ artifactId: 'a' }), parts: userMessage.parts },
            append: false,
            lastChunk: true,
            metadata: undefined
          }
        })
        bus.publish({ kind: 'message', data: { ...userMessage, role: sdk.Role.ROLE_AGENT } })
      },
      cancelTask: async () => {}
    })
  )
  const transport = await new WebSocketTransportFactory().create(url.replace('http', 'ws'))
  t.teardown(() => transport.close())
  const parts = VALUES.map(value => ({
    content: { $case: 'data' as const, value },
    metadata: NAMES,
    filename: '',
    mediaType: ''
  }))
  const request = () => ({
    ...sdk.SendMessageRequest.fromJSON({}),
    message: { ...sdk.Message.fromJSON({ messageId: crypto.randomUUID(), role: 'ROLE_USER' }), parts }
  })
  const task = (await transport.sendMessage(request())) as sdk.Task
  const same = (found: sdk.Task) =>
    equalJson(
      t,
      [found.status?.message?.parts, found.artifacts[0]?.parts, found.history[0]?.parts],
      [parts, parts, parts]
    )
  same(task)
  same(await transport.getTask({ id: task.id, tenant: '', historyLength: undefined }))
  const page = await transport.listTasks(sdk.ListTasksRequest.fromJSON({ includeArtifacts: true, pageSize: 1 }))
  equalJson(t, page.tasks[0]?.artifacts[0]?.parts, parts)
  const told = []
  for await (const { payload } of transport.sendMessageStream(request())) told.push(payload)
  const artifacts = told.flatMap(payload =>
    payload?.$case === 'artifactUpdate' ? [payload.value.artifact?.parts] : []
  )
  equalJson(t, artifacts, [parts])
  t.match(told.at(-1), { $case: 'statusUpdate', value: { status: { message: { parts } } } })
})

await t.test('a schema may have members of any name, and an answer may be null', async t => {
  const schema = z.object({ constructor: z.string(), prototype: z.object({ toString: z.number() }).nullable() })
  const { runtime } = start(t, {
    work: async ({ ask }) => {
      const first = await ask(inputRequired('Who?', { schema }))
      const second = await ask(inputRequired('And?', { schema: z.null() }))
      return { artifact: data([first, second]) }
    }
  })
  const asked = taskIn(await runtime.sendMessage(say('go')))
  const answer = (value: JsonValue) => runtime.sendMessage(say('', { taskId: asked.id, parts: [{ data: value }] }))
  t.match(asked.status.message?.metadata, {
    [ANSWER_SCHEMA]: { properties: { constructor: { type: 'string' } }, required: ['constructor', 'prototype'] }
  })
  await t.rejects(
    answer({ prototype: null }),
    { code: 'InvalidParams', message: /constructor/ },
    'what is inherited does not count'
  )
  taskIn(await answer({ constructor: 'Ann', prototype: { toString: 1 } }))
  const done = taskIn(await answer(null))
  equalJson(t, done.artifacts?.[0]?.parts, [{ data: [{ constructor: 'Ann', prototype: { toString: 1 } }, null] }])
})
