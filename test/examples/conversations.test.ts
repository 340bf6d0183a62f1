import { decode } from 'fast-png'
import t, { type Test } from 'tap'
import { delegate, remoteAgent } from '../../adapters/delegation/index.ts'
import { dialect01, dialect03 } from '../../adapters/legacy/index.ts'
import { serve } from '../../adapters/serve/serve.ts'
import helsinki from '../../examples/helsinki.ts'
import tailor from '../../examples/mcp.ts'
import baker from '../../examples/reject.ts'
import sailboat from '../../examples/sailboat.ts'
import { TASK_OF_01 } from '../../adapters/legacy/v01-answers.ts'
import {
  accepted,
  createRuntime,
  defineAgent,
  inputRequired,
  progress,
  rejected,
  reply,
  textOf,
  type Agent,
  type Runtime
} from '../../runtime/index.ts'
import { ask } from '../fixtures/servers/http-agent.ts'
import { until } from '../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket } from '../fixtures/servers/served-agent.ts'
import { TestClock } from '../fixtures/runtime/test-clock.ts'

/** How a dialect writes a message, and where in its answers things are. */
interface Spoken {
  readonly version: string
  readonly method: string
  readonly part: (text: string, metadata?: object) => object
  /**
   * What the method takes: a message with these parts, and what it says of where it belongs; `isAsync`: nobody waits
   * for the task.
   */
  readonly params: (id: string, parts: object[], more: More) => object
  /** The task in a result. */
  readonly taskIn: (result: Json) => Json
  /** What of a task is of its newest round. */
  readonly newest?: (task: Json) => Json
  readonly completed: string
  /** The ids of a task and of an artifact of it by which a part may refer to them. */
  readonly taskIdOf: (task: Json) => string
  readonly artifactIdOf: (artifact: Json) => string
  /** The file of a part: its bytes as base64, and its media type. */
  readonly fileIn: (part: Json) => { readonly bytes: unknown; readonly type: unknown }
}

// oxlint-disable-next-line typescript/no-explicit-any -- answers of three dialects are looked at member by member
type Json = any

/** Where a message belongs. */
interface More {
  readonly contextId?: string
  readonly taskId?: string
  readonly referenceTaskIds?: readonly string[]
  readonly isAsync?: boolean
}

const now: Spoken = {
  version: '1.0',
  method: 'SendMessage',
  completed: 'TASK_STATE_COMPLETED',
  params: (id, parts, { isAsync, ...more }) => ({
    message: { role: 'ROLE_USER', parts, messageId: `msg-${id}`, ...more },
    configuration: { returnImmediately: isAsync ?? false }
  }),
  part: (text, metadata) => ({ text, ...(metadata && { metadata }) }),
  taskIn: result => result.task,
  taskIdOf: ({ id }) => id,
  artifactIdOf: ({ artifactId }) => artifactId,
  fileIn: part => ({ bytes: part.raw, type: part.mediaType })
}

const old: Spoken = {
  ...now,
  version: '',
  method: 'message/send',
  completed: 'completed',
  params: (id, parts, { isAsync, ...more }) => ({
    message: { role: 'user', parts, messageId: `msg-${id}`, ...more },
    configuration: { blocking: !isAsync }
  }),
  part: (text, metadata) => ({ kind: 'text', text, ...(metadata && { metadata }) }),
  taskIn: result => (result.kind === 'task' ? result : undefined),
  fileIn: part => ({ bytes: part.file.bytes, type: part.file.mimeType })
}

/** The drafts after 0.3: without `kind`, and with other names in files. */
const bare: Spoken = {
  ...old,
  method: 'message.send',
  part: now.part,
  taskIn: result => (JSON.stringify(result).includes('"kind"') ? undefined : result),
  fileIn: part => ({ bytes: part.file.fileWithBytes, type: part.file.mediaType })
}

/**
 * In 0.1 a task has the id that its client gives it, and refinements are said under that of the task that has ended.
 */
