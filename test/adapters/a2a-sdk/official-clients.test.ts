import { Message as CurrentMessage, TaskState, taskStateToJSON, type Task as CurrentTask } from '@a2a-js/sdk'
import { ClientFactory as CurrentFactory, ClientFactoryOptions as CurrentOptions } from '@a2a-js/sdk/client'
import { decode } from 'fast-png'
import { generateKeyPairSync } from 'node:crypto'
import t, { type Test } from 'tap'
import { apiKey, cardSigner } from '../../../adapters/auth/index.ts'
import { dialect01, dialect03 } from '../../../adapters/legacy/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import sailboat from '../../../examples/sailboat.ts'
import { AGENT_CARD_PATH } from '../../../machines/protocol/uris.ts'
import { createdRuntime } from '../../fixtures/cluster/behind-node.ts'
import {
  A2AClient,
  ClientFactory,
  ClientFactoryOptions,
  RestTransportFactory,
  type Artifact03,
  type Message03,
  type SendParams03,
  type Task03
} from '../../fixtures/servers/sdk-03.ts'

/** What is compared of a task: its state as 0.3 has it, and its one picture. */
interface Seen {
  readonly id: string
  readonly contextId: string
  readonly state: string
  readonly artifactId?: string
  readonly name?: string | undefined
  readonly description?: string | undefined
  readonly bytes?: Uint8Array
}

/** Where a message belongs. */
interface Place {
  readonly contextId?: string
  readonly taskId?: string
  readonly referenceTaskIds?: string[]
}

/** A conversation by one client: gives the task of the answer. */
type Send = (text: string, place?: Place) => Promise<Seen>

let messages = 0

function params03(text: string, place: Place): SendParams03 {
  return {
    message: {
      kind: 'message',
      messageId: `m-${(messages += 1)}`,
      role: 'user',
      parts: [{ kind: 'text', text }],
      ...place
    }
  }
}

function pictureIn([artifact]: readonly Artifact03[] = []): Partial<Seen> {
  const [part] = artifact?.parts ?? []
  if (!artifact || part?.kind !== 'file' || !('bytes' in part.file)) return {}
  const { artifactId, name, description } = artifact
  return { artifactId, name, description, bytes: Buffer.from(part.file.bytes, 'base64') }
}

function seen03(answer: Message03 | Task03): Seen {
  if (answer.kind === 'message') throw new Error('A task was expected')
  return { id: answer.id, contextId: answer.contextId, state: answer.status.state, ...pictureIn(answer.artifacts) }
}

/** The client of 0.3 with the name that it has had since 0.1. */
async function byA2AClient(url: string): Promise<Send> {
  const client = await A2AClient.fromCardUrl(`${url}${AGENT_CARD_PATH}`)
  return async (text, place = {}) => {
    const answer = await client.sendMessage(params03(text, place))
    if ('error' in answer) throw new Error(answer.error.message)
    return seen03(answer.result)
  }
}

/** The client of 0.3 that chooses its transport by the card. */
async function byFactory03(url: string, transport?: 'HTTP+JSON'): Promise<Send> {
  const options =
    transport &&
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new RestTransportFactory()],
      preferredTransports: [transport]
    })
  const client = await new ClientFactory(options).createFromUrl(url)
  return async (text, place = {}) => {
    const { id } = seen03(await client.sendMessage(params03(text, place)))
    return seen03(await client.getTask({ id }))
  }
}

/** The same client, by streams: its task is what the events make of it. */
async function byStream03(url: string): Promise<Send> {
  const client = await new ClientFactory().createFromUrl(url)
  return async (text, place = {}) => {
    let task: Task03 | undefined
    for await (const event of client.sendMessageStream(params03(text, place))) {
      if (event.kind === 'task') task = event
      if (task && event.kind === 'status-update') task = { ...task, status: event.status }
      if (task && event.kind === 'artifact-update') task = { ...task, artifacts: [event.artifact] }
    }
    if (!task) throw new Error('A task was expected')
    return seen03(task)
  }
}

/** The client of 1.0. */
async function byFactory(url: string, transport: 'JSONRPC' | 'HTTP+JSON'): Promise<Send> {
  const client = await new CurrentFactory(
    CurrentOptions.createFrom(CurrentOptions.default, { preferredTransports: [transport] })
  ).createFromUrl(url)
  return async (text, place = {}) => {
    const message = CurrentMessage.fromJSON({
      messageId: `m-${(messages += 1)}`,
      role: 'ROLE_USER',
      parts: [{ text }],
      ...place
    })
    const answer = await client.sendMessage({ tenant: '', message, configuration: undefined, metadata: undefined })
    if (!('status' in answer)) throw new Error('A task was expected')
    return seenNow(answer)
  }
}

