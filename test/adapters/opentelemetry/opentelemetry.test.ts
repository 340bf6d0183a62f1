import { SendMessageRequest } from '@a2a-js/sdk'
import { A2AService, grpcService, UserBuilder } from '@a2a-js/sdk/server/grpc'
import * as grpc from '@grpc/grpc-js'
import { context, propagation, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { fromPromise as xstatePromise, sendTo } from 'xstate'
import { toRequestHandler, WebSocketTransportFactory } from '../../../adapters/a2a-sdk/index.ts'
import type { AgentClient } from '../../../adapters/client/agent-client.ts'
import { connect, type ConnectOptions } from '../../../adapters/client/connect.ts'
import { AgentGenerations } from '../../../adapters/client/generations.ts'
import { tracedCalls } from '../../../adapters/client/traced-calls.ts'
import { delegate, remoteAgent, type RemoteEvent } from '../../../adapters/delegation/index.ts'
import { openTelemetry } from '../../../adapters/opentelemetry/open-telemetry.ts'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import type { CallContext } from '../../../runtime/access/call-context.ts'
import { Turn } from '../../../runtime/commits/commit-pipeline.ts'
import { WorkSpans } from '../../../runtime/contexts/work-spans.ts'
import {
  A2AError,
  accepted,
  artifact,
  createRuntime,
  defineAgent,
  failed,
  fromPromise,
  inputRequired,
  progress,
  rejected,
  reply,
  setupWork,
  typed,
  type AgentDefinition,
  type WorkFunction
} from '../../../runtime/index.ts'
import { cuttingProxy } from '../../fixtures/network/cutting-proxy.ts'
import { ask, rpc, serveAll } from '../../fixtures/servers/http-agent.ts'
import { lastingStore, lives } from '../../fixtures/runtime/lives.ts'
import {
  collect,
  deferred,
  messageIn,
  next,
  open,
  reaches,
  recordingLogger,
  rejection,
  say,
  start,
  taskIn,
  textOf,
  until
} from '../../fixtures/runtime/runtime-helpers.ts'
import { httpAgent } from '../../fixtures/peers/scripted-http.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'
import { inSpan, registerTraces, spanNamed, treeOf } from '../../fixtures/peers/traces.ts'

// Made before anything is registered, as an app may.
const telemetry = openTelemetry()
const traces = registerTraces()

t.beforeEach(() => traces.reset())

const CARD = { name: 'Test', version: '7' }
const { version: VERSION } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

/** A traced agent in memory. */
const traced = (t: Test, definition: Omit<AgentDefinition, 'card'>) =>
  start(t, { card: CARD, ...definition }, { telemetry })

/** A traced agent that is served over WebSocket, JSON-RPC and REST. */
const served = (t: Test, work: WorkFunction, name = 'Test', options: { publicUrl?: string } = {}) =>
  serveAll(t, { card: { name, version: '7' }, work }, { telemetry, ...options })

/** A traced client of an agent; it is closed when the test ends. */
async function clientOf(t: Test, url: string, options: ConnectOptions = {}): Promise<AgentClient> {
  const client = await connect(url, { telemetry, ...options })
  t.teardown(() => client.close())
  return client
}

const BINDINGS = ['WEBSOCKET', 'JSONRPC', 'HTTP+JSON']

await t.test("one trace connects the client, the work, and another agent's work", async t => {
  for (const binding of BINDINGS) {
    await t.test(`over ${binding}`, async t => {
      const back = await served(t, () => inSpan('thinks', async () => ({ message: 'thought' })), 'Back')
      const front = await served(
        t,
        async ({ message, step }) => {
          await step('first', () => 1)
          return inSpan('asks Back', async () => {
            const other = await clientOf(t, back.url, { bindings: [binding] })
            const { status } = taskIn(await other.sendMessage(say(`on behalf of ${textOf(message)}`)))
            return { message: status.message?.parts ?? [] }
          })
        },
        'Front'
      )
      const client = await clientOf(t, front.url, { bindings: [binding] })
      t.match(await inSpan('test', () => client.sendMessage(say('ann'))), {
        task: { status: { message: { parts: [{ text: 'thought' }] } } }
      })
      const spans = await traces.ended()
      t.same(treeOf(spans), [
        'internal test',
        '  client invoke_agent Front',
        '    server SendMessage',
        '      internal invoke_agent Front',
        '        internal asks Back',
        '          client invoke_agent Back',
        '            server SendMessage',
        '              internal invoke_agent Back',
        '                internal thinks'
      ])
      t.equal(new Set(spans.map(span => span.spanContext().traceId)).size, 1)
      t.ok(
        spans
          .filter(({ instrumentationScope: { name } }) => name === 'taskchart')
          .every(({ instrumentationScope: { version } }) => version === VERSION),
        'the scope has the version of the package'
      )
      t.notMatch(
        JSON.stringify(spans.map(({ attributes, events, status }) => ({ attributes, events, status }))),
        /ann|thought/,
        'no message text is in them'
      )
    })
  }
})

await t.test("a delegation is in its work's trace, for functions and charts, also after a restart", async t => {
  for (const form of ['a function', 'a chart']) {
    const back = await served(
      t,
      async ({ ask }) => {
        await ask(inputRequired('Which?'))
        return inSpan('answers', async () => ({ artifact: 'done' }))
      },
      'Back'
    )
    const other = remoteAgent(back.url, { telemetry })
    const chart = setupWork({ types: { events: typed<RemoteEvent>() }, actors: { other } }).createMachine({
      invoke: { src: 'other', id: 'other', input: { message: 'please' }, onDone: '.done' },
      on: { 'remote.input-required': '.asking' },
      initial: 'waiting',
      states: {
        waiting: {},
        asking: {
          tags: 'input-required',
          on: {
            'message.received': {
              target: 'waiting',
              actions: sendTo('other', ({ event }) => ({ type: 'answer', message: event.message }))
            }
          }
        },
        done: { type: 'final' }
      }
    })
    const life = lives(
      t,
      { work: form === 'a chart' ? chart : async work => void (await delegate(work, other, work.message)) },
      { telemetry }
    )
    const { id } = await inSpan('test', () => open(life.runtime))
    await reaches(life.runtime, id, 'input-required')
    await life.restart()
    await life.runtime.sendMessage(say('this one', { taskId: id }, { returnImmediately: true }))
    await reaches(life.runtime, id, 'completed')
    const spans = await traces.ended()
    const traceOf = (name: string) => spans.filter(span => span.name === name).map(span => span.spanContext().traceId)
    const [wanted] = traceOf('test')
    for (const name of ['invoke_agent Back', 'answers']) {
      t.ok(traceOf(name).length > 0, `${name} of ${form}`)
      t.ok(
        traceOf(name).every(found => found === wanted),
        `${name} of ${form} is in the trace`
      )
    }
    traces.reset()
  }
})

await t.test('spans have the attributes of the semantic conventions', async t => {
  for (const binding of BINDINGS) {
    const { url } = await served(t, async ({ emit }) => {
      emit(progress('on it'))
      emit(artifact({ artifactId: 'a', parts: [{ text: '1' }] }))
      emit(artifact({ artifactId: 'a', parts: [{ text: '2' }] }, { append: true }))
      return {}
    })
    const client = await clientOf(t, url, { bindings: [binding] })
    const { id, contextId } = taskIn(await client.sendMessage(say('x', { messageId: 'm' })))
    await client.getTask({ id })
    const spans = await traces.ended()
    const task = { 'a2a.task.id': id, 'gen_ai.conversation.id': contextId, 'a2a.task.state': 'TASK_STATE_COMPLETED' }
    const call = { ...(binding !== 'HTTP+JSON' && { 'rpc.system.name': 'jsonrpc' }), 'a2a.binding': binding, ...task }
    const agent = {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.provider.name': 'a2a',
      'gen_ai.agent.name': 'Test'
    }
    const place = { 'server.address': '127.0.0.1', 'server.port': Number(new URL(url).port) }
    const sent = { 'rpc.method': 'SendMessage', 'messaging.message.id': 'm' }
    t.same(spanNamed(spans, 'invoke_agent Test', SpanKind.CLIENT).attributes, { ...agent, ...place, ...sent, ...call })
    t.same(spanNamed(spans, 'SendMessage').attributes, { ...sent, ...call })
    t.same(spanNamed(spans, 'GetTask', SpanKind.CLIENT).attributes, {
      ...place,
      'gen_ai.agent.name': 'Test',
      'rpc.method': 'GetTask',
      ...call
    })
    t.same(spanNamed(spans, 'GetTask', SpanKind.SERVER).attributes, { 'rpc.method': 'GetTask', ...call })
    const { attributes, events } = spanNamed(spans, 'invoke_agent Test', SpanKind.INTERNAL)
    t.same(attributes, { ...agent, 'gen_ai.agent.version': '7', ...task })
    t.same(
      events.map(({ name, attributes }) => [
        name,
        attributes?.['a2a.task.state'] ?? attributes?.['a2a.artifact.id'],
        attributes?.['taskchart.task.generation']
      ]),
      [
        ['a2a.task.status', 'TASK_STATE_WORKING', 3],
        ['a2a.task.status', 'TASK_STATE_WORKING', 4],
        ['a2a.task.artifact', 'a', 5],
        ['a2a.task.status', 'TASK_STATE_COMPLETED', 7]
      ]
    )
    traces.reset()
  }
})

await t.test('invalid values make no attribute', async t => {
  const { runtime } = traced(t, { work: () => ({}) })
  for (const params of [
    undefined,
    { message: 1 },
    { message: { contextId: 'x'.repeat(257), taskId: 5, messageId: '' } }
  ]) {
    await rejection(runtime.sendMessage(params as never))
    const { attributes } = spanNamed(await traces.ended(), 'SendMessage')
    t.same(attributes, { 'rpc.method': 'SendMessage', 'error.type': 'InvalidParams' })
    traces.reset()
  }
  await rejection(runtime.getTaskPushNotificationConfig({ taskId: 't', id: 'c' }))
  await runtime.listTasks({})
  const spans = await traces.ended()
  t.match(spanNamed(spans, 'GetTaskPushNotificationConfig').attributes, {
    'error.type': 'PushNotificationNotSupported'
  })
  t.same(spanNamed(spans, 'ListTasks').attributes, { 'rpc.method': 'ListTasks' })
})

await t.test('an error is recorded by its code, on both sides and over each binding', async t => {
  for (const binding of BINDINGS) {
    const { url } = await served(t, () => ({}))
    const client = await clientOf(t, url, { bindings: [binding] })
    await t.rejects(client.getTask({ id: 'nobody' }), { code: 'TaskNotFound' })
    await t.rejects(collect(client.subscribeToTask({ id: 'nobody' })), { code: 'TaskNotFound' })
    for (const { status, attributes, events } of await traces.ended()) {
      t.same(status, { code: SpanStatusCode.ERROR })
      t.equal(attributes['error.type'], 'TaskNotFound')
      t.equal(attributes['a2a.task.id'], 'nobody')
      t.equal(attributes['rpc.status_code'], binding === 'HTTP+JSON' ? undefined : '-32001')
      t.same(events, [])
    }
    t.equal((await traces.ended()).length, 5, 'the client reads the task once before it believes that there is none')
    traces.reset()
  }
})

await t.test('an unexpected error is recorded only by its class', async t => {
  const store = {
    ...(await import('../../../runtime/store/memory/memory-store.ts')).memoryStore(),
    readTask: () => Promise.reject(new RangeError('secret'))
  }
  const { runtime } = start(t, { work: () => ({}) }, { telemetry, store })
  await t.rejects(runtime.getTask({ id: 't' }), { code: 'InternalError' })
  t.equal(spanNamed(await traces.ended(), 'GetTask').attributes['error.type'], 'InternalError')
})

await t.test("a work's span records how it ended", async t => {
  class NoPaint extends Error {}
  const ends: readonly [WorkFunction, string, string | undefined][] = [
    [() => ({}), 'completed', undefined],
    [() => rejected('no'), 'rejected', undefined],
    [() => failed('secret'), 'failed', 'TASK_STATE_FAILED'],
    [() => Promise.reject(new NoPaint('secret')), 'failed', 'NoPaint'],
    [() => Promise.reject(new A2AError('Overloaded', 'secret')), 'failed', 'Overloaded'],
    // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- an author may throw anything
    [() => Promise.reject('secret'), 'failed', '_OTHER']
  ]
  for (const [work, state, errorType] of ends) {
    const { runtime } = traced(t, { work })
    t.match(await runtime.sendMessage(say('x')), { task: { status: { state: `TASK_STATE_${state.toUpperCase()}` } } })
    const { status, attributes } = spanNamed(await traces.ended(), 'invoke_agent Test')
    t.same(status, { code: errorType === undefined ? SpanStatusCode.UNSET : SpanStatusCode.ERROR }, state)
    t.equal(attributes['error.type'], errorType)
    t.equal(attributes['a2a.task.state'], `TASK_STATE_${state.toUpperCase()}`)
    traces.reset()
  }
})

await t.test('a canceled work ends without an error, and cleans up within its span', async t => {
  const works: NonNullable<AgentDefinition['work']>[] = [
    async function* ({ signal }) {
      try {
        yield progress('waiting')
        await once(signal, 'abort')
      } finally {
        await inSpan('cleans up', async () => {})
      }
    },
    async function* () {
      try {
        yield* inputRequired('Well?')
      } finally {
        await inSpan('cleans up', async () => {})
      }
    },
    async ({ signal }) => {
      await once(signal, 'abort')
      await inSpan('cleans up', async () => {})
    }
  ]
  for (const work of works) {
    const { runtime } = start(t, { card: CARD, work, cancelGraceMs: 5000 }, { telemetry })
    const { id } = await open(runtime)
    await until(async () => (await runtime.getTask({ id })).status.state !== 'TASK_STATE_SUBMITTED')
    await runtime.cancelTask({ id })
    const spans = await until(
      async () => (await traces.ended()).some(({ name }) => name === 'cleans up') && traces.ended()
    )
    const span = spanNamed(spans, 'invoke_agent Test')
    t.same(span.status, { code: SpanStatusCode.UNSET })
    t.equal(span.attributes['a2a.task.state'], 'TASK_STATE_CANCELED')
    t.equal(spanNamed(spans, 'cleans up').parentSpanContext?.spanId, span.spanContext().spanId)
    traces.reset()
  }
})

await t.test('a task that ends before its work starts has no work span', async t => {
  const { runtime } = traced(t, { negotiate: () => rejected('no'), work: () => ({}) })
  await runtime.sendMessage(say('x'))
  t.same(treeOf(await traces.ended()), ['server SendMessage', '  internal negotiate Test'])
})

await t.test('a negotiation has its own span, before the work', async t => {
  const { runtime } = traced(t, {
    negotiate: ({ message }) =>
      inSpan('thinks', async () => {
        if (textOf(message) === 'boom') throw new TypeError('secret')
        return textOf(message) === 'hello' ? reply('hi') : accepted()
      }),
    work: () => inSpan('works', async () => ({}))
  })
  messageIn(await runtime.sendMessage(say('hello')))
  taskIn(await runtime.sendMessage(say('go')))
  t.same(treeOf(await traces.ended()), [
    'server SendMessage',
    '  internal negotiate Test',
    '    internal thinks',
    'server SendMessage',
    '  internal negotiate Test',
    '    internal thinks',
    '  internal invoke_agent Test',
    '    internal works'
  ])
  traces.reset()
  await rejection(runtime.sendMessage(say('boom')))
  const { status, attributes } = spanNamed(await traces.ended(), 'negotiate Test')
  t.match({ status, attributes }, { status: { code: SpanStatusCode.ERROR }, attributes: { 'error.type': 'TypeError' } })
})

await t.test('a work continues within its span after an answer, and links the message', async t => {
  const { runtime } = traced(t, {
    work: async function* () {
      yield* inputRequired('1?')
      await inSpan('goes on', async () => {})
      yield* inputRequired('2?')
      await inSpan('goes on further', async () => {})
      return {}
    }
  })
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  await collect(runtime.sendStreamingMessage(say('y', { taskId: id })))
  await runtime.sendMessage(say('z', { taskId: id }))
  const spans = await traces.ended()
  t.same(treeOf(spans), [
    'server SendMessage',
    '  internal invoke_agent Test',
    '    internal goes on',
    '    internal goes on further',
    'server SendStreamingMessage',
    'server SendMessage'
  ])
  const answers = spans.filter(({ name }) => name.startsWith('Send')).slice(1)
  t.same(
    spanNamed(spans, 'invoke_agent Test').links.map(({ context }) => context.spanId),
    answers.map(span => span.spanContext().spanId)
  )
})

await t.test("a chart's promises, actions and callbacks run within the span of the work", async t => {
  const work = setupWork({
    actors: {
      think: fromPromise(async ({ step }) => step('s', () => inSpan('thinks', async () => 1))),
      plain: xstatePromise(() => inSpan('thinks plainly', async () => 1))
    },
    actions: { note: () => void inSpan('notes', async () => {}) }
  }).createMachine({
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', on: { 'message.received': 'thinking' } },
      thinking: { invoke: { src: 'think', onDone: { target: 'plain', actions: 'note' } } },
      plain: { invoke: { src: 'plain', onDone: 'done' } },
      done: { type: 'final' }
    }
  })
  const { runtime } = traced(t, { work })
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  await runtime.sendMessage(say('y', { taskId: id }))
  const spans = await traces.ended()
  t.same(
    treeOf(spans).toSorted(),
    [
      'server SendMessage',
      '  internal invoke_agent Test',
      '    internal thinks',
      '    internal thinks plainly',
      '    internal notes',
      'server SendMessage'
    ].toSorted()
  )
  const [, answer] = spans.filter(({ name }) => name === 'SendMessage')
  t.same(
    spanNamed(spans, 'invoke_agent Test').links.map(({ context }) => context.spanId),
    [answer?.spanContext().spanId]
  )
})

