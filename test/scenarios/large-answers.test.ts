import { EventEmitter, once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { legacyDialects } from '../../adapters/cli/serve/parts.ts'
import { EventStream, KEEP_ALIVE_MS, sentPieces, type StreamSink } from '../../adapters/http/event-stream.ts'
import { jsonPieces } from '../../adapters/json-rpc/json-pieces.ts'
import { httpHandler, serve } from '../../adapters/serve/serve.ts'
import { readSqlite, sqliteStore } from '../../adapters/storage/sqlite.ts'
import { takeTogether, WriteQueue } from '../../adapters/rows/write-queue.ts'
import { ReadPause } from '../../adapters/websocket/incoming-frames.ts'
import { LargeAnswer, LargeAnswers } from '../../adapters/websocket/large-answer.ts'
import { Outbox } from '../../adapters/websocket/outbox.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import { AnswerBudget, AnswerSpace, type Owner, SharedLimit } from '../../runtime/access/shares.ts'
import {
  artifact,
  data,
  inputRequired,
  progress,
  textOf,
  type WorkFunction,
  type WorkResult
} from '../../runtime/index.ts'
import { memoryStore } from '../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../runtime/store/store.ts'
import { loadWholeTask, LARGE_BYTES } from '../../runtime/streams/task-stream.ts'
import { ask, rpc } from '../fixtures/servers/http-agent.ts'
import { mcpPeer } from '../fixtures/peers/mcp-peer.ts'
import { frameOf, RawSocket } from '../fixtures/servers/raw-socket.ts'
import { deferred, refusal, rest, say, start, taskIn, until } from '../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket } from '../fixtures/servers/served-agent.ts'
import { NO_SQLITE } from '../fixtures/stores/sqlite.ts'
import { standsStill } from '../fixtures/runtime/stands-still.ts'
import { TestClock } from '../fixtures/runtime/test-clock.ts'

/** A text that is hard to cut: escapes, and characters of two units. */
const hard = '"\n\u{1f600}é'.repeat(20_000)

/**
 * Work with a large task: artifacts of several chunks, words, questions and answers; it waits at the end until it is
 * canceled.
 */
const large: WorkFunction = async ({ ask, emit: tell }) => {
  for (let i = 0; i < 2400; i += 1)
    tell(artifact({ artifactId: `a${i % 2}`, parts: [data({ i, text: 'x'.repeat(1000) })] }, { append: i > 1 }))
  tell(progress('half of it'))
  tell(artifact({ artifactId: 'text', parts: [{ text: hard }] }))
  const message = await ask(inputRequired('And?'))
  tell(artifact({ artifactId: 'answer', parts: message.parts }))
  await ask(inputRequired('Again?'))
}

/** How many artifacts an answer has. */
function artifactsIn(answer: unknown): number | undefined {
  return (answer as Task).artifacts?.length
}

/** The first event of a stream, which is the large task. */
async function firstEvent(t: Test, url: string, init: RequestInit): Promise<unknown> {
  const response = await fetch(url, init)
  let text = ''
  for await (const bytes of response.body ?? [])
    if ((text += Buffer.from(bytes).toString('latin1')).endsWith('\n\n')) break
  const [, number, event = ''] = /^id: (\d+)\ndata: (.*)\n\n$/.exec(Buffer.from(text, 'latin1').toString()) ?? []
  t.ok(Number(number) > 2400)
  return JSON.parse(event)
}

function storeOf(t: Test, engine: 'memory' | 'SQLite'): Store {
  return engine === 'memory' ? memoryStore() : sqliteStore(join(t.testdir(), 'tasks.db'))
}

/** Serves it over every binding, with how often its store reads events. */
async function served(t: Test, engine: 'memory' | 'SQLite', work = large) {
  const kept = storeOf(t, engine)
  const counts = { reads: 0 }
  const store: Store = { ...kept, readEvents: (...args) => ((counts.reads += 1), kept.readEvents(...args)) }
  const started = start(t, { work }, { store })
  const at = await serve(started.runtime, { port: 0, dialects: await legacyDialects(started.runtime) })
  t.teardown(() => at.close())
  const { id } = taskIn(await started.runtime.sendMessage(say('hello')))
  await started.runtime.sendMessage(say(hard, { taskId: id }))
  return {
    ...started,
    store,
    url: at.url,
    counts,
    id,
    whole: (await kept.readTask({ tenant: '', principal: 'anonymous' }, id))?.task as Task
  }
}

for (const engine of ['memory', 'SQLite'] as const) {
  await t.test(
    `a large task is the same in pieces as whole, over every binding, in ${engine}`,
    { skip: engine === 'SQLite' && NO_SQLITE },
    async t => {
      const { runtime, store, url, id, whole, counts } = await served(t, engine)
      t.ok(JSON.stringify(whole).length > 2 * LARGE_BYTES)
      t.equal(whole.history?.length, 4)
      const before = counts.reads
      t.strictSame(await runtime.getTask({ id }), whole)
      t.ok(counts.reads - before > 1, 'it is read in pieces')
      t.strictSame((await rpc(url, 'GetTask', { id })).json['result'], whole)
      t.strictSame((await ask(`${url}tasks/${id}`)).json, whole)
      t.strictSame((await ask(`${url}tasks/${id}?historyLength=2`)).json, {
        ...whole,
        history: whole.history?.slice(-2)
      })
      t.match((await ask(`${url}tasks?includeArtifacts=true`)).json, { tasks: [whole] })
      for (const version of ['0.3', '0.1'])
        t.equal(
          artifactsIn((await rpc(url, 'tasks/get', { id }, { 'a2a-version': version })).json['result']),
          whole.artifacts?.length
        )
      t.equal(
        artifactsIn((await ask(`${url}v1/tasks/${id}`, { headers: { 'a2a-version': '0.3' } })).json),
        whole.artifacts?.length
      )
      const socket = await JsonSocket.open(t, url.replace('http', 'ws'))
      const call = async (method: 'GetTask' | 'ListTasks' | 'SubscribeToTask', params: object) =>
        (await socket.next(socket.request(method, params))).result
      t.strictSame(await call('GetTask', { id }), whole)
      t.match(await call('ListTasks', { includeArtifacts: true }), { tasks: [whole] })
      t.strictSame(await call('SubscribeToTask', { id }), { task: whole })
      const headers = { 'a2a-version': '1.0', 'content-type': 'application/json' }
      t.strictSame(await firstEvent(t, `${url}tasks/${id}:subscribe`, { headers }), { task: whole })
      const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SubscribeToTask', params: { id } })
      t.strictSame(await firstEvent(t, url, { method: 'POST', headers, body }), {
        jsonrpc: '2.0',
        id: 7,
        result: { task: whole }
      })
      t.strictSame(
        taskIn((await rpc(url, 'SendMessage', say('end', { taskId: id }))).json['result'] as never).artifacts?.length,
        whole.artifacts?.length
      )
      t.match(await refusal(runtime.cancelTask({ id })), { code: 'TaskNotCancelable' })
      const stored = await store.readTask({ tenant: '', principal: 'anonymous' }, id, { within: 1000 })
      if (!stored) throw new Error('A task was expected')
      const scope = { tenant: '', principal: 'anonymous' }
      t.equal(
        await loadWholeTask({ ...store, readEvents: async () => [] }, scope, stored, {}),
        undefined,
        'it is removed meanwhile'
      )
      t.equal(await loadWholeTask({ ...store, readTaskMessages: async () => [] }, scope, stored, {}), undefined)
      const gone: Store = { ...store, readEvents: async () => [], close: async () => {} }
      const { runtime: other } = start(t, { work: large }, { store: gone })
      t.match(await refusal(other.getTask({ id })), { code: 'TaskNotFound' })
      t.match(await other.listTasks({}), { tasks: [], totalSize: 1 })
    }
  )
}

await t.test('a large task is sent over WebSocket in fragments, before later messages', async t => {
  const { url, id, whole } = await served(t, 'memory')
  const socket = await JsonSocket.open(t, url.replace('http', 'ws'))
  for (const [i, method] of ['GetTask', 'ping', 'GetTask', 'none'].entries())
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: `${i}`, method, params: { id } }))
  const answers = new Map<unknown, unknown>()
  while (answers.size < 4) {
    const { id: name, result, error } = await socket.next()
    answers.set(name, result ?? error)
  }
  t.strictSame([answers.get('0'), answers.get('2')], [whole, whole])
  t.match([answers.get('1'), answers.get('3')], [{}, { code: -32601 }])
})