function seenNow({ id, contextId, status, artifacts: [artifact] }: CurrentTask): Seen {
  const state = taskStateToJSON(status?.state ?? TaskState.TASK_STATE_UNSPECIFIED)
    .replace('TASK_STATE_', '')
    .toLowerCase()
    .replace('_', '-')
  const content = artifact?.parts[0]?.content
  if (!artifact || content?.$case !== 'raw') return { id, contextId, state }
  const { artifactId, name, description } = artifact
  return { id, contextId, state, artifactId, name, description, bytes: content.value }
}

const CLIENTS: Readonly<Record<string, (url: string) => Promise<Send>>> = {
  'A2AClient.fromCardUrl of 0.3': byA2AClient,
  'ClientFactory.createFromUrl of 0.3': byFactory03,
  'ClientFactory.createFromUrl of 0.3, by REST': url => byFactory03(url, 'HTTP+JSON'),
  'ClientFactory.createFromUrl of 0.3, by streams': byStream03,
  'ClientFactory.createFromUrl of 1.0': url => byFactory(url, 'JSONRPC'),
  'ClientFactory.createFromUrl of 1.0, by REST': url => byFactory(url, 'HTTP+JSON')
}

/** Serves the sailboat agent in all versions, with a signed card. */
async function served(t: Test): Promise<string> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const runtime = createdRuntime({ agent: sailboat, signCard: cardSigner({ key: privateKey }) })
  t.teardown(() => runtime.close())
  const { url, close } = await serve(runtime, { port: 0, dialects: [dialect03(runtime), dialect01(runtime)] })
  t.teardown(close)
  return url.replace(/\/$/, '')
}

for (const [name, open] of Object.entries(CLIENTS)) {
  await t.test(`${name} finds the agent by its card and holds the sailboat conversation`, async t => {
    const send = await open(await served(t))
    const boat = await send('Generate an image of a sailboat on the ocean.')
    t.match(boat, { state: 'completed', name: 'sailboat_image.png' })
    t.match(decode(boat.bytes ?? new Uint8Array()), { width: 480, height: 360 })
    const { contextId } = boat
    const red = await send('Can you make the sailboat red?', { contextId, referenceTaskIds: [boat.id] })
    t.match(red, {
      state: 'completed',
      contextId,
      name: boat.name,
      description: 'A generated image of a red sailboat on the ocean.'
    })
    t.not(red.id, boat.id)
    t.not(red.artifactId, boat.artifactId)
    t.notOk(Buffer.from(red.bytes ?? []).equals(boat.bytes ?? Buffer.of()), 'another picture')
    const other = await send('another sailboat', { contextId })
    const asked = await send('make it blue', { contextId })
    t.equal(asked.state, 'input-required')
    const blue = await send(String(other.name), { contextId, taskId: asked.id })
    t.match(blue, {
      id: asked.id,
      state: 'completed',
      name: other.name,
      description: 'A generated image of a blue sailboat on the ocean.'
    })
  })
}

await t.test('the card tells clients of 0.3 and of 1.0 how to authenticate', async t => {
  const runtime = createdRuntime({ agent: sailboat, authenticate: apiKey({ keys: { ann: 'secret-of-16-chars' } }) })
  t.teardown(() => runtime.close())
  const { url, close } = await serve(runtime, { port: 0, dialects: [dialect03(runtime)] })
  t.teardown(close)
  const withKey: typeof fetch = (input, init) =>
    fetch(input, {
      ...init,
      headers: { ...Object.fromEntries(new Headers(init?.headers)), 'x-api-key': 'secret-of-16-chars' }
    })
  const client = await A2AClient.fromCardUrl(`${url}${AGENT_CARD_PATH.slice(1)}`, { fetchImpl: withKey })
  t.match(await client.getAgentCard(), {
    url,
    preferredTransport: 'JSONRPC',
    protocolVersion: '0.3.0',
    securitySchemes: { apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' } },
    security: [{ apiKey: [] }]
  })
  t.match(await client.sendMessage(params03('a sailboat', {})), {
    result: { kind: 'task', status: { state: 'completed' } }
  })
  const { agentCard } = (await new CurrentFactory().createFromUrl(url)) as unknown as { agentCard: object }
  t.match(agentCard, {
    securitySchemes: {
      apiKey: { scheme: { $case: 'apiKeySecurityScheme', value: { location: 'header', name: 'x-api-key' } } }
    }
  })
})