await t.test('work that crashes and restarts has a span for each run', async t => {
  let runs = 0
  const { runtime } = traced(t, {
    restart: { type: 'transient', intensity: 1, periodMs: 1000 },
    work: () => {
      runs += 1
      return inSpan(`run ${runs}`, async () => (runs === 1 ? Promise.reject(new TypeError('secret')) : {}))
    }
  })
  await runtime.sendMessage(say('x'))
  const spans = await traces.ended()
  t.same(treeOf(spans), [
    'server SendMessage',
    '  internal invoke_agent Test',
    '    internal run 1',
    '  internal invoke_agent Test',
    '    internal run 2'
  ])
  const [first, second] = spans.filter(({ name }) => name === 'invoke_agent Test')
  t.match(first, { status: { code: SpanStatusCode.ERROR }, attributes: { 'error.type': 'TypeError' } })
  t.match(second, { status: { code: SpanStatusCode.UNSET }, attributes: { 'taskchart.work.attempt': 2 } })
  t.notOk('error.type' in (second?.attributes ?? {}))
})

await t.test('a restarted work continues its trace, with baggage', { skip: NO_SQLITE }, async t => {
  const file = `${t.testdir()}/tasks.db`
  const chart = setupWork({
    actors: {
      think: fromPromise(({ signal }) => inSpan('thinks', async () => void (mayEnd || (await once(signal, 'abort')))))
    }
  }).createMachine({
    initial: 'thinking',
    states: { thinking: { invoke: { src: 'think', onDone: 'done' } }, done: { type: 'final' } }
  })
  let mayEnd = false
  let heard: string | undefined
  const works: Required<Pick<AgentDefinition, 'work'>>[] = [
    {
      work: async ({ signal }) => {
        await inSpan('thinks', async () => void (mayEnd || (await once(signal, 'abort'))))
        heard = propagation.getActiveBaggage()?.getEntry('who')?.value
        return {}
      }
    },
    { work: chart }
  ]
  for (const definition of works) {
    mayEnd = false
    const agent = defineAgent({ card: CARD, ...definition })
    const live = () => createRuntime({ agent, telemetry, logger: recordingLogger().logger, store: sqliteStore(file) })
    const first = live()
    const baggage = propagation.createBaggage({ who: { value: 'ann' } })
    const { id } = await inSpan('test', () =>
      context.with(propagation.setBaggage(context.active(), baggage), () => open(first))
    )
    await reaches(first, id, 'working')
    await first.close()
    mayEnd = true
    const second = live()
    t.teardown(() => second.close())
    await reaches(second, id, 'completed')
    const spans = (await traces.ended()).filter(({ name }) => name !== 'GetTask')
    t.same(treeOf(spans), [
      'internal test',
      '  server SendMessage',
      '    internal invoke_agent Test',
      '      internal thinks',
      '    internal invoke_agent Test',
      '      internal thinks'
    ])
    const [before, after] = spans.filter(({ name }) => name === 'invoke_agent Test')
    t.match(
      [before, after],
      [
        { status: { code: SpanStatusCode.UNSET }, attributes: { 'a2a.task.state': 'TASK_STATE_WORKING' } },
        { attributes: { 'a2a.task.state': 'TASK_STATE_COMPLETED', 'taskchart.work.recovered': true } }
      ]
    )
    t.notOk(before && 'taskchart.work.recovered' in before.attributes)
    await second.close()
    traces.reset()
  }
  t.equal(heard, 'ann')
})