await t.test('large tasks are read one by one, as fast as their client reads them', async t => {
  const { url, id, counts, runtime } = await served(t, 'memory')
  const before = counts.reads
  const raw = await RawSocket.open(t, url)
  const request = (i: number) =>
    frameOf({
      payload: JSON.stringify({ jsonrpc: '2.0', id: i, method: i % 2 ? 'GetTask' : 'SubscribeToTask', params: { id } })
    })
  raw.write(Buffer.concat(Array.from({ length: 80 }, (_, i) => request(i))))
  await standsStill(() => counts.reads > before && counts.reads, 'the connection to be full')
  const single = await runtime.getTask({ id }).then(() => counts.reads)
  await runtime.getTask({ id })
  const each = counts.reads - single
  t.ok(counts.reads - before < 40 * each, `${counts.reads - before} reads`)
  raw.socket.destroy()
  const http = connect(Number(new URL(url).port), '127.0.0.1').on('error', () => {})
  http.pause()
  http.write(`GET /tasks/${id} HTTP/1.1\r\nHost: localhost\r\nA2A-Version: 1.0\r\n\r\n`.repeat(80))
  const started = counts.reads
  await standsStill(() => counts.reads > started && counts.reads, 'the connection to be full')
  t.ok(counts.reads - started < 40 * each)
  http.destroy()
  await once(http, 'close')
  await rest()
  t.match(await runtime.getTask({ id, historyLength: 0 }), { id })
})

