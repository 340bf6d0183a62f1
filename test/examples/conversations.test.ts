import { decode } from 'fast-png'
import t, { type Test } from 'tap'
import { serve } from '../../adapters/http/serve.ts'
import { dialect03 } from '../../adapters/legacy/index.ts'
import sailboat from '../../examples/sailboat.ts'
import { createRuntime } from '../../runtime/index.ts'
import { ask } from '../fixtures/http-agent.ts'
import { JsonSocket } from '../fixtures/served-agent.ts'

/** How a dialect writes a message, and where in its answers things are. */
interface Spoken {
  readonly version: string
  readonly method: string
  readonly part: (text: string, metadata?: object) => object
  readonly role: string
  /** The task in a result. */
  readonly taskIn: (result: Json) => Json
  readonly completed: string
  /** The file of a part: its bytes as base64, and its media type. */
  readonly fileIn: (part: Json) => { readonly bytes: unknown; readonly type: unknown }
}

// oxlint-disable-next-line typescript/no-explicit-any -- answers of three dialects are looked at member by member
type Json = any

const now: Spoken = {
  version: '1.0', method: 'SendMessage', role: 'ROLE_USER', completed: 'TASK_STATE_COMPLETED',
  part: (text, metadata) => ({ text, ...(metadata && { metadata }) }),
  taskIn: result => result.task,
  fileIn: part => ({ bytes: part.raw, type: part.mediaType })
}

const old: Spoken = {
  version: '', method: 'message/send', role: 'user', completed: 'completed',
  part: (text, metadata) => ({ kind: 'text', text, ...(metadata && { metadata }) }),
  taskIn: result => (result.kind === 'task' ? result : undefined),
  fileIn: part => ({ bytes: part.file.bytes, type: part.file.mimeType })
}

const dialects: Record<string, Spoken> = {
  '1.0': now,
  '0.3': old,
  '0.3 with the dotted method of its guide': { ...old, method: 'message.send' },
  'the drafts between, whose parts had no kind': { ...old, method: 'message.send', part: now.part }
}

type Call = (id: string, method: string, params: object) => Promise<Json>

/** The bindings by which each dialect is spoken: each makes a call of a version. */
const bindings: Record<string, (t: Test, url: string, version: string) => Promise<Call>> = {
  'JSON-RPC over HTTP': async (_, url, version) => async (id, method, params) =>
    (await ask(url, { body: JSON.stringify({ jsonrpc: '2.0', id, method, params }), headers: { 'a2a-version': version } })).json,
  WebSocket: async (t, url, version) => {
    const socket = await JsonSocket.open(t, url.replace('http', 'ws'), { headers: { 'a2a-version': version === '' ? '0.3' : version } })
    return (id, method, params) => {
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
      return socket.next(id)
    }
  }
}

/** The picture of a completed task. */
function pictureOf(t: Test, task: Json, { completed, fileIn }: Spoken): Json {
  t.equal(task.status.state, completed)
  t.equal(task.artifacts.length, 1)
  const [artifact] = task.artifacts
  const { bytes, type } = fileIn(artifact.parts[0])
  t.equal(type, 'image/png')
  t.match(decode(Buffer.from(String(bytes), 'base64')), { width: 480, height: 360 })
  return artifact
}

async function conversation(t: Test, dialect: Spoken, call: Call): Promise<void> {
  const { method, role, part, taskIn } = dialect
  const send = (id: string, words: string, more: object = {}, metadata?: object) =>
    call(id, method, { message: { role, parts: [part(words, metadata)], messageId: `msg-${id}`, ...more } })

  const drawn = await send('req-001', 'Generate an image of a sailboat on the ocean.')
  t.match(drawn, { jsonrpc: '2.0', id: 'req-001' })
  const boat = taskIn(drawn.result)
  const first = pictureOf(t, boat, dialect)
  t.equal(first.name, 'sailboat_image.png')

  const { contextId } = boat
  const coloured = await send('req-002', "That's great! Can you make the sailboat red?", { contextId, referenceTaskIds: [boat.id] })
  const red = taskIn(coloured.result)
  const second = pictureOf(t, red, dialect)
  t.equal(red.contextId, contextId)
  t.not(red.id, boat.id, 'a new task')
  t.equal(second.name, first.name, 'the same name')
  t.not(second.artifactId, first.artifactId, 'a new artifact')
  t.equal(second.description, 'A generated image of a red sailboat on the ocean.')

  const { artifactId } = first
  for (const [i, metadata] of [{ referenceArtifacts: [{ artifactId, taskId: boat.id }] }, { artifactId, taskId: boat.id }].entries()) {
    const named = taskIn((await send(`req-003-${i}`, 'Please modify the sailboat to be blue.', { contextId }, metadata)).result)
    t.equal(pictureOf(t, named, dialect).name, first.name, 'an artifact that a part names')
  }
  t.match(await send('req-004', 'And green?', { contextId, taskId: boat.id }), { error: { code: -32004 } }, 'a task that has ended takes no message')
}

for (const [name, dialect] of Object.entries(dialects)) {
  for (const [binding, open] of Object.entries(bindings)) {
    await t.test(`a sailboat is drawn, and made red by a new task, in ${name} by ${binding}`, async t => {
      const runtime = createRuntime({ agent: sailboat })
      t.teardown(() => runtime.close())
      const served = await serve(runtime, { port: 0, dialects: [dialect03(runtime)] })
      t.teardown(() => served.close())
      await conversation(t, dialect, await open(t, served.url, dialect.version))
    })
  }
}
