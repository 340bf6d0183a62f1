import t, { type Test } from 'tap'
import { emit, fromCallback } from 'xstate'
import type { AgentClient } from '../../../../adapters/client/agent-client.ts'
import { connect, type ConnectOptions } from '../../../../adapters/client/connect.ts'
import { serve } from '../../../../adapters/serve/serve.ts'
import { progress, setupWork, text, type AgentDefinition, type StreamResponse } from '../../../../runtime/index.ts'
import { cuttingProxy, type CuttingProxy } from '../../../fixtures/network/cutting-proxy.ts'
import {
  collect,
  deferred,
  generationOf,
  open,
  reaches,
  rejection,
  say,
  start,
  taskIn,
  until,
  type Started
} from '../../../fixtures/runtime/runtime-helpers.ts'
import { IS_DEEP, IS_WHOLE } from '../../../fixtures/sample.ts'

const EVENTS = 2000
/** How often a connection is cut under one stream. */
const CUTS = IS_WHOLE ? 100 : IS_DEEP ? 30 : 10

/** Says as many things as it can, one each turn of the loop. */
const talker = setupWork({
  types: { events: {} as { type: 'tick'; count: number } | { type: 'over' } },
  actors: {
    ticker: fromCallback(({ sendBack }) => {
      let count = 0
      let next = setImmediate(function tick() {
        count += 1
        sendBack(count <= EVENTS ? { type: 'tick', count } : { type: 'over' })
        next = setImmediate(tick)
      })
      return () => clearImmediate(next)
    })
  }
}).createMachine({
  initial: 'talking',
  states: {
    talking: {
      invoke: { src: 'ticker' },
      on: { tick: { actions: emit(({ event }) => progress(`number ${event.count}`)) }, over: 'done' }
    },
    done: { type: 'final' }
  },
  output: () => ({ artifact: text('all said') })
})

interface Remote extends Started {
  readonly client: AgentClient
  readonly proxy: CuttingProxy
}

/** An agent behind a proxy that cuts, and a client that goes through it and loses no time. */
async function far(
  t: Test,
  definition: Partial<AgentDefinition>,
  cutting = {},
  options: ConnectOptions = {}
): Promise<Remote> {
  const started = start(t, definition)
  const served = await serve(started.runtime, { port: 0, http: false })
  t.teardown(() => served.close())
  const proxy = await cuttingProxy(Number(new URL(served.url).port), cutting)
  t.teardown(() => proxy.close())
  const client = await firstConnection(`ws://127.0.0.1:${proxy.port}/`, { random: () => 0, ...options })
  t.teardown(() => client.close())
  return { ...started, client, proxy }
}

/** The first connection is not tried again by the client: that is for whoever connects. */
async function firstConnection(url: string, options: ConnectOptions): Promise<AgentClient> {
  for (;;) {
    const client = await connect(url, options).catch(() => undefined)
    if (client) return client
  }
}

await t.test(
  'a stream that is disconnected again and again at random bytes delivers each event once and in order',
  async t => {
    const { client, proxy } = await far(t, { work: talker }, { cuts: CUTS, most: 8000, seed: 7 })
    const events = await collect(client.sendStreamingMessage(say('talk')))
    const taskId = taskIn(events[0]).id
    const stored: StreamResponse[] = await collect(client.subscribeToTask({ id: taskId }, { afterGeneration: 0 }))
    t.ok(proxy.cuts >= CUTS, `cut ${proxy.cuts} times`)
    t.same(
      events.map(generationOf),
      Array.from({ length: EVENTS + 4 }, (_, i) => i + 2)
    )
    t.same(events.slice(1), stored.slice(1))
  }
)