await t.test('a large answer is sent after the answers before it', async t => {
  const sending = deferred()
  const waits: (Promise<void> | undefined)[] = [undefined, sending.promise, sending.promise]
  const sent: string[] = []
  const outbox = {
    get drained() {
      return waits.shift()
    },
    sendPieces: async (pieces: Iterable<string>) => void sent.push(...pieces)
  }
  const sharer = { user: {}, tenant: '' }
  const answers = new LargeAnswers(
    outbox as never,
    new AnswerBudget(new SharedLimit(100, { principalShare: 1, tenantShare: 1 })),
    sharer
  )
  const answer = new LargeAnswer(answers, 1, [], new AbortController().signal)
  await answer.reserve(10)
  const ended = answer.send({ a: 1 })
  await rest()
  t.strictSame(sent, [])
  sending.resolve()
  await ended
  t.match(sent.join(''), '"a":1')
})

await t.test('answers that are not large follow the large one that a client does not read yet', async t => {
  const ready = deferred()
  const { url, id } = await served(t, 'memory', async given =>
    textOf(given.message) === 'wait' ? ready.promise.then(() => ({})) : large(given)
  )
  const socket = await RawSocket.open(t, url)
  const ask = (number: number, method: string, params?: object) =>
    socket.send(JSON.stringify({ jsonrpc: '2.0', id: number, method, params }))
  // More than the buffers of the system take.
  const many = 12
  ask(many, 'SendMessage', say('wait'))
  for (let number = 0; number < many; number += 1) ask(number, 'GetTask', { id })
  let text = (await socket.frame())?.payload.toString() ?? ''
  ask(many + 1, 'ping')
  ready.resolve()
  const answered: number[] = []
  while (answered.length < many + 2) {
    const frame = await socket.frame()
    text += frame?.payload.toString() ?? ''
    if (frame?.isLast !== true) continue
    answered.push((JSON.parse(text) as { readonly id: number }).id)
    text = ''
  }
  t.strictSame(
    answered.toSorted((a, b) => a - b),
    Array.from({ length: many + 2 }, (_, number) => number)
  )
  t.equal(answered[0], 0, 'the large one was first')
})

await t.test("large answers wait for room in each user's order, and a single one always fits", async t => {
  const room = new AnswerBudget(new SharedLimit(100, { principalShare: 0.5, tenantShare: 1 }))
  const [anna, bob] = [{ user: 'anna' }, { user: 'bob' }]
  const entered: string[] = []
  const enter = async (name: string, sharer: Owner, bytes: number) => {
    const leave = await room.enter(sharer, bytes)
    entered.push(name)
    return leave
  }
  const first = await enter('anna 1', anna, 30)
  const waiting = [enter('anna 2', anna, 70), enter('anna 3', anna, 1), enter('bob 1', bob, 20), enter('bob 2', bob, 1)]
  await rest()
  t.strictSame(entered, ['anna 1', 'bob 1', 'bob 2'])
  first()
  const leave = await waiting[0]
  leave?.()
  await Promise.all(waiting)
  t.strictSame(entered, ['anna 1', 'bob 1', 'bob 2', 'anna 2', 'anna 3'])
})