await t.test('a task from before tracing starts a trace when it is restored', async t => {
  const definition = {
    work: async function* () {
      yield* inputRequired('Well?')
    }
  } satisfies Omit<AgentDefinition, 'card'>
  const { runtime, restart, store } = lives(t, definition)
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  await restart()
  const agent = defineAgent({ card: CARD, ...definition })
  const later = createRuntime({ agent, store, telemetry, logger: recordingLogger().logger })
  t.teardown(() => later.close())
  await later.sendMessage(say('y', { taskId: id }))
  t.same(treeOf(await traces.ended()).toSorted(), ['internal invoke_agent Test', 'server SendMessage'])
})

await t.test('a chart that only waited when its context left memory has no span', async t => {
  const work = setupWork({}).createMachine({
    initial: 'asking',
    states: { asking: { tags: 'input-required', on: { 'message.received': 'done' } }, done: { type: 'final' } }
  })
  const { runtime, restart } = lives(
    t,
    { work, negotiate: ({ message }) => (textOf(message) === 'go' ? accepted() : reply('hi')) },
    { telemetry }
  )
  const { contextId } = taskIn(await runtime.sendMessage(say('go')))
  const later = await restart()
  await traces.ended()
  traces.reset()
  messageIn(await later.sendMessage(say('hello', { contextId: String(contextId) })))
  await later.close()
  t.same(treeOf(await traces.ended()), ['server SendMessage', '  internal negotiate Test'])
})

