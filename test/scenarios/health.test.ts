import { connect } from 'node:net'
import { text as textOf } from 'node:stream/consumers'
import t from 'tap'
import { serve } from '../../adapters/serve/serve.ts'
import { healthOf } from '../../runtime/runtime-metrics.ts'
import { createRuntime, defineAgent } from '../../runtime/index.ts'
import { memoryStore } from '../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../runtime/store/store.ts'
import { echo } from '../fixtures/runtime/agents.ts'
import { serveAll } from '../fixtures/servers/http-agent.ts'
import { refusal, say, start } from '../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../fixtures/runtime/test-clock.ts'

/** The statuses of both health checks. */
async function healthAt(url: string): Promise<number[]> {
  return Promise.all(['healthz', 'readyz'].map(async path => (await fetch(new URL(path, url))).status))
}

/** The whole answer to a request, as text. */
async function answerTo(url: string, lines: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  return textOf(socket)
}

await t.test('the health checks answer anyone, only by their status', async t => {
  const { url } = await serveAll(
    t,
    { work: echo },
    { authenticate: () => undefined, hosts: ['agent.example'], limits: { connections: 1 } },
    { path: '/agent' }
  )
  for (const path of ['/healthz', '/readyz', '/healthz?from=probe', 'http://other.example/readyz']) {
    for (const method of ['GET', 'HEAD']) {
      const answer = await answerTo(url, [
        `${method} ${path} HTTP/1.1`,
        'Host: 10.0.0.7:4242',
        'Origin: https://evil.example',
        'Connection: close'
      ])
      t.match(
        answer,
        /^HTTP\/1\.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 0\r\nDate: .*\r\nConnection: close\r\n\r\n$/,
        `${method} ${path}`
      )
    }
  }
  t.match(
    await answerTo(url, ['POST /readyz HTTP/1.1', 'Host: x', 'Content-Length: 0', 'Connection: close']),
    /^HTTP\/1\.1 405 .*Allow: GET, HEAD\r\n/s
  )
  for (const path of ['/healthz/', '/healthz2', '/agent/healthz'])
    t.match(
      await answerTo(url, [`GET ${path} HTTP/1.1`, 'Host: 10.0.0.7', 'Connection: close']),
      /^HTTP\/1\.1 421/,
      path
    )
})

await t.test('a draining server is live, and not ready', async t => {
  for (const serveIt of [serve, serve]) {
    const { runtime } = start(t, { work: echo })
    const served = await serveIt(runtime, { port: 0 })
    t.teardown(() => served.close())
    const url = served.url.replace('ws:', 'http:')
    t.strictSame(await healthAt(url), [200, 200])
    served.drain()
    t.strictSame(await healthAt(url), [200, 503])
    t.strictSame(runtime.health(), { isReady: true }, 'the runtime itself is')
  }
})

await t.test('a closed runtime is not ready', async t => {
  const { url, runtime } = await serveAll(t, { work: echo })
  await runtime.close()
  t.strictSame(runtime.health(), { isReady: false, reason: 'closed' })
  t.strictSame(await healthAt(url), [200, 503])
})

await t.test('a runtime is not ready for ten seconds after a refused commit, unless one succeeds', async t => {
  const inner = memoryStore()
  let isFull = false
  const store: Store = {
    ...inner,
    commit: async commit => (isFull ? Promise.reject(new Error('disk is full')) : inner.commit(commit))
  }
  const { runtime, url, clock } = await serveAll(t, { work: echo }, { store })
  const refused = async () => {
    isFull = true
    t.match(await refusal(runtime.sendMessage(say('hello'))), { code: 'Overloaded' })
    isFull = false
    t.strictSame(runtime.health(), { isReady: false, reason: 'commits refused' })
  }
  await refused()
  t.strictSame(await healthAt(url), [200, 503])
  clock.increment(9_999)
  t.notOk(runtime.health().isReady)
  clock.increment(1)
  t.strictSame(await healthAt(url), [200, 200])
  await refused()
  await runtime.sendMessage(say('hello'))
  t.strictSame(await healthAt(url), [200, 200])
})

await t.test('a runtime whose store has stopped is not ready', async t => {
  const store: Store = { ...memoryStore(), status: () => ({ isStopped: true, waitingReads: 0, waitingWrites: 0 }) }
  const { runtime } = start(t, { work: echo }, { store })
  t.strictSame(runtime.health(), { isReady: false, reason: 'store stopped' })
})

await t.test('a runtime whose store cannot say how it is is not ready', async t => {
  const broken = () => {
    throw new Error('The engine is broken.')
  }
  const { runtime } = start(t, { work: echo }, { store: { ...memoryStore(), status: broken } })
  t.strictSame(runtime.health(), { isReady: false, reason: 'store stopped' })
})

await t.test('a clock that is set back does not keep a runtime unready', async t => {
  const clock = new TestClock()
  clock.increment(60_000)
  t.ok(healthOf({ state: { isOpen: true, refusedAtMs: clock.now() + 3_600_000 }, store: {}, clock }).isReady)
})

await t.test('agents and tenants cannot use the health paths', async t => {
  const { runtime } = start(t, { work: echo })
  const agent = defineAgent({ card: { name: 'Test' }, work: echo })
  for (const name of ['healthz', 'readyz']) {
    await t.rejects(serve(runtime, { port: 0, path: `/${name}` }), {
      name: 'TypeError',
      message: `The path /${name} reports the health of the server. Choose another for the agent, such as '/agent'.`
    })
    await t.rejects(serve(runtime, { port: 0, path: `/${name}/`, http: false }), { name: 'TypeError' })
    t.throws(() => createRuntime({ agent, tenants: { [name]: {} } }), {
      name: 'TypeError',
      message: `tenants.${name} is reserved: /${name} reports the health of a server. Choose another name.`
    })
    t.match(await refusal(runtime.getTask({ id: 'x', tenant: name })), {
      code: 'InvalidParams',
      message: `tenant must not be ${name}, which is a path of the server`
    })
    t.match(await refusal(runtime.getTask({ id: 'x', tenant: `${name}2` })), { code: 'TaskNotFound' })
  }
})
