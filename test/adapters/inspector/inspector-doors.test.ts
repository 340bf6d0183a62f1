import { EventEmitter, once } from 'node:events'
import { readFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t, { type Test } from 'tap'
import { createActor, createMachine } from 'xstate'
import { WebSocket, type ClientOptions } from 'ws'
import type { Tap } from '../../../adapters/entry/connection.ts'
import { coverageFile } from '../../../adapters/cli/files.ts'
import { atHost, MOST_CRASHES } from '../../../adapters/inspector/hub.ts'
import { inspect } from '../../../adapters/inspector/index.ts'
import { htmlAnswer, Inspector, PageFiles } from '../../../adapters/inspector/inspector.ts'
import { ContextIndex, TalkRecord } from '../../../adapters/inspector/recorder/context-index.ts'
import { Recorder } from '../../../adapters/inspector/recorder/recorder.ts'
import { PageLink, type Shown } from '../../../adapters/inspector/page-link.ts'
import { FrameLog, shownFrame } from '../../../adapters/inspector/recorder/frame-log.ts'
import { stepSizeOf } from '../../../adapters/inspector/recorder/seen-step.ts'
import {
  EARLIER_TASKS,
  earlierTasks,
  KNOWN_TASKS,
  openingOf,
  TaskIndex
} from '../../../adapters/inspector/recorder/task-index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { HIGH_WATER_BYTES } from '../../../adapters/websocket/outbox.ts'
import { inputRequired } from '../../../runtime/authoring/questions.ts'
import { textOf } from '../../../runtime/authoring/words.ts'
import type { LiveActors } from '../../../runtime/contexts/observers.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { hostActors, type ActorHost } from '../../../runtime/commits/actor-host.ts'
import type { Commit } from '../../../runtime/store/store.ts'
import { FeedReader, feedUrl, TOKEN } from '../../fixtures/pages/feed-reader.ts'
import { inspected } from '../../fixtures/pages/inspected-agent.ts'
import { say, start, taskIn, until, userMessage } from '../../fixtures/runtime/runtime-helpers.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

/** The status with which a WebSocket is refused, or 101. */
async function handshake(t: Test, url: string, options: ClientOptions = {}): Promise<number> {
  const socket = new WebSocket(url, options)
  t.teardown(() => socket.terminate())
  socket.on('error', () => {})
  return Promise.race([
    once(socket, 'open').then(() => 101),
    once(socket, 'unexpected-response').then(([, response]) => (response as { statusCode: number }).statusCode)
  ])
}

const BUILT = {
  'index.html': '<!doctype html><html><head lang="en"><title>t</title></head></html>',
  'icon.svg': '<svg/>',
  'notes.txt': 'not of the page',
  assets: { 'index-1a2b.js': 'export {}', 'index-1a2b.css': 'p {}' }
}

/** The files of a page that is built. */
function builtPage(t: Test): PageFiles {
  return new PageFiles(pathToFileURL(`${t.testdir(BUILT)}/`))
}

await t.test('the feed requires the token, and refuses pages of other origins', async t => {
  const { url } = await inspected(t, { work: () => ({}) })
  const feed = feedUrl(url)
  const { host } = new URL(url)
  t.equal(await handshake(t, feed), 101)
  t.equal(await handshake(t, feed, { origin: `http://${host}` }), 101)
  for (const wrong of [feedUrl(url, 'a-tokem'), feedUrl(url, ''), feed.replace(/\?.*/, '')])
    t.equal(await handshake(t, wrong), 401, wrong)
  t.equal(await handshake(t, feed, { origin: 'http://evil.example' }), 403)
  t.equal(await handshake(t, feed, { origin: `http://127.0.0.1:1` }), 403)
  t.equal(await handshake(t, feed, { headers: { host: 'evil.example' } }), 421)
  t.equal(await handshake(t, feed.replace('feed', 'food')), 404)
})

await t.test('later pages receive the newest errors of the author, unless their tasks are erased', async t => {
  const { inspector, runtime, page } = await inspected(t, { work: () => ({}) })
  const first = await page()
  await first.frame('hello')
  const { id } = taskIn(await runtime.sendMessage(say('x', { contextId: 'c' })))
  inspector.crashed(id, 'Error: gone')
  for (let i = 0; i < MOST_CRASHES; i += 1) inspector.crashed(`t${i}`, `Error: ${i}`)
  await first.frame('crash', ({ taskId }) => taskId === `t${MOST_CRASHES - 1}`)
  inspector.crashed(id, 'Error: again')
  await runtime.erase({ contextId: 'c' })
  const later = await page()
  await later.frame('crash', ({ taskId }) => taskId === `t${MOST_CRASHES - 1}`)
  t.equal(later.all('crash').length, MOST_CRASHES - 1)
  t.notOk(later.all('crash').some(({ taskId }) => taskId === id || taskId === 't0'))
  new Inspector({} as never).crashed('t', 'before it is served')
})

await t.test('the number of viewers is limited', async t => {
  const { page, url } = await inspected(t, { work: () => ({}) })
  const pages = await Promise.all(Array.from({ length: 32 }, page))
  t.equal(await handshake(t, feedUrl(url)), 503)
  pages[0]?.socket.close()
  await until(async () => (await handshake(t, feedUrl(url))) === 101)
})

await t.test('the page', async t => {
  await t.test('is served at / with the token, and its files below /inspector/ with their types', async t => {
    const { url } = await inspected(t, { work: () => ({}) }, { page: builtPage(t) })
    const page = await fetch(url)
    t.match(
      await page.text(),
      `<head lang="en"><meta name="taskchart-token" content="${TOKEN}"><meta name="taskchart-agent" content="${url.replace('http', 'ws')}"><title>`
    )
    const policy = page.headers.get('content-security-policy') ?? ''
    t.match(
      policy,
      `default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self' ws://${new URL(url).host} `
    )
    t.notMatch(policy, /script-src/)
    t.equal(page.headers.get('cache-control'), 'no-store')
    const files = [
      ['assets/index-1a2b.js', 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable'],
      ['assets/index-1a2b.css', 'text/css; charset=utf-8', 'public, max-age=31536000, immutable'],
      ['icon.svg', 'image/svg+xml', 'no-cache']
    ]
    for (const [name, type, caching] of files) {
      const { status, headers } = await fetch(`${url}inspector/${name}`)
      t.strictSame(
        [status, headers.get('content-type'), headers.get('cache-control'), headers.get('x-content-type-options')],
        [200, type, caching, 'nosniff']
      )
    }
    for (const name of ['notes.txt', 'none.js', '%2e%2e/secret.js', '..%2fsecret.js', '.hidden.js', ''])
      t.not((await fetch(`${url}inspector/${name}`)).status, 200, name)
    t.equal((await fetch(url, { method: 'HEAD' })).status, 200)
    t.equal((await fetch(`${url}.well-known/agent-card.json`)).status, 200, 'the agent keeps its path')
    t.equal(
      (await fetch(url, { method: 'POST', body: '{', headers: { 'content-type': 'application/json' } })).status,
      200
    )
  })

  await t.test("is the agent's plain page if it was not built", async t => {
    const { url } = await inspected(t, { work: () => ({}) })
    t.match(await (await fetch(url)).text(), 'An A2A agent.')
  })

  await t.test('needs the token if the agent has authenticate', async t => {
    const { url, inspector } = await inspected(
      t,
      { work: () => ({}) },
      { page: builtPage(t) },
      { authenticate: () => ({ id: 'me' }) }
    )
    t.match(await (await fetch(url)).text(), 'An A2A agent.')
    t.equal((await fetch(`${url}?token=guess`)).status, 401)
    t.equal((await fetch(`${url}stately`)).status, 401)
    t.equal(inspector.pageUrl, `${url}?token=${TOKEN}`)
    t.match(await (await fetch(inspector.pageUrl)).text(), TOKEN)
  })

  await t.test('allows no sockets in its policy if the host is invalid', t => {
    t.notMatch(htmlAnswer('', "x'; script-src *").headers.get('content-security-policy'), 'script-src')
    t.equal(atHost('ws://127.0.0.1:4242/', 'localhost:4242'), 'ws://localhost:4242/')
    t.end()
  })
})

await t.test('an inspector is served once it is given to a server, and closes with it', async t => {
  const { runtime } = start(t, { work: () => ({}) })
  const inspector = inspect({ token: TOKEN })
  t.throws(() => (inspector as Inspector).pageUrl, { message: /serve\(runtime, \{ inspector \}\)/ })
  const served = await serve(runtime, { port: 0, inspector })
  const page = await FeedReader.open(t, served.url)
  t.match((await page.frame('hello')).charts[0]?.svg, /^<svg/)
  await served.close()
  await served.close()
  t.ok(page.socket.readyState >= page.socket.CLOSING)
})

await t.test('a passivated context is kept without its actors', async t => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const recorder = new Recorder(new TestClock(), { stirred() {}, inspected() {}, began() {}, troubled() {} })
  const recorded = () => {
    const actors = { ...actorsOf('c'), root: createActor(createMachine({})).start() }
    recorder.entered(actors)
    recorder.left(actors)
    return new WeakRef(actors.root)
  }
  const root = recorded()
  // One collection may leave it, if a register or a stack slot still names it.
  for (let round = 0; round < 20 && root.deref(); round += 1) {
    await new Promise(resolve => setImmediate(resolve))
    collect()
  }
  t.equal(root.deref(), undefined)
  t.ok(recorder.find('c'))
})

function actorsOf(contextId: string): Omit<LiveActors, 'root'> {
  return { key: { tenant: '', principal: 'ann', contextId }, name: contextId, versionOf: () => '1' }
}

await t.test('a full recorder drops its oldest contexts, then the oldest steps of watched ones', t => {
  const machine = createMachine({ on: { said: { actions: () => {} } } })
  const recorder = new Recorder(
    new TestClock(),
    { stirred() {}, inspected() {}, began() {}, troubled: error => t.fail(String(error)) },
    100_000
  )
  const talk = (contextId: string, text: string) => {
    const root = createActor(machine)
    hostActors(root.system, { turnNumber: 0 } as ActorHost)
    recorder.entered({ ...actorsOf(contextId), root: root.start() })
    root.send({ type: 'said', text })
    return root
  }
  recorder.watch('watched')
  // A chart that takes an event has two steps with it.
  const root = talk('watched', 'x'.repeat(20_000))
  talk('b', 'x'.repeat(10_000))
  talk('c', 'x'.repeat(15_000))
  t.ok(recorder.find('b'))
  root.send({ type: 'said', text: 'x'.repeat(5_000) })
  t.notOk(recorder.find('b'), 'the oldest that nobody watches')
  t.ok(recorder.find('c'))
  const watched = recorder.find('watched')
  t.equal(watched?.steps.first, 1)
  root.send({ type: 'said', text: 'x'.repeat(60_000) })
  t.notOk(recorder.find('c'))
  t.ok((watched?.bytes ?? 0) < 100_000)
  t.ok((watched?.steps.first ?? 0) > 1)
  recorder.stop()
  recorder.left({ ...actorsOf('watched'), root })
  t.equal(recorder.find('watched'), undefined)
  t.end()
})

await t.test('the size of a recorded event is bounded in effort', t => {
  t.ok(stepSizeOf({ type: 'a', text: 'x'.repeat(1000) }) > 1000)
  t.ok(stepSizeOf({ type: 'a', items: Array.from({ length: 100_000 }, (_, i) => i) }) > 1024 * 1024)
  const actor = createActor(createMachine({}))
  t.ok(stepSizeOf({ type: 'a', actor }) < 1000)
  t.ok(stepSizeOf({ type: 'a', bytes: new Uint8Array(5000) }) > 5000)
  t.ok(
    stepSizeOf({ type: 'a', many: Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [i, i])) }) > 1024 * 1024
  )
  const loop: Record<string, unknown> = {}
  loop['again'] = loop
  t.ok(stepSizeOf({ type: 'a', loop }) > 1024 * 1024)
  t.end()
})