await t.test("a large commit has its own batch, and a change waits for nobody else's commits", t => {
  const queue = new WriteQueue()
  const waiting = { resolve() {}, reject() {} }
  const commit = (principal: string, characters: number) =>
    queue.addCommit(
      { tenant: '', principal, snapshot: 'x'.repeat(characters), log: [], tasks: [], journal: [], sends: [] } as never,
      waiting
    )
  for (const characters of [10, 300_000, 300_000]) commit('anna', characters)
  queue.addChange({ webhooks: { delete: 'w', scope: { tenant: '', principal: 'bob' }, taskId: 't' } }, waiting)
  commit('bob', 20)
  const batches = queue
    .takeAll()
    .map(({ commits, change }) => [...commits.map(({ snapshot }) => snapshot.length), ...(change ? ['change'] : [])])
  t.ok(batches.findIndex(batch => batch.includes('change')) < 2, JSON.stringify(batches))
  for (const batch of batches) if (batch.includes(300_000)) t.strictSame(batch, [300_000])
  t.end()
})

await t.test('small batches share a transaction, but not with a large one', t => {
  const small = { commits: [1, 2], change: undefined, characters: 1000 }
  const large = { commits: [3], change: undefined, characters: 3_000_000 }
  const change = { commits: [], change: {}, characters: 256 * 1024 }
  const crowd = { commits: Array.from({ length: 200 }, (_, i) => i), change: undefined, characters: 1000 }
  const groups = (...batches: { commits: number[]; change: object | undefined; characters: number }[]) => {
    const found = []
    while (batches.length > 0) found.push(takeTogether(batches))
    return found
  }
  t.strictSame(groups(small, small, large, small), [[small, small], [large], [small]])
  t.strictSame(groups(large, large, small), [[large], [large], [small]])
  t.strictSame(groups(small, change, small), [[small, change], [small]])
  t.strictSame(groups(crowd, crowd, crowd), [[crowd, crowd], [crowd]])
  t.strictSame(takeTogether([]), [])
  t.end()
})

await t.test('an answer frees its room once: when sent, disconnected or aborted', async t => {
  const shares = new SharedLimit(100, { principalShare: 1, tenantShare: 1 })
  const room = new AnswerBudget(shares)
  const space = () => new AnswerSpace(bytes => room.enter({}, bytes))
  const sent = space()
  t.notOk(sent.isLarge)
  await sent.take(60)
  await sent.take(1000)
  t.ok(sent.isLarge)
  t.equal(shares.used, 60)
  t.strictSame([...sent.sent(['a', 'b'])], ['a', 'b'])
  t.equal(shares.used, 0)
  const left = space()
  await left.take(10)
  for (const piece of left.sent(['a', 'b'])) if (piece === 'a') break
  t.equal(shares.used, 0)
  const given = space()
  await given.take(10)
  given.end()
  given.end()
  t.equal(shares.used, 0)
})

await t.test('a large answer frees the common room when sent or failed, over every binding', async t => {
  const { store, id } = await served(t, 'memory')
  const isGone = { now: false }
  const flaky: Store = {
    ...store,
    readEvents: async (...args) => (isGone.now ? [] : store.readEvents(...args)),
    close: async () => {}
  }
  const { runtime } = start(t, { work: large }, { store: flaky })
  const at = await serve(runtime, { port: 0, dialects: await legacyDialects(runtime) })
  t.teardown(() => at.close())
  const { largeAnswers } = runtime.settings
  const counts = { inside: 0, entered: 0 }
  const enter = largeAnswers.enter.bind(largeAnswers)
  largeAnswers.enter = async (...args) => {
    const leave = await enter(...args)
    counts.inside += 1
    counts.entered += 1
    return () => {
      counts.inside -= 1
      leave()
    }
  }
  const headers = { 'a2a-version': '1.0' }
  const socket = await JsonSocket.open(t, at.url.replace('http', 'ws'))
  const asks = [
    () => socket.next(socket.request('GetTask', { id })),
    () => rpc(at.url, 'GetTask', { id }),
    () => ask(`${at.url}tasks/${id}`),
    () => ask(`${at.url}v1/tasks/${id}`, { headers: { 'a2a-version': '0.3' } }),
    async () => {
      const response = await fetch(`${at.url}tasks/${id}:subscribe`, { headers })
      const reader = response.body?.getReader()
      await reader?.read()
      await reader?.cancel()
    }
  ]
  for (const now of [false, true]) {
    isGone.now = now
    for (const [i, asked] of asks.entries()) {
      await asked()
      await until(() => counts.inside === 0, `the room to be left by answer ${i}`)
    }
  }
  t.equal(counts.entered, 2 * asks.length)
})

