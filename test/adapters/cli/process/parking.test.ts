import { EventEmitter, once } from 'node:events'
import { createServer } from 'node:http'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { park, stopSignal } from '../../../../adapters/cli/process/process-events.ts'
import { serve } from '../../../../adapters/serve/serve.ts'
import { createRuntime, defineAgent, type AgentDefinition } from '../../../../runtime/index.ts'
import { memoryStore } from '../../../../runtime/store/memory/memory-store.ts'
import { onKillPoint } from '../../../../runtime/primitives/kill-points.ts'
import type { Store } from '../../../../runtime/store/store.ts'
import { steeredWork } from '../../../fixtures/runtime/agents.ts'
import { anyone, lives } from '../../../fixtures/runtime/lives.ts'
import {
  countingIds,
  deferred,
  heldStore,
  open,
  reaches,
  recordingLogger,
  rest,
  say,
  start,
  until
} from '../../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket } from '../../../fixtures/servers/served-agent.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'
import { servedRuntime } from '../../../../runtime/runtime-options.ts'

/** An agent that is served, to be parked once. */
async function parkable(t: Test, definition: Omit<AgentDefinition, 'card'>, store: Store = memoryStore()) {
  const { logger, log } = recordingLogger()
  const infos: string[] = []
  const clock = new TestClock()
  const runtime = servedRuntime(
    createRuntime({
      agent: defineAgent({ card: { name: 'Test' }, ...definition }),
      clock,
      logger,
      ids: countingIds(),
      store
    }),
    'a test'
  )
  const served = await serve(runtime, { port: 0, http: false })
  t.teardown(() => served.close())
  const client = await JsonSocket.open(t, served.url)
  const closed = once(client.socket, 'close').then(([code]) => code as number)
  const parking = () => {
    let isOver = false
    const over = park({
      served,
      runtime,
      clock,
      logger: { ...logger, info: message => void infos.push(message) }
    }).then(() => (isOver = true))
    return { over, isOver: () => isOver }
  }
  return { runtime, served, client, closed, clock, log, infos, parking }
}

await t.test('parking', async t => {
  await t.test('sends clients the decided events, then closes their connections with 1012', async t => {
    const store = heldStore()
    const agent = await parkable(t, { work: () => new Promise(() => {}) }, store)
    const frames: { id: unknown; result?: unknown; error?: unknown }[] = []
    agent.client.socket.on('message', (data: Buffer) =>
      frames.push(JSON.parse(data.toString()) as (typeof frames)[number])
    )
    const request = (id: string, method: string, params: object) =>
      agent.client.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }))
    request('stream', 'SendStreamingMessage', say('one', { contextId: 'c' }))
    await until(() => frames.length === 2)
    store.hold()
    request('call', 'SendMessage', say('two', { contextId: 'd' }, { returnImmediately: true }))
    await until(() => store.held.length > 0)
    const points: string[] = []
    onKillPoint(point => points.push(point))
    const { over } = agent.parking()
    onKillPoint(undefined)
    t.strictSame(points, ['parking'])
    await store.passAll()
    t.equal(await agent.closed, 1012)
    await over
    t.strictSame(
      frames.map(({ id }) => id),
      ['stream', 'stream', 'call']
    )
    t.ok(frames[2]?.result)
    t.strictSame([agent.infos, agent.log], [['the server is stopping and parks its work'], []])
    t.equal(agent.clock.pending, 0)
  })

  await t.test('refuses new connections and requests with 503, but not existing ones', async t => {
    const store = heldStore()
    const agent = await parkable(t, { work: () => ({}) }, store)
    store.hold()
    agent.client.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: say('x') }))
    await until(() => store.held.length > 0)
    const { over } = agent.parking()
    const late = new WebSocket(agent.served.url)
    late.on('error', () => {})
    const [, response] = await once(late, 'unexpected-response')
    t.match(response, { statusCode: 503, headers: { 'retry-after': '1' } })
    const page = await fetch(agent.served.url.replace('ws', 'http'))
    t.strictSame([page.status, page.headers.get('retry-after')], [503, '1'])
    t.match(await page.json(), { error: { message: /restarts/ } })
    agent.client.send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping' }))
    t.match(await agent.client.next(2), { result: {} })
    await store.passAll()
    await over
  })

  await t.test('stops works without canceling them: they continue when the store is reopened', async t => {
    const { work, run } = steeredWork()
    const life = lives(t, { work })
    const served = await serve(life.runtime, { port: 0, http: false })
    const { id } = await open(life.runtime)
    const first = await run(0)
    const told = await life.told(id)
    await park({ served, runtime: life.runtime, clock: life.clock, logger: recordingLogger().logger })
    first.resolve({ artifact: 'too late' })
    await rest()
    t.strictSame(await life.told(id), told, 'it sends nothing more')
    t.equal((await life.store.readTask(anyone, id))?.task.status.state, 'TASK_STATE_WORKING')
    const again = await life.restart()
    ;(await run(1)).resolve({ artifact: 'in time' })
    await reaches(again, id, 'completed')
  })

  const never = () => new Promise<never>(() => {})
  await t.test('informs the clients after half a second despite a hanging commit, and ends', async t => {
    const agent = await parkable(t, { work: () => ({}) }, { ...memoryStore(), commit: never })
    agent.client.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: say('x') }))
    agent.client.send(JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'ping' }))
    await agent.client.next(2)
    const { over } = agent.parking()
    await rest()
    t.equal(agent.client.socket.readyState, WebSocket.OPEN)
    agent.clock.increment(500)
    t.equal(await agent.closed, 1012)
    await over
    t.equal(agent.clock.pending, 0)
  })

  const stuck: [string, Omit<AgentDefinition, 'card'>, Partial<Store>][] = [
    ['a store that does not close', { work: () => ({}) }, { close: never }],
    ['a clean-up that hangs', { work: never, cancelGraceMs: 3_600_000 }, {}],
    ['a sweep that hangs', { work: () => ({}) }, { sweep: never }]
  ]
  for (const [what, definition, broken] of stuck) {
    await t.test(`ends after 9 seconds despite ${what}, and informs the clients before`, async t => {
      const agent = await parkable(t, definition, { ...memoryStore(), ...broken })
      const { id } = await open(agent.runtime)
      await agent.runtime.cancelTask({ id }).catch(() => {})
      agent.clock.increment(broken.sweep ? 60_000 : 0)
      const { over, isOver } = agent.parking()
      t.equal(await agent.closed, 1012)
      await rest()
      agent.clock.increment(8_499)
      await rest()
      t.equal(isOver(), false)
      agent.clock.increment(1)
      await over
      t.match(agent.log, [{ level: 'warn', message: 'not everything has stopped in time', details: { afterMs: 9000 } }])
    })
  }

  await t.test('reports what cannot be closed, and still ends', async t => {
    const agent = await parkable(
      t,
      { work: () => ({}) },
      {
        ...memoryStore(),
        close: async () => {
          throw new Error('disk')
        }
      }
    )
    await agent.parking().over
    t.match(agent.log, [
      { level: 'error', message: 'not everything could be closed', details: { error: { message: 'disk' } } }
    ])
  })
})