await t.test('a slow page', async t => {
  /** A page whose socket the test fills. */
  const slow = (t: Test) => {
    const clock = new TestClock()
    const stream = Object.assign(new EventEmitter(), { writableLength: 0 })
    const sent: { type: string; count?: number; rows?: unknown[]; removed?: unknown[] }[] = []
    const socket = Object.assign(new EventEmitter(), {
      readyState: 1,
      OPEN: 1,
      send: (text: string) => sent.push(JSON.parse(text)),
      close: t.fail
    })
    const tap: Tap = { onFrame: undefined }
    const frames = new FrameLog(tap, clock, () => {})
    const page = new PageLink(socket as never, stream as never, 'host')
    const tasks = new TaskIndex(value => value, page)
    let stirs = 0
    const recorder = new Recorder(clock, { stirred() {}, inspected() {}, began() {}, troubled() {} })
    const readMessages = async () => []
    const contexts = new ContextIndex(value => value, page)
    const talkOf = (contextId: string) =>
      new TalkRecord(contextId, { readMessages, redact: value => value, timesOf: () => new Map() })
    const shown: Shown = {
      instance: 'i',
      recorder,
      tasks,
      contexts,
      talkOf,
      frames,
      redact: value => value,
      stirred: () => (stirs += 1),
      authorize: async () => {},
      transitionCounts: undefined,
      draw: async (chart, collapsed) => `${chart} without ${collapsed.join()}`,
      compare: async () => undefined,
      nodes: undefined,
      test: () => {},
      prove: () => {}
    }
    const ask = (asked: object) => socket.emit('message', Buffer.from(JSON.stringify(asked)))
    const fill = () => (stream.writableLength = HIGH_WATER_BYTES + 1)
    const drain = () => {
      stream.writableLength = 0
      stream.emit('drain')
    }
    return { page, shown, tasks, tap, sent, ask, fill, drain, socket, stirs: () => stirs }
  }
  const commit = (taskId: string, atMs = 1, more: Partial<Commit> = {}): Commit => ({
    key: { tenant: '', principal: 'ann', contextId: 'c' },
    expected: 0,
    atMs,
    snapshot: '',
    tasks: [{ taskId, state: 'TASK_STATE_WORKING', generation: 2 }],
    log: [{ taskId, generation: 0, message: userMessage('x') }],
    journal: [],
    sends: [],
    webhooks: [],
    ...more
  })

  await t.test('of the drawings that a page asks for while one is made, it gets the last', async t => {
    const { page, shown, sent, ask } = slow(t)
    page.show(shown)
    for (const id of ['a', 'b', 'c']) ask({ type: 'draw', chart: 'work', collapsed: [id] })
    await new Promise(resolve => setImmediate(resolve))
    const drawn = (id: string) => ({ type: 'drawn', chart: 'work', collapsed: [id], svg: `work without ${id}` })
    t.strictSame(sent, [drawn('a'), drawn('c')])
    ask({ type: 'draw', chart: 'task', collapsed: [] })
    await new Promise(resolve => setImmediate(resolve))
    t.strictSame(sent.at(-1), { type: 'drawn', chart: 'task', collapsed: [], svg: 'task without ' })
  })

  await t.test('of the comparisons that a page asks for meanwhile, it gets the last, or why there is none', async t => {
    const { page, shown, sent, ask } = slow(t)
    const compare = async (taskId: string) => {
      if (taskId === 'c') throw new Error('The store is away.')
      return undefined
    }
    page.show({ ...shown, compare })
    for (const taskId of ['a', 'b', 'c']) ask({ type: 'compare', taskId })
    await new Promise(resolve => setImmediate(resolve))
    t.strictSame(sent, [
      { type: 'compared', taskId: 'a' },
      { type: 'compared', taskId: 'c', error: 'The store is away.' }
    ])
  })

  await t.test('receives each changed task once when it reads again', t => {
    const { page, shown, tasks, sent, ask, fill, drain, stirs } = slow(t)
    page.flush()
    ask({ type: 'watch', contextId: 'c' })
    page.show(shown)
    page.flush()
    t.strictSame(
      sent.splice(0),
      [
        { type: 'tasks', rows: [], removed: [] },
        { type: 'contexts', rows: [], removed: [] }
      ],
      'at first it hears that there is nothing'
    )
    fill()
    for (let i = 0; i < 5; i += 1) tasks.committed(commit('a', i))
    tasks.committed(commit('b'))
    tasks.erased({ tenant: '', principal: 'ann', contextId: 'd' })
    page.flush()
    t.strictSame(sent, [])
    const before = stirs()
    drain()
    t.equal(stirs(), before + 1)
    page.flush()
    t.match(sent, [{ type: 'tasks', rows: [{ taskId: 'a', changedMs: 4, openedMs: 0 }, { taskId: 'b' }], removed: [] }])
    tasks.erased({ tenant: '', principal: 'ann' })
    page.flush()
    t.strictSame(sent[1]?.removed, ['a', 'b'])
    t.end()
  })

  await t.test('receives a limited number of frames, and the number of missed ones', t => {
    const { page, shown, tap, sent, ask, fill, drain, stirs } = slow(t)
    page.show(shown)
    page.flush()
    sent.length = 0
    ask({ type: 'frames', on: true })
    fill()
    for (let i = 0; i < 1200; i += 1) tap.onFrame?.('ws 1', 'in', `frame ${i}`)
    page.flush()
    drain()
    const before = stirs()
    page.flush()
    t.match(sent, [
      { type: 'lost', what: 'frames', count: 200 },
      { type: 'frames', frames: { length: 500 } }
    ])
    t.equal(stirs(), before + 1, 'and the rest soon')
    page.flush()
    page.flush()
    t.equal(sent.length, 3)
    page.leave()
    page.leave()
    t.equal(tap.onFrame, undefined)
    t.end()
  })

  await t.test('receives a frame without text if the hook gives none', t => {
    t.equal(shownFrame({ n: 1, atMs: 1, connection: 'c', direction: 'in', bytes: 1, text: 'x' }, () => 7).text, '')
    t.end()
  })

  await t.test('receives nothing more once it is closed', t => {
    const { page, shown, sent, socket } = slow(t)
    page.show(shown)
    socket.readyState = 3
    page.send({ type: 'reload', error: null })
    t.strictSame(sent, [])
    t.end()
  })
})