await t.test('a large response to a message is written in pieces', async t => {
  const { runtime } = start(t, { work: () => ({ artifact: hard.repeat(11) }) })
  const handler = httpHandler(runtime)
  const at = await serve(runtime, { port: 0 })
  t.teardown(() => at.close())
  const answer = await rpc(at.url, 'SendMessage', say('a'))
  t.equal(answer.headers.get('content-length'), null)
  t.match(taskIn(answer.json['result'] as never).artifacts, [{ parts: [{ text: hard.repeat(11) }] }])
  const mounted = await handler(
    new Request('http://127.0.0.1/message:send', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify(say('b'))
    })
  )
  t.match(taskIn((await mounted.json()) as never).artifacts, [{ parts: [{ text: hard.repeat(11) }] }])
})

await t.test(
  'a response is made of the events that were waited for, unless they are large or another message reached the task',
  async t => {
    const inner = memoryStore()
    let reads = 0
    const readTask: Store['readTask'] = (...args) => {
      reads += 1
      return inner.readTask(...args)
    }
    const long = 'A'.repeat(LARGE_BYTES + 4)
    const outputs: Record<string, WorkResult> = {
      small: {
        artifact: { parts: [{ text: 'x' }, { data: { a: 1 } }, { raw: 'AAAA' }, { url: 'https://agent.example/' }] }
      },
      text: { artifact: long },
      raw: { artifact: { parts: [{ raw: long }] } },
      data: { artifact: { parts: [{ data: [long] }] } }
    }
    const gate = deferred()
    const work: WorkFunction = async ({ message, emit: tell }) => {
      const asked = textOf(message)
      if (asked === 'words') tell(progress(long))
      if (asked === 'wait') await gate.promise
      return outputs[asked]
    }
    const { runtime } = start(t, { work, messages: 'queue' }, { store: { ...inner, readTask } })
    for (const asked of ['small', 'text', 'raw', 'data', 'words']) {
      reads = 0
      const answer = taskIn(await runtime.sendMessage(say(asked)))
      t.strictSame(
        [answer.status.state, answer.history?.[0] && textOf(answer.history[0]), answer.history?.length],
        ['TASK_STATE_COMPLETED', asked, asked === 'words' ? 2 : 1]
      )
      t.match(answer, outputs[asked] ? { artifacts: [{ parts: Array }] } : {})
      t.equal(reads > 0, asked !== 'small', asked)
    }
    const waiting = runtime.sendMessage(say('wait'))
    const { id } = await until(async () => (await runtime.listTasks({ status: 'TASK_STATE_WORKING' })).tasks[0])
    await runtime.sendMessage(say('more', { taskId: id }, { returnImmediately: true }))
    gate.resolve()
    t.strictSame(taskIn(await waiting).history?.map(textOf), ['wait', 'more'])
  }
)

await t.test('a task that is read in pieces has its messages in order', async t => {
  const key = { tenant: '', principal: 'anonymous', contextId: 'c' }
  const message = (messageId: string) => ({ messageId, role: 'ROLE_USER' as const, parts: [{ text: messageId }] })
  const said = [{ message: message('first') }, { message: message('last'), generation: 1 }]
  const event = {
    taskId: 't',
    generation: 1,
    update: {
      statusUpdate: {
        taskId: 't',
        contextId: 'c',
        status: {
          state: 'TASK_STATE_WORKING' as const,
          message: { ...message('between'), role: 'ROLE_AGENT' as const }
        }
      }
    }
  }
  const store: Store = { ...memoryStore(), readTaskMessages: async () => said, readEvents: async () => [event] }
  const stored = {
    task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' as const } },
    generation: 1,
    large: { messages: 2, bytes: 1 }
  }
  const read = await loadWholeTask(store, key, stored, {})
  t.strictSame(
    read?.task.history?.map(({ messageId }) => messageId),
    ['first', 'last']
  )
  t.equal(read?.task.status.message?.messageId, 'between')
})

