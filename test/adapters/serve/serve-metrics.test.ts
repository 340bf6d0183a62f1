import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import { text as textIn } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import t from 'tap'
import { WebSocket } from 'ws'
import { metricsText, serveMetrics } from '../../../adapters/serve/serve-metrics.ts'
import { createRuntime, defineAgent, failed, inputRequired, textOf } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { systemClock } from '../../../runtime/ports/clock.ts'
import type { Runtime } from '../../../runtime/runtime-options.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { Counters } from '../../../runtime/telemetry/counters.ts'
import { EventLoopDelay } from '../../../runtime/telemetry/event-loop-delay.ts'
import type { WorkFunction } from '../../../runtime/work/function-work.ts'
import { ask, rpc, serveAll } from '../../fixtures/servers/http-agent.ts'
import { receivers } from '../../fixtures/runtime/receiver.ts'
import { deferred, refusal, rest, say, start, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'

/** Work that does what its message says. */
const told: WorkFunction = async ({ message, ask }) => {
  if (textOf(message) === 'ask') await ask(inputRequired('Which?'))
  if (textOf(message) === 'fail') return failed('no paint')
  return { artifact: 'done' }
}

/** A line of Prometheus's text format: a name, labels and a number. */
const SAMPLE =
  /^(?<name>[a-z_]+)(?:\{(?<labels>[a-z_]+="[\w /-]*"(?:,[a-z_]+="[\w /-]*")*)\})? (?<value>-?\d+(?:\.\d+)?(?:e-?\d+)?)$/

/** The samples of a text by name and labels. Throws where it is not in the format. */
function samplesIn(text: string): Map<string, number> {
  const samples = new Map<string, number>()
  let described = ''
  for (const line of text.trimEnd().split('\n')) {
    const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\w+) (.+)$/.exec(line) ?? []
    if (kind === 'HELP') described = name
    else if (kind === 'TYPE') {
      if (
        name !== described ||
        !['counter', 'gauge'].includes(rest) ||
        name.endsWith('_total') !== (rest === 'counter')
      )
        throw new Error(line)
    } else {
      const { name: own, labels, value } = SAMPLE.exec(line)?.groups ?? {}
      if (own !== described) throw new Error(`not described: ${line}`)
      samples.set(labels === undefined ? own : `${own}{${labels}}`, Number(value))
    }
  }
  return samples
}

async function samplesOf(runtime: Runtime): Promise<Map<string, number>> {
  return samplesIn(await metricsText(runtime))
}

/** The whole answer to a request, as text. */
async function rawAnswer(url: string, lines: readonly string[]): Promise<string> {
  const socket = connectSocket(Number(new URL(url).port), '127.0.0.1')
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  return textIn(socket)
}

/** The samples that are not 0, of metrics whose names begin with one of these. */
async function notZero(runtime: Runtime, ...names: readonly string[]): Promise<Record<string, number>> {
  const samples = [...(await samplesOf(runtime))].filter(
    ([name, value]) => value !== 0 && names.some(start => name.startsWith(`taskchart_${start}`))
  )
  return Object.fromEntries(samples.map(([name, value]) => [name.replace('taskchart_', ''), value]))
}