await t.test('a slow page receives the number of steps that it missed', async t => {
  const { runtime, page } = await inspected(t, { work: obedient })
  const reader = await page()
  const { instance } = await reader.frame('hello')
  await runtime.sendMessage(say('x', { contextId: 'c' }))
  reader.ask({ type: 'watch', contextId: 'c' })
  await reader.frame('steps')
  reader.socket.close()
  const other = await page()
  await other.frame('hello')
  t.ok(instance)
  const ids = await other.frame('hello')
  for (let i = 0; i < 130; i += 1) await runtime.sendMessage(say('x', { contextId: 'c' }))
  other.ask({ type: 'watch', contextId: 'c', afterStep: 1, instance: ids.instance })
  const { count, what } = await other.frame('lost')
  const {
    steps: [next]
  } = await other.frame('steps')
  t.strictSame([what, count], ['steps', (next?.n ?? 0) - 2])
})

await t.test('a flood of tasks is listed in part, and a task that was left out once it changes later', async t => {
  const { runtime, page, clock } = await inspected(
    t,
    {
      work: async ({ ask, message }) => ({
        artifact: textOf(message) === 'ask' ? (textOf(await ask(inputRequired('Which?'))) ?? '') : 'done'
      })
    },
    { listedAMinute: 100 }
  )
  const reader = await page()
  await reader.frame('hello')
  reader.ask({ type: 'watch', contextId: 'watched' })
  await reader.frame('actors')
  for (let i = 0; i < 100; i += 1) await runtime.sendMessage(say('x', { contextId: `c${i % 10}` }))
  const { id } = taskIn(await runtime.sendMessage(say('ask')))
  const watched = taskIn(await runtime.sendMessage(say('x', { contextId: 'watched' })))
  const listed = (taskId: string) =>
    reader
      .all('tasks')
      .flatMap(({ rows }) => rows)
      .findLast(row => row.taskId === taskId)
  t.match(await reader.frame('lost'), { what: 'tasks', count: 1 })
  await until(() => listed(watched.id), 'the watched context')
  t.equal(listed(id), undefined)
  clock.increment(60_000)
  await runtime.sendMessage(say('that one', { taskId: id }))
  await reader.frame('tasks', ({ rows }) => rows.some(row => row.taskId === id && row.title === 'ask'))
  t.match(listed(id), { state: 'TASK_STATE_COMPLETED' })
})