await t.test('work that did not restart before its context left memory has no span', async t => {
  const agent = defineAgent({
    card: CARD,
    cancelGraceMs: 0,
    work: async ({ signal }) => void (await once(signal, 'abort'))
  })
  const store = lastingStore()
  const { logger } = recordingLogger()
  const first = createRuntime({ agent, store, logger })
  const { id } = await open(first)
  await reaches(first, id, 'working')
  await first.close()
  // The trace is read, and then what the work has kept: it waits for that.
  let reads = 0
  const second = createRuntime({
    agent,
    logger,
    telemetry,
    store: {
      ...store,
      readJournal: (scope, taskId) => ((reads += 1) === 2 ? new Promise(() => {}) : store.readJournal(scope, taskId))
    }
  })
  await until(() => reads === 2)
  await second.close()
  t.same(await traces.ended(), [])
})

await t.test('nothing is kept of an ended task', async t => {
  const spans = new WorkSpans(telemetry, defineAgent({ card: CARD, work: () => ({}) }), {
    tenant: '',
    principal: 'ann',
    contextId: 'c'
  })
  const turn = new Turn()
  let isWithin: boolean | undefined
  const look = { taskId: 't', run: () => void (isWithin = trace.getActiveSpan() !== undefined) }
  spans.open('t', {}, turn)
  spans.run(look)
  t.equal(isWithin, true)
  turn.log = [
    {
      taskId: 't',
      generation: 3,
      update: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_CANCELED' } } }
    }
  ]
  spans.addEvents(turn)
  spans.run(look)
  t.equal(isWithin, true, 'the rest of the turn runs within its span')
  for (const effect of turn.effects) spans.run(effect)
  spans.run(look)
  t.equal(isWithin, false)
  t.same(treeOf(await traces.ended()), ['internal invoke_agent Test'])
})