await t.test('a draining server of an app refuses handshakes, and the app answers its own requests', async t => {
  const { runtime } = start(t, { work: () => ({}) })
  const server = createServer((_, response) => void response.end('mine')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const served = await serve(runtime, { server })
  served.drain()
  served.drain()
  const late = new WebSocket(served.url)
  late.on('error', () => {})
  t.match((await once(late, 'unexpected-response'))[1], { statusCode: 503 })
  t.equal(await (await fetch(served.url.replace('ws', 'http'))).text(), 'mine')
  await served.close()
})

await t.test('a runtime is settled when decided events are sent, also if a commit fails', async t => {
  const store = heldStore()
  const { runtime } = start(t, { work: () => new Promise(() => {}) }, { store })
  await runtime.settled()
  for (const error of [undefined, new Error('disk')]) {
    const { id } = await open(runtime)
    await reaches(runtime, id, 'working')
    store.hold()
    const canceled = runtime.cancelTask({ id }).catch(() => {})
    await until(() => store.held.length > 0)
    const isSettled = deferred()
    let count = 0
    void runtime.settled().then(() => ((count += 1), isSettled.resolve()))
    await rest()
    t.equal(count, 0)
    await store.release(error)
    await isSettled.promise
    await store.passAll()
    await canceled
  }
})

await t.test('a process stops at its first signal, and exits at the next', async t => {
  const told = () => {
    const source = new EventEmitter()
    const codes: number[] = []
    let nowMs = 1_000_000
    const signal = stopSignal(
      source,
      () => nowMs,
      code => void codes.push(code)
    )
    return { source, signal, codes, pass: (ms: number) => (nowMs += ms) }
  }

  await t.test('of the same kind, with its code', t => {
    for (const [name, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143]
    ] as const) {
      const { source, signal, codes, pass } = told()
      t.equal(signal.aborted, false)
      source.emit(name)
      t.strictSame([signal.aborted, codes], [true, []])
      pass(501)
      source.emit(name)
      t.strictSame(codes, [code])
    }
    t.end()
  })

  await t.test('of another kind, at once', t => {
    const { source, codes } = told()
    source.emit('SIGTERM')
    source.emit('SIGINT')
    t.strictSame(codes, [130])
    t.end()
  })

  await t.test('but counts one that npm repeats once', t => {
    const { source, signal, codes, pass } = told()
    for (const ms of [0, 100, 400]) {
      pass(ms)
      source.emit('SIGINT')
    }
    t.strictSame([signal.aborted, codes], [true, []])
    pass(1)
    source.emit('SIGINT')
    t.strictSame(codes, [130])
    t.end()
  })
})