await t.test('calls of a lost connection', async t => {
  await t.test('are resent, and a message is processed once', async t => {
    const gate = deferred()
    let runs = 0
    const work = async () => {
      runs += 1
      await gate.promise
      return { artifact: text('done') }
    }
    const { client, proxy, runtime } = await far(t, { work })
    const states: string[] = []
    for (const state of ['connecting', 'open', 'lost', 'closed'] as const) client.on(state, () => states.push(state))
    const answer = client.sendMessage(say('go'))
    await until(() => runs === 1)
    for (let cut = 1; cut <= 3; cut += 1) {
      const opened = new Promise<void>(resolve => client.on('open', resolve))
      proxy.cutAll()
      await opened
    }
    gate.resolve()
    t.equal(taskIn(await answer).status.state, 'TASK_STATE_COMPLETED')
    t.equal(runs, 1)
    t.same(states, Array.from({ length: 3 }, () => ['lost', 'connecting', 'open']).flat())
    const task = await open(runtime, 'another')
    t.equal((await client.getTask({ id: task.id })).id, task.id)
  })

  await t.test('that start without a connection wait for the next one', async t => {
    const { client, proxy } = await far(t, { negotiate: ({ message }) => ({ type: 'reply', message: message.parts }) })
    const answers: Promise<unknown>[] = []
    client.on('lost', () =>
      answers.push(client.sendMessage(say('hello')), collect(client.sendStreamingMessage(say('hi'))))
    )
    proxy.cutAll()
    await until(() => answers.length > 0)
    const [answer, streamed] = await Promise.all(answers)
    t.match(answer, { message: { parts: [{ text: 'hello' }] } })
    t.match(streamed, [{ message: { parts: [{ text: 'hi' }] } }])
  })

  await t.test('and a stream that was left meanwhile do not restart it', async t => {
    const { client, proxy, runtime } = await far(t, { work: () => new Promise(() => {}) })
    const task = await open(runtime)
    const stop = new AbortController()
    const stream = client.subscribeToTask({ id: task.id }, { signal: stop.signal })
    await stream.next()
    const opened = new Promise<void>(resolve => client.on('open', resolve))
    proxy.cutAll()
    await until(() => client.state !== 'open')
    stop.abort(new TypeError('enough'))
    t.equal((await rejection(stream.next())).message, 'enough')
    await opened
    t.equal((await client.getTask({ id: task.id })).status.state, 'TASK_STATE_WORKING')
  })
})

await t.test('a stream resumes after a lost connection', async t => {
  const asking = setupWork({}).createMachine({
    initial: 'asking',
    states: {
      asking: { tags: 'input-required', meta: { prompt: 'Well?' }, on: { 'message.received': 'done' } },
      done: { type: 'final' }
    }
  })

  await t.test('as a subscription with its cursor, until its task ends', async t => {
    const { client, proxy, runtime } = await far(t, { work: asking })
    const task = await open(runtime)
    await reaches(runtime, task.id, 'input-required')
    const stream = client.subscribeToTask({ id: task.id })
    t.equal(
      generationOf((await stream.next()).value ?? { message: { messageId: '', role: 'ROLE_USER', parts: [] } }),
      4
    )
    const opened = new Promise<void>(resolve => client.on('open', resolve))
    proxy.cutAll()
    await runtime.sendMessage(say('done', { taskId: task.id }))
    await opened
    t.same((await collect(stream)).map(generationOf), [6, 7])
  })

  await t.test('and ends at a question, as the reply', async t => {
    const gate = deferred()
    const { client, proxy } = await far(t, {
      work: setupWork({
        types: { events: {} as { type: 'go' } },
        actors: { wait: fromCallback(({ sendBack }) => void gate.promise.then(() => sendBack({ type: 'go' }))) }
      }).createMachine({
        initial: 'waiting',
        states: {
          waiting: { invoke: { src: 'wait' }, on: { go: 'asking' } },
          asking: { tags: 'input-required', meta: { prompt: 'Well?' }, on: { 'message.received': {} } }
        }
      })
    })
    const stream = client.sendStreamingMessage(say('go'))
    const states = [taskIn((await stream.next()).value ?? undefined).status.state]
    await stream.next()
    const opened = new Promise<void>(resolve => client.on('open', resolve))
    proxy.cutAll()
    await opened
    gate.resolve()
    for await (const event of stream) if ('statusUpdate' in event) states.push(event.statusUpdate.status.state)
    t.same(states, ['TASK_STATE_SUBMITTED', 'TASK_STATE_INPUT_REQUIRED'])
  })
})