await t.test('invalid telemetry is refused at once', async t => {
  const agent = defineAgent({ card: CARD, work: () => ({}) })
  const wrong = new TypeError('telemetry has to be openTelemetry() of taskchart/opentelemetry, not a function.')
  t.throws(() => createRuntime({ agent, telemetry: openTelemetry as never }), wrong)
  await t.rejects(connect('ws://127.0.0.1:1/', { telemetry: openTelemetry as never }), wrong)
})

await t.test('streams', async t => {
  for (const binding of BINDINGS) {
    await t.test(`over ${binding}`, async t => {
      let go = deferred()
      const { url, runtime } = await served(t, async ({ emit }) => {
        emit(progress('on it'))
        await go.promise
        return {}
      })
      const client = await clientOf(t, url, { bindings: [binding] })

      await t.test('a stream without a reader has no span', async t => {
        await client.sendStreamingMessage(say('x')).return()
        t.equal(traces.open, 0)
      })

      await t.test('the spans of a stream end with it', async t => {
        const stream = client.sendStreamingMessage(say('x'))
        await next(stream)
        t.ok(traces.open >= 2)
        go.resolve()
        await collect(stream)
        const spans = await traces.ended()
        t.same(treeOf(spans), [
          'client invoke_agent Test',
          '  server SendStreamingMessage',
          '    internal invoke_agent Test'
        ])
        for (const { attributes } of spans)
          t.match(attributes, { 'a2a.task.state': 'TASK_STATE_COMPLETED', 'a2a.task.id': /./ })
        traces.reset()
      })

      await t.test('the spans of a stream end without an error when its reader leaves', async t => {
        go = deferred()
        const { id } = await open(runtime)
        await reaches(runtime, id, 'working')
        await until(() => traces.open === 1)
        traces.reset()
        const stream = client.subscribeToTask({ id })
        await next(stream)
        t.equal(traces.open, 3)
        await stream.return()
        await until(() => traces.open === 1)
        const stop = new AbortController()
        const stopped = client.subscribeToTask({ id }, { signal: stop.signal })
        await next(stopped)
        stop.abort()
        await t.rejects(collect(stopped), { name: 'AbortError' })
        await until(() => traces.open === 1)
        go.resolve()
        const spans = (await traces.ended()).filter(({ name }) => name === 'SubscribeToTask')
        t.equal(spans.length, 4)
        for (const { status } of spans) t.same(status, { code: SpanStatusCode.UNSET })
        traces.reset()
      })
    })
  }
})