await t.test('a tap sees a message that was sent in pieces, but not an aborted one', async t => {
  const stream = Object.assign(new EventEmitter(), { writableLength: 0, cork() {}, uncork() {} })
  const sent: string[] = []
  const socket = { readyState: 1, OPEN: 1, send: (piece: string) => void sent.push(piece) }
  const seen: string[] = []
  const outbox = new Outbox(socket as never, stream as never, new ReadPause(socket as never), new TestClock(), frame =>
    seen.push(frame)
  )
  await outbox.sendPieces(['a', 'b'], 'shown')
  t.strictSame([sent, seen], [['a', 'b', ''], ['shown']])
  socket.readyState = 3
  await outbox.sendPieces(['c'], 'shown')
  t.strictSame([sent, seen], [['a', 'b', ''], ['shown']])
})

for (const engine of ['memory', 'SQLite'] as const) {
  await t.test(
    `a page of tasks ends before 1 MiB and the next continues it, in ${engine}`,
    { skip: engine === 'SQLite' && NO_SQLITE },
    async t => {
      const kept = storeOf(t, engine)
      let reads = 0
      const store: Store = { ...kept, readEvents: (...args) => ((reads += 1), kept.readEvents(...args)) }
      const { runtime } = start(
        t,
        {
          work: ({ message }) => ({
            artifact: message.parts[0] && 'text' in message.parts[0] ? 'x'.repeat(Number(message.parts[0].text)) : ''
          })
        },
        { store }
      )
      const ids = []
      for (const size of [10, 400_000, 400_000, 400_000, 3_000_000, ...Array<number>(9).fill(100_000), 10, 10])
        ids.push(taskIn(await runtime.sendMessage(say(String(size)))).id)
      const sizes: number[] = []
      const listed = []
      const before = reads
      for (let pageToken = ''; sizes.length === 0 || pageToken;) {
        const page = await runtime.listTasks({ includeArtifacts: true, ...(pageToken && { pageToken }) })
        t.equal(page.totalSize, 16)
        sizes.push(page.tasks.length)
        listed.push(...page.tasks)
        pageToken = page.nextPageToken
      }
      t.ok(
        reads - before > 4,
        'those of a page that do not fit into 512 KiB are read in pieces, not the task of 3 MB alone'
      )
      t.strictSame(new Set(listed.map(({ id }) => id)), new Set(ids))
      t.equal(listed.length, 16)
      t.ok(sizes.length >= 3)
      for (const task of listed) t.strictSame(task, await runtime.getTask({ id: task.id }))
      t.equal((await runtime.listTasks({ includeArtifacts: true, pageSize: 1 })).tasks.length, 1)
    }
  )
}

await t.test('a reader of the file sees the same task after many reads', { skip: NO_SQLITE }, async t => {
  const file = join(t.testdir(), 'tasks.db')
  const store = sqliteStore(file)
  const work: WorkFunction = async ({ ask, emit: tell }) => {
    for (;;) {
      for (let i = 0; i < 70; i += 1) tell(artifact({ artifactId: 'a', parts: [data(i)] }, { append: true }))
      await ask(inputRequired('And?'))
    }
  }
  const { runtime } = start(t, { work }, { store })
  const { id } = taskIn(await runtime.sendMessage(say('first')))
  const scope = { tenant: '', principal: 'anonymous' }
  for (const text of ['second', 'third', 'fourth']) {
    await store.readTask(scope, id)
    await runtime.sendMessage(say(text, { taskId: id }))
    const reader = readSqlite(file)
    const seen = await reader.readTask(scope, id)
    await reader.close()
    t.strictSame(await store.readTask(scope, id), seen)
    t.ok(JSON.stringify(seen?.task.history).includes(text))
  }
  await store.erase(scope)
  t.equal(await store.readTask(scope, id), undefined)
})

/** Requests for the large task over each kind of endpoint. */
const ASKED: Readonly<Record<string, (url: string, task: Task, signal: AbortSignal) => Promise<unknown>>> = {
  'HTTP+JSON': (url, { id }, signal) => fetch(`${url}tasks/${id}`, { headers: { 'a2a-version': '1.0' }, signal }),
  JSONRPC: (url, { id }, signal) =>
    fetch(url, {
      method: 'POST',
      headers: { 'a2a-version': '1.0', 'Content-Type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'GetTask', params: { id } }),
      signal
    }),
  MCP: (url, { id }, signal) =>
    mcpPeer(request => fetch(request as Request), { address: `${url}mcp`, tasks: true }).rpc(
      'tasks/get',
      { taskId: id },
      signal
    ),
  'AG-UI': (url, { contextId }, signal) =>
    fetch(`${url}ag-ui`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({
        threadId: contextId,
        runId: 'r',
        messages: [{ id: 'm', role: 'assistant', content: '' }]
      }),
      signal
    })
}