await t.test('the guide lists every metric with its labels', async t => {
  const { runtime } = start(t, { work: told }, { observeProperties: true })
  const rows = Array.from(
    readFileSync('docs/deployment.md', 'utf8').matchAll(/^\| `(taskchart_\w+)` \| (?:`(\w+)`)? ?\|/gm),
    ([, name, label]) => [name, label]
  )
  const names = Array.from((await metricsText(runtime)).matchAll(/^# TYPE (\S+)/gm), ([, name]) => name)
  const labels = (await runtime.metrics.read()).map(({ values }) => Object.keys(values[0]?.attributes ?? {})[0])
  t.strictSame(
    rows,
    names.map((name, i) => [name, labels[i]])
  )
})

await t.test('every metric is there from the start, with a description, its type and 0', async t => {
  const { runtime } = start(t, { work: told })
  // Before its first turn the event loop was never busy.
  await setImmediate()
  const text = await metricsText(runtime)
  t.match(
    text,
    '# HELP taskchart_tasks Open tasks in the store, by state\n# TYPE taskchart_tasks gauge\ntaskchart_tasks{state="submitted"} 0\ntaskchart_tasks{state="working"} 0\ntaskchart_tasks{state="input-required"} 0\ntaskchart_tasks{state="auth-required"} 0\n'
  )
  t.match(text, '# TYPE taskchart_commits_total counter\ntaskchart_commits_total 0\n')
  const samples = samplesIn(text)
  t.strictSame(
    [...new Set(Array.from(samples.keys(), name => name.replace(/\{.*/, '')))],
    [
      'ready',
      'tasks',
      'tasks_opened_total',
      'tasks_ended_total',
      'tasks_newer_version_total',
      'events_total',
      'commits_total',
      'commit_failures_total',
      'contexts',
      'calls_total',
      'call_errors_total',
      'mcp_calls_total',
      'mcp_call_errors_total',
      'refused_requests_total',
      'waiting_calls',
      'connections',
      'store_waiting',
      'webhooks_waiting',
      'webhook_posts_total',
      'webhooks_given_up_total',
      'cluster_nodes',
      'cluster_shards',
      'cluster_shard_moves_total',
      'cluster_refusals_total',
      'cluster_forwarded_total',
      'event_loop_delay_seconds',
      'event_loop_busy_seconds_total'
    ].map(name => `taskchart_${name}`)
  )
  t.strictSame(
    Object.keys(await notZero(runtime, '')).filter(name => !name.startsWith('event_loop')),
    ['ready']
  )
  t.ok((samples.get('taskchart_event_loop_busy_seconds_total') ?? 0) > 0)
  t.equal(new Set(runtime.metrics.definitions.map(({ name }) => name)).size, runtime.metrics.definitions.length)
})

await t.test('tasks, events, commits and calls are counted where they happen', async t => {
  const { runtime, clock } = start(t, { work: told })
  await runtime.sendMessage(say('go'))
  await runtime.sendMessage(say('fail'))
  const waiting = taskIn(await runtime.sendMessage(say('ask')))
  await refusal(runtime.getTask({ id: 'none' }))
  await refusal(runtime.sendStreamingMessage(say('x', { taskId: 'none' })).next())
  await refusal(runtime.authorized(waiting.id, 1))
  t.strictSame(await notZero(runtime, 'tasks', 'events', 'contexts', 'calls', 'call_errors'), {
    'tasks{state="input-required"}': 1,
    tasks_opened_total: 3,
    'tasks_ended_total{state="completed"}': 1,
    'tasks_ended_total{state="failed"}': 1,
    events_total: 10,
    contexts: 3,
    'calls_total{operation="sendMessage"}': 3,
    'calls_total{operation="sendStreamingMessage"}': 1,
    'calls_total{operation="getTask"}': 1,
    'calls_total{operation="authorized"}': 1,
    'call_errors_total{reason="TaskNotFound"}': 2,
    'call_errors_total{reason="UnsupportedOperation"}': 1
  })
  const { commits_total: commits } = await notZero(runtime, 'commits')
  await runtime.cancelTask({ id: waiting.id })
  clock.increment(1000)
  t.match(await notZero(runtime, 'commits', 'tasks{', 'tasks_ended'), {
    commits_total: Number(commits) + 1,
    'tasks_ended_total{state="canceled"}': 1,
    'tasks{state="input-required"}': undefined
  })
})

await t.test('refused requests are counted, by status or error', async t => {
  const { runtime, url } = await serveAll(
    t,
    { work: told },
    {
      clock: systemClock,
      authenticate: ({ headers }) => (headers['x-me'] === 'yes' ? { id: 'me' } : undefined),
      limits: { perPrincipal: { requestsPerMinute: 6 } }
    }
  )
  const me = { 'x-me': 'yes' }
  t.equal((await ask(`${url}tasks`)).status, 401)
  t.equal((await ask(`${url}tasks`, { headers: { ...me, origin: 'https://evil.example' } })).status, 403)
  t.equal((await ask(`${url}tasks/../tasks`, { headers: me })).status, 200, 'the path is resolved by the client')
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']
  t.match(await rawAnswer(url, ['GET /tasks HTTP/1.1', 'Host: evil.example', 'Connection: close']), /^HTTP\/1\.1 421/)
  t.match(
    await rawAnswer(url, ['GET / HTTP/1.1', 'Host: localhost', ...upgrade, 'Sec-WebSocket-Version: 13']),
    /^HTTP\/1\.1 401/
  )
  t.match(
    await rawAnswer(url, ['GET / HTTP/1.1', 'Host: localhost', ...upgrade, 'Sec-WebSocket-Version: 8']),
    /^HTTP\/1\.1 426/
  )
  t.equal((await ask(`${url}nowhere`, { headers: me })).status, 404)
  t.equal((await rpc(url, 'NoMethod', {}, me)).status, 200)
  t.equal((await ask(url, { body: '{', headers: me })).status, 200)
  t.equal((await ask(`${url}tasks`, { body: '{}', headers: { ...me, 'content-encoding': 'gzip' } })).status, 415)
  t.equal((await ask(`${url}message:send`, { body: '{', headers: me })).status, 400)
  t.equal((await ask(`${url}nowhere`, { headers: me })).status, 429)
  t.equal((await rpc(url, 'NoMethod', {}, me)).status, 429)
  t.strictSame(await notZero(runtime, 'refused', 'call_errors'), {
    'call_errors_total{reason="ParseError"}': 2,
    'call_errors_total{reason="MethodNotFound"}': 2,
    'call_errors_total{reason="RateLimited"}': 2,
    'refused_requests_total{status="401"}': 2,
    'refused_requests_total{status="403"}': 1,
    'refused_requests_total{status="415"}': 1,
    'refused_requests_total{status="421"}': 1,
    'refused_requests_total{status="426"}': 1
  })
})

await t.test('an unusual status is counted too', async t => {
  const counters = new Counters()
  counters.refused(418)
  counters.refused(418)
  t.equal(counters.refusals['418'], 2)
})

await t.test('connections count those that are open now', async t => {
  const held = deferred<object>()
  const { runtime, url, close } = await serveAll(t, { work: () => held.promise })
  const socket = new WebSocket(url.replace('http', 'ws'), 'a2a.v1')
  await once(socket, 'open')
  const body = JSON.stringify(say('go'))
  const stream = await fetch(`${url}message:stream`, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' }
  })
  t.strictSame(await notZero(runtime, 'connections'), {
    'connections{transport="http"}': 1,
    'connections{transport="websocket"}': 1
  })
  socket.send('{}')
  await once(socket, 'message')
  t.strictSame(
    await notZero(runtime, 'call_errors'),
    { 'call_errors_total{reason="InvalidRequest"}': 1 },
    'a frame that is no request'
  )
  held.resolve({})
  await stream.text()
  socket.close()
  await once(socket, 'close')
  await until(async () => Object.keys(await notZero(runtime, 'connections')).length === 0)
  await close()
  t.strictSame(await notZero(runtime, 'connections'), {}, 'a closed server has none')
})

await t.test('waiting webhooks and the results of posts are counted', async t => {
  const push = receivers()
  const { runtime, clock } = start(t, { work: told }, { push, limits: { advanced: { webhookTriesMs: 1 } } })
  const url = (name: string) => `https://${name}.example/`
  const answers: Record<string, number> = { [url('bad')]: 400, [url('gone')]: 410, [url('down')]: 503 }
  push.answer = ({ url }) => ({ status: answers[url] ?? 204 })
  for (const name of ['good', 'bad', 'gone', 'down'])
    await runtime.sendMessage(say('ask', {}, { taskPushNotificationConfig: { url: url(name) } }))
  await until(async () => (await notZero(runtime, 'webhooks_waiting'))['webhooks_waiting'] === 1)
  t.strictSame(await notZero(runtime, 'webhook'), {
    webhooks_waiting: 1,
    'webhook_posts_total{result="received"}': 3,
    'webhook_posts_total{result="rejected"}': 3,
    'webhook_posts_total{result="failed"}': 2
  })
  clock.increment(10_000)
  await until(async () => (await notZero(runtime, 'webhooks_given_up'))['webhooks_given_up_total'] === 1)
  t.strictSame(await notZero(runtime, 'webhooks_waiting'), {})
})

await t.test('a store that refuses, is behind or does not answer is counted', async t => {
  const inner = memoryStore()
  const held = deferred<never>()
  let answer: () => Promise<never> = () => Promise.reject(new Error('disk is broken'))
  const store: Store = {
    ...inner,
    commit: () => answer(),
    countStates: () => answer(),
    status: () => ({ isStopped: true, waitingReads: 2, waitingWrites: 3 })
  }
  const { runtime, clock } = start(t, { work: told }, { store })
  await refusal(runtime.sendMessage(say('go')))
  t.strictSame(await notZero(runtime, 'ready', 'commit', 'store', 'tasks', 'call_errors'), {
    'commit_failures_total{reason="refused"}': 1,
    'call_errors_total{reason="Overloaded"}': 1,
    'store_waiting{kind="read"}': 2,
    'store_waiting{kind="write"}': 3
  })
  answer = () => held.promise
  clock.increment(1000)
  const [one, other] = [metricsText(runtime), metricsText(runtime)]
  await rest()
  clock.increment(2000)
  t.notMatch(await one, 'taskchart_tasks{')
  t.notMatch(await other, 'taskchart_tasks{')
  const lost = start(t, { work: told }, { store: { ...memoryStore(), commit: async () => false } })
  await refusal(lost.runtime.sendMessage(say('go')))
  t.match(await notZero(lost.runtime, 'commit_failures'), { 'commit_failures_total{reason="race"}': Number })
})

await t.test('the delay of the event loop is that of the last two windows', async t => {
  const [delay, stopped] = [new EventLoopDelay(), new EventLoopDelay()]
  t.teardown(() => delay.stop())
  t.strictSame(delay.read(0), { p50: 0, p99: 0, max: 0 })
  stopped.stop()
  stopped.read(0)
  // Node measures from its timer's first turn on.
  await until(() => {
    for (const end = performance.now() + 60; performance.now() < end;) continue
    return delay.read(0).max >= 0.04
  })
  t.equal(stopped.read(0).max, 0, 'a read does not begin it again after its end')
  const { max, p50, p99 } = delay.read(30_000)
  t.ok(max >= 0.04, `${max} s`)
  t.ok(p50 <= p99 && p99 <= max)
  t.equal(delay.read(59_000).max, max, 'it is in the window before')
  delay.read(60_000)
  t.ok(delay.read(90_000).max < max, 'and in none of the last two')
})

await t.test('open tasks are counted at most once a second, however many read', async t => {
  const inner = memoryStore()
  let counts = 0
  const store: Store = { ...inner, countStates: (limit, after) => ((counts += 1), inner.countStates(limit, after)) }
  const { runtime, clock } = start(t, { work: told }, { store })
  await Promise.all([runtime.metrics.read(), runtime.metrics.read()])
  await runtime.sendMessage(say('ask'))
  t.strictSame([await notZero(runtime, 'tasks{'), counts], [{}, 1])
  clock.increment(1000)
  t.strictSame([await notZero(runtime, 'tasks{'), counts], [{ 'tasks{state="input-required"}': 1 }, 2])
})

await t.test('metrics are served on a port of their own', async t => {
  const { runtime } = start(t, { work: told })
  const served = await serveMetrics(runtime, { port: 0 })
  t.teardown(() => served.close())
  t.match(served.url, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/)
  const response = await fetch(`${served.url}?from=prometheus`)
  t.match(response, { status: 200 })
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  t.equal(samplesIn(await response.text()).get('taskchart_ready'), 1)
  const head = await fetch(served.url, { method: 'HEAD' })
  t.match([head.status, await head.text()], [200, ''])
  t.match(await (await fetch(new URL('/', served.url))).text(), 'The metrics are at /metrics.')
  const posted = await fetch(served.url, { method: 'POST', body: 'x' })
  t.match([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
  for (const [host, status] of [
    ['evil.example', 421],
    ['evil@localhost', 400],
    ['localhost:1', 200],
    ['[::1]', 200]
  ] as const) {
    t.match(
      await rawAnswer(served.url, ['GET /metrics HTTP/1.1', `Host: ${host}`, 'Connection: close']),
      new RegExp(`^HTTP/1\\.1 ${status} `),
      host
    )
  }
  t.match(await rawAnswer(served.url, ['GET /metrics HTTP/1.0']), /^HTTP\/1\.1 421 /, 'no host')
  t.equal((await fetch(served.url, { headers: { Origin: 'https://evil.example' } })).status, 403)
  t.equal((await fetch(served.url, { headers: { Origin: new URL(served.url).origin } })).status, 200)
  await t.rejects(serveMetrics(runtime, { port: Number(new URL(served.url).port) }), {
    code: 'EADDRINUSE',
    message: /^Port \d+ is in use on 127\.0\.0\.1\. Choose another port, or 0 for a free one\.$/
  })
  await t.rejects(serveMetrics(runtime, { port: 0, path: '/' } as never), {
    name: 'TypeError',
    message: /serveMetrics has no path|path/
  })
  await t.rejects(serveMetrics(runtime, {} as never), {
    name: 'TypeError',
    message: 'serveMetrics needs a port: serveMetrics(runtime, { port: 9464 }).'
  })
  await t.rejects(serveMetrics(defineAgent({ card: { name: 'A' }, work: told }) as never, { port: 0 }), {
    name: 'TypeError'
  })
  await Promise.all([served.close(), served.close()])
  await t.rejects(fetch(served.url))
})

await t.test('metrics that cannot be read are answered with 500, and logged', async t => {
  const broken = () => {
    throw new Error('The engine is broken.')
  }
  const { runtime, log } = start(t, { work: told }, { store: { ...memoryStore(), status: broken } })
  const served = await serveMetrics(runtime, { port: 0 })
  t.teardown(() => served.close())
  const response = await fetch(served.url)
  t.match([response.status, await response.text()], [500, /could not be read/])
  t.match(log, [{ message: 'the metrics could not be read' }])
})

await t.test('on all addresses, a connection to a loopback address needs a loopback name', async t => {
  const runtime = createRuntime({ agent: defineAgent({ card: { name: 'A' }, work: told }) })
  t.teardown(() => runtime.close())
  const served = await serveMetrics(runtime, { port: 0, host: '0.0.0.0' })
  t.teardown(() => served.close())
  t.match(served.url, /^http:\/\/0\.0\.0\.0:/)
  for (const [host, status] of [
    ['agent.example', 421],
    ['localhost', 200]
  ] as const) {
    t.match(
      await rawAnswer(served.url.replace('0.0.0.0', '127.0.0.1'), [
        'GET /metrics HTTP/1.1',
        `Host: ${host}`,
        'Connection: close'
      ]),
      new RegExp(`^HTTP/1\\.1 ${status} `),
      host
    )
  }
})