await t.test('a resumed stream continues its trace', async t => {
  for (const binding of ['WEBSOCKET', 'JSONRPC']) {
    const go = deferred()
    let port = 0
    const proxy = await cuttingProxy(() => port)
    t.teardown(() => proxy.close())
    const through = `http://127.0.0.1:${proxy.port}/`
    const { url, runtime } = await served(
      t,
      async ({ emit }) => {
        emit(progress('on it'))
        await go.promise
        return {}
      },
      'Test',
      { publicUrl: through }
    )
    port = Number(new URL(url).port)
    const client = await clientOf(t, binding === 'WEBSOCKET' ? through.replace('http', 'ws') : through, {
      bindings: [binding],
      random: () => 0
    })
    const stream = client.sendStreamingMessage(say('x'))
    const first = taskIn(await next(stream))
    await reaches(runtime, first.id, 'working')
    proxy.cutAll()
    const rest = collect(stream)
    go.resolve()
    await rest
    const spans = await traces.ended()
    const call = spans.find(({ kind }) => kind === SpanKind.CLIENT)
    t.equal(spanNamed(spans, 'SubscribeToTask').parentSpanContext?.spanId, call?.spanContext().spanId)
    t.same(spanNamed(spans, 'SendStreamingMessage').status, { code: SpanStatusCode.UNSET })
    traces.reset()
  }
})