for (const [binding, askFor] of Object.entries(ASKED))
  await t.test(`nothing is read for a client of ${binding} that disconnected while its answer waited`, async t => {
    const { store, whole } = await served(t, 'memory')
    const counts = { reads: 0 }
    const counted: Store = {
      ...store,
      readEvents: (...args) => ((counts.reads += 1), store.readEvents(...args)),
      close: async () => {}
    }
    const { runtime } = start(t, { work: large }, { store: counted, limits: { advanced: { answerBytes: 1 } } })
    const at = await serve(runtime, { port: 0, mcp: true, agui: true })
    t.teardown(() => at.close())
    const { largeAnswers } = runtime.settings
    const leave = await largeAnswers.enter({}, 1)
    let entered = 0
    const enter = largeAnswers.enter.bind(largeAnswers)
    largeAnswers.enter = (...args) => ((entered += 1), enter(...args))
    const gone = new AbortController()
    const asked = askFor(at.url, whole, gone.signal).catch(() => {})
    await until(() => entered === 1, 'the answer to wait')
    gone.abort()
    await asked
    await rest()
    leave()
    const leaveAgain = await enter({}, 1000)
    leaveAgain()
    await rest()
    t.equal(counts.reads, 0)
  })

await t.test('a reader of the file reads pieces of tasks as the store does', { skip: NO_SQLITE }, async t => {
  const file = join(t.testdir(), 'tasks.db')
  const store = sqliteStore(file)
  const { runtime } = start(t, { work: () => ({ artifact: 'done' }) }, { store })
  const { id } = taskIn(await runtime.sendMessage(say('hello')))
  const reader = readSqlite(file)
  t.teardown(() => reader.close())
  const scope = { tenant: '', principal: 'anonymous' }
  t.strictSame(await reader.readTaskMessages(scope, id, 0, 1000), await store.readTaskMessages(scope, id, 0, 1000))
  t.strictSame(await reader.readEvents(scope, id, 0, 10, 1000), await store.readEvents(scope, id, 0, 10, 1000))
})

await t.test('JSON in pieces equals the whole JSON', t => {
  const deep = { a: { b: { c: { d: { e: { f: { g: { h: { i: { j: [1] } } } } } } } } } }
  const surrogates = ['x'.repeat(65_535) + '\u{1f600}'.repeat(70_000), '\ud800'.repeat(70_000)]
  const values = [
    null,
    1,
    'text',
    true,
    [],
    {},
    [[], {}, [undefined]],
    { a: undefined, b: 1 },
    { date: new Date(0) },
    deep,
    hard,
    ...surrogates,
    [1, ['x'.repeat(70_000), 2], undefined, 'y', hard, {}],
    { ['n'.repeat(70_000)]: undefined },
    { none: undefined, some: hard },
    { [hard]: hard, list: Array.from({ length: 10_000 }, (_, i) => ({ i, text: 'x'.repeat(50) })) }
  ]
  for (const value of values) {
    const pieces = [...jsonPieces(value)]
    t.ok(pieces.join('') === JSON.stringify(value), JSON.stringify(value).slice(0, 60))
    t.ok(pieces.every(piece => piece.length < 1_000_000))
  }
  t.ok([...jsonPieces(values.at(-1))].length > 10)
  t.end()
})

await t.test('an event in pieces contains no comment, and ends when its client disconnects', async t => {
  const clock = new TestClock()
  const sent: string[] = []
  let gone = () => {}
  const sink: StreamSink = {
    open: events => (gone = events.gone),
    freeBytes: 1_000_000,
    write: text => void sent.push(text),
    end() {},
    cutOff() {}
  }
  const stream = new EventStream(sink, clock, () => {})
  function* pieces() {
    yield 'a'.repeat(70_000)
    clock.increment(KEEP_ALIVE_MS)
    yield 'b'
  }
  await stream.sendPieces(sentPieces(pieces(), undefined))
  clock.increment(KEEP_ALIVE_MS)
  await until(() => sent.join('').endsWith(':\n\n'))
  t.equal(sent.join(''), `data: ${'a'.repeat(70_000)}b\n\n:\n\n`)
  gone()
  sent.length = 0
  await stream.sendPieces(['late'])
  t.strictSame(sent, [])
})