const first: Spoken = {
  version: '',
  method: 'tasks/send',
  completed: 'completed',
  params: (id, parts, { contextId, taskId = id }) => ({
    id: taskId,
    ...(contextId && { sessionId: contextId }),
    message: { role: 'user', parts }
  }),
  part: (text, metadata) => ({ type: 'text', text, ...(metadata && { metadata }) }),
  taskIn: ({ sessionId, ...task }) => ({ ...task, contextId: sessionId }),
  newest: ({ artifacts, history, ...task }) => ({
    ...task,
    artifacts: artifacts.slice(-1),
    history: history.slice(-2)
  }),
  taskIdOf: ({ metadata }) => metadata[TASK_OF_01].taskId,
  artifactIdOf: ({ metadata }) => metadata[TASK_OF_01].artifactId,
  fileIn: part => ({ bytes: part.file.bytes, type: part.file.mimeType })
}

const dialects: Record<string, Spoken> = {
  '1.0': now,
  '0.3': old,
  '0.3 with the dotted method of its guide': { ...old, method: 'message.send' },
  'the drafts between, whose parts had no kind': bare,
  '0.1': first
}

type Call = (id: string, method: string, params: object) => Promise<Json>

/** The bindings by which each dialect is spoken: each makes a call of a version. */
const bindings = {
  'JSON-RPC over HTTP':
    async (_: Test, url: string, version: string): Promise<Call> =>
    async (id, method, params) =>
      (
        await ask(url, {
          body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
          headers: { 'a2a-version': version }
        })
      ).json,
  WebSocket: async (t: Test, url: string, version: string): Promise<Call> => {
    const socket = await JsonSocket.open(t, url.replace('http', 'ws'), {
      headers: version === '' ? {} : { 'a2a-version': version }
    })
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

/** What is alike in the tasks of all dialects: their words, and their pictures. */
function seenOf({ status, history, artifacts }: Json, { fileIn }: Spoken): object {
  const said = ({ role, parts }: Json) => [role.replace('ROLE_', '').toLowerCase(), parts.map(({ text }: Json) => text)]
  return {
    state: status.state.replace('TASK_STATE_', '').toLowerCase(),
    history: history.map(said),
    artifacts: artifacts.map(({ name, description, parts }: Json) => ({
      name,
      description,
      files: parts.map(fileIn),
      names: parts.map(({ filename, file }: Json) => filename ?? file.name)
    }))
  }
}

/** Speaks a dialect by a call: gives the result, or the whole response where it is an error. */
function speaker({ method, part, params, taskIn }: Spoken, call: Call) {
  return async (id: string, words: string, more: More = {}, metadata?: object): Promise<Json> => {
    const { jsonrpc, id: answered, result, error } = await call(id, method, params(id, [part(words, metadata)], more))
    if (jsonrpc !== '2.0' || answered !== id) throw new Error('An answer was expected')
    return error ? { error } : taskIn(result)
  }
}

/** Has a boat drawn, made red and made blue; gives what there is to see of the tasks. */
async function conversation(t: Test, dialect: Spoken, call: Call): Promise<object[]> {
  const { taskIdOf, artifactIdOf } = dialect
  const send = speaker(dialect, call)

  const boat = await send('req-001', 'Generate an image of a sailboat on the ocean.')
  const drawn = pictureOf(t, boat, dialect)
  t.equal(drawn.name, 'sailboat_image.png')

  const { contextId } = boat
  const isNamed = dialect === first
  const red = await send('req-002', "That's great! Can you make the sailboat red?", {
    contextId,
    ...(isNamed ? { taskId: boat.id } : { referenceTaskIds: [boat.id] })
  })
  const { newest = (task: Json) => task } = dialect
  if (isNamed)
    t.strictSame(
      [red.artifacts.slice(0, 1), red.history.slice(0, 2)],
      [boat.artifacts, boat.history],
      'earlier content is kept'
    )
  const coloured = pictureOf(t, newest(red), dialect)
  t.equal(red.contextId, contextId)
  t.not(taskIdOf(red), taskIdOf(boat), 'a new task')
  if (isNamed)
    t.match(
      red,
      { id: boat.id, metadata: { [TASK_OF_01]: { follows: taskIdOf(boat) } } },
      'of the same id, and it says so'
    )
  t.equal(coloured.name, drawn.name, 'the same name')
  t.not(artifactIdOf(coloured), artifactIdOf(drawn), 'a new artifact')
  t.equal(coloured.description, 'A generated image of a red sailboat on the ocean.')

  const reference = { artifactId: artifactIdOf(drawn), taskId: taskIdOf(boat) }
  const named: Json[] = []
  for (const [i, metadata] of [{ referenceArtifacts: [reference] }, reference].entries()) {
    named.push(await send(`req-003-${i}`, 'Please modify the sailboat to be blue.', { contextId }, metadata))
    t.equal(pictureOf(t, named.at(-1), dialect).name, drawn.name, 'an artifact that a part names')
  }
  if (!isNamed)
    t.match(
      await send('req-004', 'And green?', { contextId, taskId: boat.id }),
      { error: { code: -32004 } },
      'an ended task accepts no message'
    )
  return [boat, newest(red), ...named].map(task => seenOf(task, dialect))
}

/** Serves an agent in all versions. */
async function served(t: Test, agent: Agent): Promise<{ url: string; runtime: Runtime; clock: TestClock }> {
  const clock = new TestClock()
  const runtime = createRuntime({ agent, clock })
  t.teardown(() => runtime.close())
  const { url, close } = await serve(runtime, { port: 0, dialects: [dialect03(runtime), dialect01(runtime)] })
  t.teardown(close)
  return { url, runtime, clock }
}

const seen: object[][] = []

for (const [name, dialect] of Object.entries(dialects)) {
  for (const [binding, open] of Object.entries(bindings)) {
    await t.test(`a sailboat is drawn, and made red by a new task, in ${name} by ${binding}`, async t => {
      const { url } = await served(t, sailboat)
      seen.push(await conversation(t, dialect, await open(t, url, dialect.version)))
    })
  }

  await t.test(`the task asks which of two pictures, and the client names one, in ${name}`, async t => {
    const { url } = await served(t, sailboat)
    const send = speaker(dialect, await bindings.WebSocket(t, url, dialect.version))
    const boat = await send('one', 'a sailboat')
    const { contextId } = boat
    const other = await send('two', 'another sailboat', { contextId })
    const asked = await send('three', 'make it red', { contextId })
    t.match(asked.status.state, /input.required/i)
    const [artifact] = boat.artifacts
    const done = await send(
      'three',
      'that one',
      { contextId, taskId: asked.id },
      { artifactId: dialect.artifactIdOf(artifact), taskId: dialect.taskIdOf(boat) }
    )
    t.equal(dialect.taskIdOf(done), dialect.taskIdOf(asked))
    t.equal(pictureOf(t, done, dialect).name, artifact.name)
    t.not(artifact.name, other.artifacts[0].name)
  })

  await t.test(`the spa in Helsinki is booked before the snowmobile, in ${name}`, async t => {
    const { url, runtime, clock } = await served(t, helsinki)
    const send = speaker(dialect, await bindings.WebSocket(t, url, dialect.version))
    /** Books something and waits until that is under way. A message of 0.1 refers to no task. */
    const contextId = 'trip'
    const book = async (what: string, words: string, basis: readonly string[]): Promise<string> => {
      void send(what, words, { contextId, isAsync: true, ...(dialect !== first && { referenceTaskIds: basis }) })
      const task = await until(
        async () =>
          (await runtime.listTasks({ contextId })).tasks.find(
            ({ status, history }) => status.message !== undefined && history?.some(said => textOf(said) === words)
          ),
        `${what} books`
      )
      return task.id
    }
    const isDone = (id: string) =>
      until(async () => (await runtime.getTask({ id })).status.state === 'TASK_STATE_COMPLETED', `${id} is done`)
    const flight = await book('flight', 'Book a flight to Helsinki.', [])
    clock.increment(1000)
    await isDone(flight)
    const hotel = await book('hotel', 'Based on Task 1, book a hotel.', [flight])
    const snowmobile = await book('snowmobile', 'Based on Task 1, book a snowmobile activity.', [flight])
    clock.increment(1000)
    await isDone(hotel)
    const spa = await book('spa', 'Based on Task 2, add a spa reservation to the hotel booking.', [hotel])
    clock.increment(1000)
    await isDone(spa)
    t.equal((await runtime.getTask({ id: snowmobile })).status.state, 'TASK_STATE_WORKING')
    t.equal(new Set([flight, hotel, snowmobile, spa]).size, 4)
    clock.increment(3000)
    await isDone(snowmobile)
  })
}

await t.test('the conversation gives equal tasks in all dialects and by both bindings', async t => {
  t.equal(seen.length, Object.keys(dialects).length * Object.keys(bindings).length)
  for (const other of seen.slice(1)) t.strictSame(other, seen[0])
})

await t.test('a task of 0.1 completes, waits, is rejected, negotiated, asked about or delegated', async t => {
  const { url: elsewhere } = await served(
    t,
    defineAgent({
      card: { name: 'Other' },
      work: async ({ message }) => ({ artifact: `${textOf(message)}, by another` })
    })
  )
  const agent = defineAgent({
    card: { name: 'Seed' },
    negotiate: ({ message }) =>
      textOf(message) === 'how much?'
        ? reply('One euro.')
        : textOf(message) === 'the moon'
          ? rejected('Too far.')
          : accepted(),
    work: async work => {
      const { message, ask, sleep, emit } = work
      const wish = textOf(message)
      if (wish === 'later') await sleep(60_000)
      if (wish === 'a rabbit') return { artifact: `a ${textOf(await ask(inputRequired('Which colour?')))} rabbit` }
      if (wish === 'hand on')
        return {
          message: `${(await delegate(work, remoteAgent(elsewhere), 'a cat')).artifacts.map(textOf).join(' ')}.`
        }
      emit(progress('drawing'))
      return { artifact: wish }
    }
  })
  const { url, clock } = await served(t, agent)
  const call = await bindings['JSON-RPC over HTTP'](t, url, '')
  const send = speaker(first, call)
  const text = ({ artifacts }: Json) => artifacts?.[0].parts[0].text
  const now = await send('now', 'a cat')
  t.strictSame(
    [now.status.state, text(now), now.history.length],
    ['completed', 'a cat', 2],
    'at once, with the message'
  )
  const later = send('later', 'later')
  const told = await until(async () =>
    (await call('get', 'tasks/get', { id: 'later' })).result?.status.state === 'working' ? true : undefined
  )
  t.ok(told)
  clock.increment(60_000)
  t.equal((await later).status.state, 'completed')
  t.match((await send('moon', 'the moon')).status, { state: 'failed', message: { parts: [{ text: 'Too far.' }] } })
  t.match((await send('talk', 'how much?')).status, {
    state: 'input-required',
    message: { parts: [{ text: 'One euro.' }] }
  })
  t.equal((await send('rabbit', 'a rabbit')).status.state, 'input-required')
  t.equal(text(await send('rabbit', 'red')), 'a red rabbit')
  t.match(await send('on', 'hand on'), {
    status: { state: 'completed', message: { parts: [{ text: 'a cat, by another.' }] } }
  })
})

await t.test('the tailor sews the shirt that its client chooses, and the baker bakes no bread', async t => {
  const clock = new TestClock()
  const tailoring = createRuntime({ agent: tailor, clock })
  const baking = createRuntime({ agent: baker })
  t.teardown(() => Promise.all([tailoring.close(), baking.close()]))
  const message = (parts: object[], more: More = {}) => ({
    message: { messageId: String(Math.random()), role: 'ROLE_USER', parts, ...more } as never
  })
  const asked: Json = await tailoring.sendMessage(message([{ text: 'a shirt' }]))
  const { id } = asked.task
  await tailoring.sendMessage({
    ...message([{ data: { size: 'large' } }], { taskId: id }),
    configuration: { returnImmediately: true }
  })
  clock.increment(500)
  await until(async () => (await tailoring.getTask({ id })).status.state === 'TASK_STATE_COMPLETED')
  t.match(await tailoring.getTask({ id }), { artifacts: [{ parts: [{ text: 'A large white shirt.' }] }] })
  t.match(await baking.sendMessage(message([{ text: 'a bread' }])), {
    task: { status: { state: 'TASK_STATE_REJECTED' } }
  })
})