await t.test("a request's parent is read from its headers, and invalid ones are ignored", async t => {
  const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const OTHER = '00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01'
  const { url } = await served(t, () => ({}))
  const parentOf = async (headers: Record<string, string>) => {
    t.match((await rpc(url, 'ListTasks', {}, headers)).json, { result: { tasks: [] } })
    const { parentSpanContext } = spanNamed(await traces.ended(), 'ListTasks')
    traces.reset()
    return parentSpanContext
  }
  t.match(await parentOf({ traceparent: PARENT, tracestate: 'a=1' }), { spanId: 'b7ad6b7169203331', isRemote: true })
  t.match(await parentOf({ traceparent: `${PARENT}, ${OTHER}` }), { spanId: '00f067aa0ba902b7' }, 'the second of two')
  for (const traceparent of [
    '',
    'nonsense',
    '00-00000000000000000000000000000000-b7ad6b7169203331-01',
    `${PARENT}${' '.repeat(8192)}x`
  ]) {
    t.equal(await parentOf({ traceparent }), undefined, traceparent.slice(0, 60))
  }
  const state = await parentOf({ traceparent: PARENT, tracestate: `a=${'1'.repeat(8191)}` })
  t.match(state, { spanId: 'b7ad6b7169203331', traceState: undefined }, 'a too long value is ignored')
  await ask(`${url}tasks`, { headers: { traceparent: PARENT } })
  t.equal(spanNamed(await traces.ended(), 'ListTasks').parentSpanContext?.spanId, 'b7ad6b7169203331')
})