await t.test('known tasks', async t => {
  const commit = (taskId: string, log: Commit['log'] = []): Commit => ({
    key: { tenant: '', principal: 'ann', contextId: 'c' },
    expected: 0,
    atMs: 5,
    snapshot: '',
    tasks: [{ taskId, state: 'TASK_STATE_WORKING', generation: 2 }],
    log,
    journal: [],
    sends: [],
    webhooks: []
  })
  const stored = {
    key: { tenant: '', principal: 'ann', contextId: 'c' },
    state: 'TASK_STATE_COMPLETED',
    generation: 1,
    openedMs: 1,
    changedMs: 2,
    words: 'before',
    agreed: undefined
  } as const

  await t.test('are the newest, and others are evicted', t => {
    const removed: string[] = []
    const tasks = new TaskIndex(value => value, { changed() {}, removed: ({ taskId }) => removed.push(taskId) })
    for (let i = 0; i <= KNOWN_TASKS; i += 1) tasks.committed(commit(`t${i}`))
    t.strictSame(removed, ['t0'])
    tasks.read({ ...stored, taskId: 'old' })
    t.equal(tasks.get('old'), undefined, 'earlier tasks have no room either')
    t.end()
  })

  await t.test('that have changed stay for another round', t => {
    const removed: string[] = []
    const tasks = new TaskIndex(value => value, { changed() {}, removed: ({ taskId }) => removed.push(taskId) })
    for (let i = 0; i < KNOWN_TASKS; i += 1) tasks.committed(commit(`t${i}`))
    tasks.committed(commit('t0'))
    for (const taskId of ['u', 'v']) tasks.committed(commit(taskId))
    t.strictSame(removed, ['t1', 't2'])
    t.end()
  })

  await t.test('keep the start of a long message alone', t => {
    const tasks = new TaskIndex(value => value, { changed() {}, removed() {} })
    tasks.committed(commit('a', [{ taskId: 'a', generation: 0, message: userMessage(`  ${'é'.repeat(1000)}`) }]))
    t.equal(tasks.get('a')?.words, 'é'.repeat(160))
    t.end()
  })

  await t.test('that changed before they were read keep their state and get their start', t => {
    const tasks = new TaskIndex(value => value, { changed() {}, removed() {} })
    tasks.committed(commit('a'))
    tasks.read({ ...stored, taskId: 'a' })
    t.match(tasks.get('a'), { state: 'TASK_STATE_WORKING', generation: 2, openedMs: 1, changedMs: 5, words: 'before' })
    tasks.read({ ...stored, taskId: 'a', words: 'again' })
    t.equal(tasks.get('a')?.words, 'before')
    t.end()
  })

  await t.test('of which nothing is stored keep the time at which they were seen, without a title', async t => {
    t.strictSame(
      await openingOf(memoryStore(), { ...stored, taskId: 'gone', title: undefined, isUnread: true, isChanged: false }),
      { openedMs: 1, words: '', agreed: undefined }
    )
  })

  await t.test('from before are read page by page, the newest of each caller', async t => {
    const { runtime, store, clock } = start(t, { work: () => ({}) })
    for (let i = 0; i < 105; i += 1) {
      clock.increment(1)
      await runtime.sendMessage(say(`n${i}`))
    }
    const titles: string[] = []
    for await (const { words } of earlierTasks(store, [
      { tenant: '', principal: 'nobody' },
      { tenant: '', principal: 'anonymous' }
    ]))
      titles.push(words)
    t.strictSame([titles.length, titles[0], titles.at(-1)], [105, 'n104', 'n0'])
  })

  await t.test('from before are limited, however many the store has', async t => {
    const page = {
      total: 5000,
      next: { timestamp: '', taskId: '' },
      tasks: Array.from({ length: 100 }, (_, i) => ({
        generation: 1,
        task: { id: `${i}`, contextId: 'c', status: { state: 'TASK_STATE_WORKING' as const } }
      }))
    }
    const store = { ...memoryStore(), listTasks: async () => page }
    let count = 0
    for await (const { openedMs, words } of earlierTasks(store, [{ tenant: '', principal: 'a' }])) {
      count += 1
      if (count === 1) t.strictSame([openedMs, words], [0, ''])
    }
    t.equal(count, EARLIER_TASKS)
  })
})

await t.test('test coverage is stored beside the module, and git ignores it', async t => {
  const folder = t.testdir({ 'agent.ts': '' })
  const file = coverageFile(`${folder}/agent.ts`)
  const changed = new Promise<void>(resolve => t.teardown(file.watch(resolve)))
  t.equal(await file.read(), undefined)
  const reached = { atMs: 1, reached: { states: ['a'], transitions: ['b'] }, missing: [{ name: 'c', why: 'd' }] }
  await file.write(reached)
  t.strictSame(await file.read(), { type: 'coverage', chart: 'work', ...reached })
  t.equal(readFileSync(`${folder}/.taskchart/.gitignore`, 'utf8'), '*\n')
  await changed
  const other = t.testdir({ '.taskchart': { coverage: { 'a.ts.json': '7', 'b.ts.json': '{' } } })
  t.strictSame(
    [await coverageFile(`${other}/a.ts`).read(), await coverageFile(`${other}/b.ts`).read()],
    [undefined, undefined]
  )
})