await t.test('the official servers and their client over WebSocket are traced too', async t => {
  const { runtime, url } = await served(t, () => ({}))
  const rpc = new grpc.Server()
  const port = await promisify(rpc.bindAsync.bind(rpc))('127.0.0.1:0', grpc.ServerCredentials.createInsecure())
  t.teardown(() => rpc.forceShutdown())
  const address = `127.0.0.1:${port}`
  const requestHandler = toRequestHandler(runtime, {
    interfaces: [{ url: address, protocolBinding: 'GRPC', protocolVersion: '1.0' }]
  })
  rpc.addService(A2AService, grpcService({ requestHandler, userBuilder: UserBuilder.noAuthentication }))
  const { url: cardUrl } = await httpAgent(t, { binding: 'GRPC', address })
  const client = await clientOf(t, cardUrl, { bindings: ['GRPC'] })
  await t.rejects(client.getTask({ id: 'nobody' }), { code: 'TaskNotFound' })
  const spans = await traces.ended()
  t.same(treeOf(spans), ['client GetTask', '  server GetTask'])
  t.match(spanNamed(spans, 'GetTask', SpanKind.CLIENT).attributes, {
    'rpc.system.name': 'grpc',
    'rpc.status_code': 'NOT_FOUND',
    'server.address': '127.0.0.1',
    'server.port': port
  })
  traces.reset()

  const transport = await new WebSocketTransportFactory({ telemetry }).create(url.replace('http', 'ws'))
  t.teardown(() => transport.close())
  await transport.sendMessage(SendMessageRequest.fromJSON(say('x')))
  await rejection(transport.listTaskPushNotificationConfig({ tenant: '', taskId: 't', pageSize: 0, pageToken: '' }))
  t.same(treeOf(await traces.ended()), [
    'client invoke_agent',
    '  server SendMessage',
    '    internal invoke_agent Test',
    'client ListTaskPushNotificationConfigs',
    '  server ListTaskPushNotificationConfigs'
  ])
})

await t.test('client spans record host, port and known methods only', async t => {
  const answers = {
    call: async () => undefined,
    stream: () => t.fail('nothing is streamed') as never,
    link: undefined as never,
    generations: new AgentGenerations(),
    isReliable: async () => false
  }
  for (const [url, address, port] of [
    ['wss://a.example/b', 'a.example', 443],
    ['http://a.example', 'a.example', 80],
    ['grpcs://a.example:5', 'a.example', 5],
    ['a.example:6', 'a.example', 6]
  ] as const) {
    await tracedCalls({ url, ...answers }, { binding: 'other' }, telemetry).call({
      method: 'Secret' as never,
      params: undefined
    })
    const { attributes } = spanNamed(await traces.ended(), '_OTHER')
    t.same(attributes, {
      'server.address': address,
      'server.port': port,
      'rpc.method': '_OTHER',
      'a2a.binding': 'other'
    })
    traces.reset()
  }
})

await t.test("an HTTP server's span of the same trace is the parent before the client's", async t => {
  const { runtime } = traced(t, { work: () => ({}) })
  const call = (trace: CallContext['trace']) => runtime.listTasks({}, { trace })
  await inSpan('client', async () => {
    const carrier: Record<string, string> = {}
    propagation.inject(context.active(), carrier)
    await inSpan('http', () => call(carrier))
  })
  await inSpan('another', () => call({ traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }))
  const spans = await traces.ended()
  t.same(treeOf(spans), [
    'internal client',
    '  internal http',
    '    server ListTasks',
    'internal another',
    'server ListTasks'
  ])
})

await t.test('errors of the tracer do not affect the traced calls', async t => {
  const broken = () => {
    throw new Error('no disk')
  }
  trace.disable()
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({
      spanProcessors: [{ onStart: broken, onEnd: broken, forceFlush: async () => {}, shutdown: async () => {} }]
    })
  )
  const { runtime } = start(t, { work: () => ({}) }, { telemetry: openTelemetry() })
  t.match(await runtime.sendMessage(say('x')), { task: { status: { state: 'TASK_STATE_COMPLETED' } } })
})
