import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { z } from 'zod'
import { fromPromise, setup } from 'xstate'
import type { AuthorizationReceived } from '../../../runtime/authoring/input-schema.ts'
import type { ActorRow, ActorStep } from '../../../adapters/inspector/feed.ts'
import { FLUSH_MS, GRACE_MS } from '../../../adapters/inspector/hub.ts'
import type { Proving, TestProgress } from '../../../adapters/inspector/test-result.ts'
import { inspect } from '../../../adapters/inspector/index.ts'
import {
  RECORDED_A_MINUTE,
  REMEMBERED_ACTORS,
  REMEMBERED_CONTEXTS,
  REMEMBERED_STEPS
} from '../../../adapters/inspector/recorder/recorder.ts'
import { taskMachine } from '../../../machines/task.machine.ts'
import { setupWork } from '../../../runtime/authoring/setup-work.ts'
import { accepted } from '../../../runtime/authoring/words.ts'
import { negotiation } from '../../../runtime/negotiation/negotiation.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Commit, TaskPage } from '../../../runtime/store/store.ts'
import { transitionName, transitionsOf, statesOf } from '../../../runtime/xstate/state-nodes.ts'
import { FeedReader } from '../../fixtures/pages/feed-reader.ts'
import { inspected } from '../../fixtures/pages/inspected-agent.ts'
import { deferred, open, reaches, rest, say, start, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'

/** A step, shortly: who sent what to whom, what was emitted, which transitions were taken. */
function brief({ kind, event, transitions }: ActorStep): string {
  return kind === 'microstep'
    ? `took ${transitions?.join(', ') || 'its first states'}`
    : `${kind} ${event.type.replace(/actor\..*/, 'actor')}`
}

await t.test('a page', async t => {
  await t.test("receives the agent, its charts, and its address under the page's host name", async t => {
    const { url, clock, inspector } = await inspected(t, {
      work: obedient,
      card: { name: 'Painter', description: 'Paints.', version: '2.0.0' }
    })
    const page = await FeedReader.open(t, url.replace('127.0.0.1', 'localhost'), clock, { family: 4 })
    const { charts, ...hello } = await page.frame('hello')
    t.match(hello, {
      type: 'hello',
      agent: { name: 'Painter', description: 'Paints.', version: '2.0.0' },
      url: url.replace('http://127.0.0.1', 'ws://localhost'),
      nowMs: Number,
      instance: /.{10,}/,
      authorizes: true
    })
    t.strictSame(
      charts.map(({ id, svg }) => `${id} ${svg}`),
      ['work <svg>(machine)</svg>', 'task <svg>task</svg>', 'context <svg>context</svg>']
    )
    t.match(charts[0]?.mermaid, /^stateDiagram-v2/)
    t.equal(inspector.pageUrl, url)
  })

  await t.test('receives each step of the work whose result was stored, without its secrets', async t => {
    const { page: connect, runtime } = await inspected(t, {
      work: async ({ step }) => {
        await step('price', () => ({ euros: 60, apiKey: 'a-long-key-of-anna' }))
        await step('a/b', () => undefined)
        return { artifact: 'done' }
      }
    })
    const page = await connect()
    const { id, contextId = '' } = await open(runtime, 'a price')
    await reaches(runtime, id, 'completed')
    page.ask({ type: 'watch', contextId })
    const { steps } = await page.frame('steps', ({ steps }) => steps.some(({ event }) => event.type === 'step a/b'))
    const stored = steps.filter(({ kind }) => kind === 'stored')
    t.match(stored, [
      { event: { type: 'step price', name: 'price', result: { euros: 60 } }, taskId: String, generation: Number },
      { event: { type: 'step a/b', name: 'a/b' } }
    ])
    t.notMatch(JSON.stringify(stored), 'a-long-key-of-anna')
  })

  await t.test('receives charts without a drawing where drawing fails, and the reason is logged', async t => {
    const { page, log } = await inspected(
      t,
      { work: () => ({}) },
      { draw: () => Promise.reject(new TypeError('Install elkjs.')) }
    )
    const { charts } = await (await page()).frame('hello')
    t.strictSame(
      charts.map(({ id, svg }) => [id, svg]),
      [
        ['task', ''],
        ['context', '']
      ]
    )
    t.match(log, [
      { message: 'a chart could not be drawn', details: { chart: 'task' } },
      { message: 'a chart could not be drawn' }
    ])
  })

  await t.test('receives the stored tasks, and each change', async t => {
    const { runtime, page, clock } = await inspected(t, { work: obedient })
    const openedMs = clock.now()
    const asked = taskIn(await runtime.sendMessage(say('ask', { contextId: 'c' })))
    clock.increment(1000)
    const reader = await page()
    const { rows } = await reader.frame('tasks', ({ rows }) => rows.length > 0)
    const row = {
      taskId: asked.id,
      contextId: 'c',
      owner: { tenant: '', principal: 'anonymous' },
      state: 'TASK_STATE_INPUT_REQUIRED',
      generation: 4,
      openedMs,
      changedMs: openedMs,
      title: 'ask'
    }
    t.strictSame(rows, [row])
    await runtime.sendMessage(say('red', { taskId: asked.id }))
    const {
      rows: [changed]
    } = await reader.frame('tasks', ({ rows }) => rows[0]?.state === 'TASK_STATE_COMPLETED')
    t.match(changed, { ...row, state: 'TASK_STATE_COMPLETED', generation: 8, changedMs: Number })
    const fresh = taskIn(await runtime.sendMessage(say(` ${'long '.repeat(40)}token=secret`)))
    const {
      rows: [opened]
    } = await reader.frame('tasks', ({ rows }) => rows[0]?.taskId === fresh.id)
    t.equal(opened?.title, 'long '.repeat(16))
    await runtime.erase({ contextId: 'c' })
    t.strictSame((await reader.frame('tasks', ({ removed }) => removed.length > 0)).removed, [asked.id])
  })

  await t.test('receives all tasks again after a reconnect, the last changed first', async t => {
    const { runtime, page, clock } = await inspected(t, { work: obedient })
    const first = await page()
    await first.frame('hello')
    const ids: string[] = []
    for (const text of ['a', 'b', 'c']) {
      clock.increment(10)
      ids.unshift(taskIn(await runtime.sendMessage(say(text))).id)
    }
    const second = await page()
    t.strictSame(
      (await second.frame('tasks')).rows.map(({ taskId }) => taskId),
      ids
    )
  })

  await t.test("receives every actor's steps, with the generations that they led to", async t => {
    const { runtime, page } = await inspected(t, { work: obedient })
    const reader = await page()
    await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'c' })
    t.strictSame(await reader.frame('actors'), { type: 'actors', contextId: 'c', rows: [], gone: [] })
    const { id: taskId } = taskIn(await runtime.sendMessage(say('ask', { contextId: 'c' })))
    const { steps } = await reader.frame('steps', ({ steps }) => steps.some(({ generation }) => generation === 4))
    t.strictSame(
      steps.map(({ n }) => n),
      steps.map((_, i) => i + 1)
    )
    t.strictSame(steps.filter(({ kind }) => kind !== 'event').map(brief), [
      'took its first states',
      'took context.idle on request.received (branch 4) to busy',
      'emitted task.opened',
      'emitted status.changed',
      'took its first states',
      'took context.busy on task.start stays',
      'took (machine).choosing on its own (branch 2) to asking',
      'took task.active.submitted on task.start to started',
      'emitted status.changed',
      'took task.active.started on work.asked (branch 2) to inputRequired',
      'emitted status.changed'
    ])
    const names = new Set(statesOf(taskMachine.root).flatMap(transitionsOf).map(transitionName))
    const [context, task, work] = (await reader.frame('actors', ({ rows }) => rows.length === 3)).rows
    for (const { to, transitions = [] } of steps.filter(({ to }) => to === task?.sessionId))
      for (const name of transitions) t.ok(names.has(name), `${to} ${name}`)
    t.match(
      [context, task, work],
      [
        { name: 'context', kind: 'context', chart: 'context', status: 'active', states: ['context', 'context.busy'] },
        {
          name: taskId,
          kind: 'task',
          chart: 'task',
          taskId,
          parent: context?.sessionId,
          states: ['task', 'task.active', 'task.active.started', 'task.active.started.inputRequired']
        },
        {
          name: 'work',
          kind: 'work',
          chart: 'work',
          taskId,
          parent: task?.sessionId,
          states: ['(machine)', '(machine).asking']
        }
      ]
    )
    const asked = steps.find(
      ({ to, transitions = [] }) => to === task?.sessionId && transitions.some(name => name.includes('work.asked'))
    )
    t.match(asked, {
      states: ['task', 'task.active', 'task.active.started', 'task.active.started.inputRequired'],
      taskId,
      generation: 4
    })
    t.match(
      steps.find(({ event }) => event.type === 'request.received'),
      {
        kind: 'event',
        from: undefined,
        to: context?.sessionId,
        event: { request: { message: { parts: [{ text: 'ask' }] } } }
      }
    )
    await runtime.sendMessage(say('red', { taskId }))
    const over = await reader.frame('actors', ({ rows }) => rows.some(({ status }) => status === 'done'))
    t.match(
      over.rows.filter(({ kind }) => kind !== 'context'),
      [
        { status: 'done', states: ['task', 'task.completed'] },
        { status: 'done', states: ['(machine)', '(machine).done'] }
      ]
    )
  })

  await t.test('receives the generations of slow commits, each of its own commit', async t => {
    const gate = deferred()
    const inner = memoryStore()
    const store = { ...inner, commit: (commit: Commit) => gate.promise.then(() => inner.commit(commit)) }
    const { runtime, page } = await inspected(t, { work: obedient }, {}, { store })
    const reader = await page()
    await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'c' })
    await reader.frame('actors')
    const sent = [
      runtime.sendMessage(say('ask', { contextId: 'c' })),
      rest().then(() => runtime.sendMessage(say('ask', { contextId: 'c' })))
    ]
    await rest()
    await rest()
    gate.resolve()
    await Promise.all(sent)
    const seen = () => reader.all('steps').flatMap(({ steps }) => steps)
    await reader.frame('steps', ({ steps }) => steps.some(({ generation }) => generation === 4))
    const [first = ''] = seen().flatMap(({ taskId }) => taskId ?? [])
    t.strictSame(
      [
        ...new Set(
          seen()
            .filter(({ taskId }) => taskId === first)
            .map(({ generation }) => generation)
        )
      ],
      [2, 4]
    )
  })

  await t.test('that connects late receives the current actors and the remembered steps', async t => {
    const { runtime, page } = await inspected(t, { work: obedient })
    await open(runtime, 'ask', { contextId: 'before' })
    const early = await page()
    await early.frame('hello')
    await open(runtime, 'ask', { contextId: 'while' })
    const late = await page()
    await late.frame('hello')
    late.ask({ type: 'watch', contextId: 'before' })
    t.strictSame(
      (await late.frame('actors')).rows.map(({ kind }) => kind),
      ['context', 'task', 'work']
    )
    late.ask({ type: 'watch', contextId: 'while' })
    t.equal((await late.frame('steps')).steps[0]?.n, 1)
    t.equal(late.all('steps').filter(({ contextId }) => contextId === 'before').length, 0)
  })

  await t.test('that reconnects resumes after its last step, in the same instance only', async t => {
    const { runtime, page } = await inspected(t, { work: obedient })
    const stays = await page()
    await stays.frame('hello')
    await runtime.sendMessage(say('x', { contextId: 'c' }))
    stays.ask({ type: 'watch', contextId: 'c' })
    const { steps } = await stays.frame('steps')
    const again = await page()
    const { instance } = await again.frame('hello')
    again.ask({ type: 'watch', contextId: 'c', afterStep: 5, instance })
    t.strictSame((await again.frame('steps')).steps, steps.slice(5))
    const from = again.frames.length
    again.ask({ type: 'watch', contextId: 'c', afterStep: 5, instance: 'another' })
    t.strictSame((await again.frame('steps', () => true, from)).steps, steps)
    again.ask({ type: 'watch', contextId: null })
    const watched = again.frames.length
    stays.ask({ type: 'watch', contextId: 'c' })
    await stays.frame('steps', () => true, stays.frames.length)
    t.equal(again.all('steps').length, 2, 'a page that stops watching receives nothing more of it')
    t.equal(again.frames.length, watched)
  })

  await t.test("shows each actor's role in its context: negotiations, children of works, functions", async t => {
    const child = setup({}).createMachine({ id: 'drying', initial: 'wet', states: { wet: {} } })
    const work = setupWork({ actors: { dry: child, wait: fromPromise(() => new Promise(() => {})) } }).createMachine({
      initial: 'on',
      states: {
        on: {
          invoke: [
            { src: 'dry', id: 'dry' },
            { src: 'wait', id: 'wait' }
          ]
        }
      }
    })
    const { runtime, page } = await inspected(t, {
      work,
      negotiate: negotiation({ terms: z.object({}), respond: () => accepted({}) })
    })
    const reader = await page()
    const { charts } = await reader.frame('hello')
    t.strictSame(
      charts.map(({ id }) => id),
      ['work', 'child:dry', 'negotiation', 'task', 'context']
    )
    reader.ask({ type: 'watch', contextId: 'c' })
    await open(runtime, 'x', { contextId: 'c' })
    const rows = new Map(
      (
        await until(async () => {
          await reader.frame('actors')
          const rows = reader.all('actors').flatMap(({ rows }) => rows)
          return rows.some(({ name }) => name === 'wait') && rows
        })
      ).map(row => [row.name, row])
    )
    t.match(rows.get('bargaining'), { kind: 'negotiation', chart: 'negotiation' })
    t.match(rows.get('respond'), { kind: 'child', chart: undefined, states: [] })
    t.match(rows.get('dry'), { kind: 'child', chart: 'child:dry', states: ['drying', 'drying.wet'], taskId: String })
    t.match(rows.get('wait'), { kind: 'child', chart: undefined, states: [] })
  })

  await t.test('shows a crashed actor, and each actor once after its context has left memory', async t => {
    const failing = fromPromise(() => Promise.reject(new Error('no paint')))
    const work = setupWork({ actors: { paint: failing } }).createMachine({
      initial: 'on',
      states: {
        on: { invoke: { id: 'paint', src: 'paint', onError: 'off' } },
        off: { tags: 'input-required', meta: { prompt: 'Go on?' }, on: { 'message.received': 'on' } }
      }
    })
    const { runtime, page, clock } = await inspected(t, { work }, {}, { limits: { advanced: { idleContexts: 1 } } })
    const reader = await page()
    await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'c' })
    await runtime.sendMessage(say('x', { contextId: 'c' }))
    t.match(await reader.frame('actors', ({ rows }) => rows.some(({ status }) => status === 'error')), {
      rows: [{}, {}, {}, { name: 'paint', status: 'error' }]
    })
    const { id: taskId } = await runtime.listTasks({ contextId: 'c' }).then(({ tasks: [task] }) => task ?? { id: '' })
    await runtime.sendMessage(say('x', { contextId: 'd' }))
    const late = await page()
    await late.frame('hello')
    late.ask({ type: 'watch', contextId: 'c' })
    t.match((await late.frame('actors')).rows, [
      { kind: 'context', status: 'active' },
      { kind: 'task', status: 'active' },
      { kind: 'work', status: 'active', states: ['(machine)', '(machine).off'] },
      { name: 'paint', status: 'error' }
    ])
    await runtime.sendMessage(say('x', { taskId }))
    const rows = new Map<string, ActorRow>()
    await until(() => {
      clock.increment(FLUSH_MS)
      for (const actors of reader.all('actors')) for (const row of actors.rows) rows.set(row.sessionId, row)
      return [...rows.values()].filter(({ name }) => name === 'paint').length === 2
    })
    t.strictSame(
      [...rows.values()].map(({ kind }) => kind).toSorted(),
      ['child', 'child', 'context', 'task', 'work'],
      'paint has run twice'
    )
  })

  await t.test(
    'shows the actors of a replaced agent as they wait, and once after the answer, unless they do not fit the new one',
    async t => {
      const wait = fromPromise(() => new Promise(() => {}))
      const asking = {
        invoke: { id: 'wait', src: 'wait' },
        tags: 'input-required',
        meta: { prompt: 'Go on?' }
      } as const
      const firstWork = setupWork({ actors: { wait } }).createMachine({
        initial: 'asking',
        states: { asking: { ...asking, on: { 'message.received': 'done' } }, done: { type: 'final' } }
      })
      const otherWork = setupWork({}).createMachine({ initial: 'done', states: { done: { type: 'final' } } })
      const [chartWaits, functionWaits] = [
        ['context active', 'task active', 'work active', 'child active'],
        ['context active', 'task active', 'work active']
      ]
      for (const [before, after, waits, ends] of [
        [firstWork, firstWork, chartWaits, ['child stopped', 'context active', 'task done', 'work done']],
        [obedient, obedient, functionWaits, ['context active', 'task done', 'work done']],
        // The stored task does not fit the new chart, so it fails.
        [firstWork, otherWork, ['child stopped', 'context active', 'task done', 'work stopped'], undefined]
      ] as const) {
        const store = memoryStore()
        const { runtime, inspector, page, clock } = await inspected(
          t,
          { work: before },
          { alwaysRecord: true },
          { store: { ...store, close: async () => {} } }
        )
        const { id: taskId } = await open(runtime, 'ask', { contextId: 'c' })
        await reaches(runtime, taskId, 'input-required')
        await runtime.close()
        const next = start(t, { work: after }, { store, clock })
        inspector.use(next.runtime, 'ws://127.0.0.1:9/')
        const reader = await page()
        await reader.frame('hello')
        reader.ask({ type: 'watch', contextId: 'c' })
        const rows = new Map<string, ActorRow>()
        const shown = () => {
          clock.increment(FLUSH_MS)
          for (const actors of reader.all('actors')) for (const row of actors.rows) rows.set(row.sessionId, row)
          return [...rows.values()].map(({ kind, status }) => `${kind} ${status}`).toSorted()
        }
        const shows = (expected: readonly string[]) =>
          until(
            () => shown().join() === expected.toSorted().join(),
            () => `${expected.join()}, but ${shown().join()}`
          )
        await shows(waits)
        if (!ends) continue
        await next.runtime.sendMessage(say('go on', { taskId }))
        await shows(ends)
        const known = new Set(rows.keys())
        const steps = reader.all('steps').flatMap(({ steps }) => steps)
        t.ok(
          steps.every(({ from, to }) => known.has(to) && (from === undefined || known.has(from))),
          'and the steps before and after are theirs'
        )
      }
    }
  )
})

await t.test('shown data', async t => {
  await t.test('contains no secrets', async t => {
    const { runtime, page } = await inspected(t, { work: obedient })
    const reader = await page()
    await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'c' })
    reader.ask({ type: 'frames', on: true })
    await rest()
    await runtime.sendMessage(say('password=hunter2', { contextId: 'c', metadata: { apiKey: 'sesame' } }))
    await reader.frame('steps', ({ steps }) => steps.some(({ event }) => event.type.startsWith('xstate.done')))
    const text = JSON.stringify(reader.frames)
    t.notMatch(text, /hunter2|sesame/)
    t.match(text, 'password=[redacted]')
  })

  await t.test('comes from the hook; a long event or a failing hook leaves only the type', async t => {
    const redact = (value: unknown) => {
      if (JSON.stringify(value).includes('boom')) throw new Error('no')
      return typeof value === 'string' ? 7 : { ...(value as object), seen: true }
    }
    const { runtime, page } = await inspected(t, { work: obedient }, { redact })
    const reader = await page()
    await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'c' })
    await runtime.sendMessage(say('x'.repeat(5000), { contextId: 'c' }))
    const { steps } = await reader.frame('steps', ({ steps }) => steps.some(({ event }) => event.seen === true))
    t.strictSame(steps.find(({ event }) => event.type === 'request.received')?.event, {
      type: 'request.received',
      cut: true
    })
    t.equal(
      (await reader.frame('tasks', ({ rows }) => rows.length > 0)).rows[0]?.title,
      '',
      'a title that is no text is omitted'
    )
    reader.ask({ type: 'watch', contextId: 'd' })
    await runtime.sendMessage(say('ask', { contextId: 'd', metadata: { boom: 1 } }))
    const told = await reader.frame('steps', ({ contextId }) => contextId === 'd')
    t.strictSame(told.steps.find(({ event }) => event.type === 'request.received')?.event, {
      type: 'request.received',
      cut: true
    })
  })

  await t.test('includes frames of connections only while a page requests them', async t => {
    const { url, page, inspector } = await inspected(t, { work: obedient })
    const reader = await page()
    await reader.frame('hello')
    const socket = new WebSocket(url.replace('http', 'ws'))
    t.teardown(() => socket.terminate())
    await once(socket, 'open')
    const call = async (id: number, more = {}) => {
      socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'ping', ...more }))
      await once(socket, 'message')
    }
    await call(1)
    t.equal(inspector.tap.onFrame, undefined)
    reader.ask({ type: 'frames', on: true })
    reader.ask({ type: 'frames', on: true })
    await until(() => inspector.tap.onFrame)
    await call(2, { params: { token: 'sesame' } })
    await call(3, { params: { text: 'x'.repeat(9000) } })
    await reader.frame('frames', ({ frames }) => frames.some(({ bytes }) => bytes > 9000))
    const frames = reader.all('frames').flatMap(({ frames }) => frames)
    t.strictSame(frames.map(({ n, direction }) => `${n} ${direction}`).slice(0, 3), ['1 in', '2 out', '3 in'])
    t.match(frames[0], {
      connection: /^ws \d+$/,
      text: '{"jsonrpc":"2.0","id":2,"method":"ping","params":{"token":[redacted]}}',
      bytes: 68
    })
    t.strictSame([frames[2]?.text.length, (frames[2]?.bytes ?? 0) > 9000], [4096, true])
    reader.ask({ type: 'frames', on: false })
    reader.ask({ type: 'frames', on: false })
    await until(() => inspector.tap.onFrame === undefined)
  })
})

await t.test('the hub', async t => {
  await t.test('observes only while a page is connected', async t => {
    const { page, observers, clock } = await inspected(t, { work: obedient })
    t.equal(observers(), 0)
    const [first, second] = [await page(), await page()]
    await second.frame('hello')
    t.equal(observers(), 1)
    first.socket.close()
    await once(first.socket, 'close')
    t.equal(observers(), 1)
    second.socket.close()
    await once(second.socket, 'close')
    await rest()
    t.equal(observers(), 1, 'for half a minute, for pages that reconnect')
    clock.increment(GRACE_MS)
    t.equal(observers(), 0)
    const { instance } = await (await page()).frame('hello')
    t.not(instance, second.all('hello')[0]?.instance, 'numbering restarts')
  })

  await t.test('reports a replaced runtime and an agent that could not be loaded', async t => {
    const store = memoryStore()
    const first = await inspected(
      t,
      { work: obedient, card: { name: 'First' } },
      {},
      { store: { ...store, close: async () => {} } }
    )
    const reader = await first.page()
    const { instance } = await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'c' })
    const { id: taskId } = await open(first.runtime, 'ask', { contextId: 'c' })
    await reader.frame('steps')
    first.inspector.showReloadError('agent.ts could not be loaded')
    t.strictSame(await reader.frame('reload'), { type: 'reload', error: 'agent.ts could not be loaded' })
    const late = await first.page()
    t.equal((await late.frame('reload')).error, 'agent.ts could not be loaded')
    const { runtime } = start(t, { work: obedient, card: { name: 'Second' } }, { store, clock: first.clock })
    first.inspector.use(runtime, 'ws://127.0.0.1:9/')
    const hello = await reader.frame('hello', ({ agent }) => agent.name === 'Second')
    t.not(hello.instance, instance)
    t.equal(hello.url, first.url.replace('http', 'ws'))
    t.equal(
      (await reader.frame('tasks', ({ rows }) => rows[0]?.taskId === taskId, reader.frames.indexOf(hello))).rows.length,
      1
    )
    t.equal(first.observers(), 0)
  })

  await t.test('records from the start with recordsAlways, and keeps the steps when the agent is replaced', async t => {
    const store = memoryStore()
    const first = await inspected(t, { work: obedient }, { alwaysRecord: true }, { store })
    await first.runtime.sendMessage(say('x', { contextId: 'c' }))
    const { runtime } = start(t, { work: obedient, card: { name: 'Second' } }, { store, clock: first.clock })
    first.inspector.use(runtime, 'ws://127.0.0.1:9/')
    await runtime.sendMessage(say('x', { contextId: 'c' }))
    const reader = await first.page()
    await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'c' })
    const { steps } = await reader.frame('steps')
    t.equal(steps.filter(({ kind, event }) => kind === 'event' && event.type === 'request.received').length, 2)
    t.equal(
      new Set(
        steps
          .filter(({ kind }) => kind === 'emitted')
          .map(({ taskId }) => taskId)
          .filter(id => id !== undefined)
      ).size,
      2
    )
    reader.socket.terminate()
    first.clock.increment(GRACE_MS)
    await first.runtime.close()
  })

  await t.test('greets a page that connects during a replacement with the current agent', async t => {
    const drawn: (() => void)[] = []
    const draw = () => new Promise<string>(resolve => drawn.push(() => resolve('<svg/>')))
    const { page, inspector } = await inspected(t, { work: () => ({}) }, { draw })
    const reader = await page()
    await until(() => drawn.length === 2)
    const { runtime } = start(t, { work: () => ({}), card: { name: 'Second' } })
    reader.ask({ type: 'watch', contextId: 'c' })
    inspector.use(runtime, 'ws://127.0.0.1:9/')
    await until(() => drawn.length === 4)
    for (const draw of drawn) draw()
    await reader.frame('hello')
    t.strictSame(
      reader.all('hello').map(({ agent }) => agent.name),
      ['Second']
    )
  })

  await t.test('stores what a page missed during a short disconnection', async t => {
    const { runtime, page, observers } = await inspected(t, { work: obedient })
    const reader = await page()
    const { instance } = await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'c' })
    await runtime.sendMessage(say('x', { contextId: 'c' }))
    const { steps } = await reader.frame('steps')
    reader.socket.terminate()
    await runtime.sendMessage(say('x', { contextId: 'c' }))
    const again = await page()
    t.equal((await again.frame('hello')).instance, instance)
    again.ask({ type: 'watch', contextId: 'c', afterStep: steps.at(-1)?.n ?? 0, instance })
    const missed = (await again.frame('steps')).steps
    t.ok(missed.length > 10)
    t.strictSame(
      missed.map(({ n }) => n),
      missed.map((_, i) => steps.length + 1 + i)
    )
    t.equal(observers(), 1)
  })

  await t.test('stops reading earlier tasks when nobody waits for them', async t => {
    const pages = deferred<TaskPage>()
    const store = { ...memoryStore(), listTasks: () => pages.promise }
    const { page, inspector, log } = await inspected(t, { work: () => ({}) }, {}, { store })
    await (await page()).frame('hello')
    const { runtime } = start(t, { work: () => ({}) })
    inspector.use(runtime, 'ws://127.0.0.1:9/')
    pages.resolve({
      total: 1,
      tasks: [{ generation: 1, task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } }]
    })
    await rest()
    t.strictSame(log, [])
  })

  await t.test('resets a watched context that was erased', async t => {
    const { runtime, page } = await inspected(t, { work: obedient })
    const reader = await page()
    await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'c' })
    await open(runtime, 'ask', { contextId: 'c' })
    await reader.frame('steps')
    await runtime.erase({ contextId: 'c' })
    await runtime.sendMessage(say('x', { contextId: 'other' }))
    await reader.frame('tasks', ({ rows }) => rows[0]?.contextId === 'other')
    const from = reader.frames.length
    await open(runtime, 'ask', { contextId: 'c' })
    t.equal((await reader.frame('steps', () => true, from)).steps[0]?.n, 1)
  })

  await t.test('observes nothing when a runtime is replaced and no page is connected', async t => {
    const { page, inspector, observers } = await inspected(t, { work: () => ({}) })
    const { runtime } = start(t, { work: () => ({}), card: { name: 'Second' } })
    inspector.use(runtime, 'ws://127.0.0.1:9/')
    t.equal(observers(), 0)
    t.equal((await (await page()).frame('hello')).agent.name, 'Second')
  })

  await t.test("reports the last test's coverage to new pages and when it changes", async t => {
    const coverage = {
      type: 'coverage' as const,
      chart: 'work' as const,
      atMs: 1,
      reached: { states: ['a'], transitions: [] },
      missing: [{ name: 'b', why: 'no case' }]
    }
    let known: typeof coverage | undefined
    const { page, inspector } = await inspected(t, { work: () => ({}) }, { coverage: async () => known })
    const reader = await page()
    await reader.frame('hello')
    await inspector.cover()
    known = coverage
    await inspector.cover()
    t.strictSame(await reader.frame('coverage'), coverage)
    t.strictSame(await (await page()).frame('coverage'), coverage)
  })

  await t.test('proves the properties for a page, and keeps the proof until the agent is loaded again', async t => {
    let told: (progress: Proving) => void = () => {}
    let asked = 0
    const { page, inspector, runtime, url } = await inspected(
      t,
      { work: () => ({}) },
      { prove: tell => ((told = tell), (asked += 1)) }
    )
    const reader = await page()
    t.equal((await reader.frame('hello')).proves, true)
    await reader.frame('tasks')
    reader.ask({ type: 'prove' })
    await until(() => asked === 1)
    told({ type: 'proving', isRunning: true })
    t.strictSame(await reader.frame('proving'), { type: 'proving', isRunning: true })
    t.strictSame(await (await page()).frame('proving'), { type: 'proving', isRunning: true }, 'a later page too')
    const proof = { atMs: 1, head: '1 configuration', bounds: [], verdicts: [] }
    const proved = { type: 'proving' as const, isRunning: false, proof }
    told(proved)
    t.strictSame(await (await page()).frame('proving'), proved)
    inspector.use(runtime, url)
    const later = await page()
    await later.frame('tasks')
    t.equal(later.all('proving').length, 0, 'it may be about another chart')
    later.ask({ type: 'prove' })
    await until(() => asked === 2)
    told({ type: 'proving', isRunning: true })
    await later.frame('proving')
    inspector.use(start(t, { work: () => ({}) }).runtime, url)
    told(proved)
    await until(() =>
      later.all('proving').some(({ error }) => error === 'The agent was loaded again meanwhile. Prove it again.')
    )
    const other = await inspected(t, { work: () => ({}) })
    const alone = await other.page()
    t.equal((await alone.frame('hello')).proves, false)
    alone.ask({ type: 'prove' })
    alone.ask({ type: 'authorize', taskId: 'unknown' })
    await alone.frame('authorized')
    t.equal(alone.all('proving').length, 0)
  })

  await t.test('runs the tests for a page, and tells all pages their progress, then the coverage', async t => {
    const coverage = {
      type: 'coverage' as const,
      chart: 'work' as const,
      atMs: 1,
      reached: { states: ['a'], transitions: [] },
      missing: []
    }
    let told: (progress: TestProgress) => void = () => {}
    const { page } = await inspected(
      t,
      { work: () => ({}) },
      { coverage: async () => coverage, test: tell => (told = tell) }
    )
    const reader = await page()
    t.equal((await reader.frame('hello')).tests, true)
    await reader.frame('coverage')
    reader.ask({ type: 'test' })
    const progress = { type: 'testing' as const, isRunning: true, done: 1, total: 2, failed: 0 }
    await until(() => {
      told(progress)
      return reader.all('testing').length > 0
    })
    t.strictSame(await (await page()).frame('testing'), progress, 'a later page too')
    told({ ...progress, isRunning: false, done: 2 })
    await until(() => reader.all('coverage').length === 2)
    t.equal((await page()).all('testing').length, 0)
    const other = await inspected(t, { work: () => ({}) })
    const alone = await other.page()
    t.equal((await alone.frame('hello')).tests, false)
    alone.ask({ type: 'test' })
    alone.ask({ type: 'authorize', taskId: 'unknown' })
    await alone.frame('authorized')
    t.equal(alone.all('testing').length, 0)
  })

  await t.test('tells a page on request what tasks took in the charts of the author', async t => {
    const dry = setup({}).createMachine({
      id: 'drying',
      initial: 'wet',
      states: { wet: { always: 'dry' }, dry: { type: 'final' } }
    })
    const work = setupWork({ actors: { dry } }).createMachine({
      id: 'painter',
      initial: 'on',
      states: { on: { invoke: { src: 'dry', id: 'dry', onDone: 'off', onError: 'off' } }, off: { type: 'final' } }
    })
    const { runtime, page, clock } = await inspected(t, { work })
    const reader = await page()
    t.equal((await reader.frame('hello')).counts, true)
    const heat = (done: number, dried: number) => ({
      type: 'heat',
      charts: [
        {
          chart: 'work',
          transitions: [
            { name: 'painter.on on xstate.done.actor.dry to off', count: done },
            { name: 'painter.on on xstate.error.actor.dry to off', count: 0 }
          ]
        },
        { chart: 'child:dry', transitions: [{ name: 'drying.wet on its own to dry', count: dried }] }
      ]
    })
    reader.ask({ type: 'heat' })
    t.strictSame(await reader.frame('heat'), heat(0, 0))
    for (const text of ['a', 'b'])
      t.equal(taskIn(await runtime.sendMessage(say(text))).status.state, 'TASK_STATE_COMPLETED')
    clock.increment(1000)
    await until(() => {
      reader.ask({ type: 'heat' })
      return reader.all('heat').some(({ charts }) => charts[0]?.transitions[0]?.count === 2)
    })
    t.strictSame(reader.all('heat').at(-1), heat(2, 2))
  })

  await t.test('tells a page why the counts cannot be read, and nothing where none are kept', async t => {
    const store = { ...memoryStore(), readTransitions: () => Promise.reject(new Error('no disk')) }
    const reader = await (await inspected(t, { work: obedient }, {}, { store })).page()
    await reader.frame('hello')
    reader.ask({ type: 'heat' })
    t.strictSame(await reader.frame('heat'), { type: 'heat', charts: [], error: 'no disk' })
    const { countTransitions: _, readTransitions: _read, ...uncounted } = memoryStore()
    for (const one of [
      await inspected(t, { work: obedient }, {}, { store: uncounted }),
      await inspected(t, { work: () => ({}) })
    ]) {
      const alone = await one.page()
      t.equal((await alone.frame('hello')).counts, false)
      alone.ask({ type: 'heat' })
      alone.ask({ type: 'authorize', taskId: 'unknown' })
      await alone.frame('authorized')
      t.equal(alone.all('heat').length, 0)
    }
  })

  await t.test('draws a chart with collapsed states for a page, and nothing for an unknown chart', async t => {
    const draw = async ({ id }: { readonly id: string }, collapsed: readonly string[] = []) =>
      `${id}-${collapsed.join()}`
    const reader = await (await inspected(t, { work: obedient }, { draw })).page()
    await reader.frame('hello')
    reader.ask({ type: 'draw', chart: 'task', collapsed: ['task.active', 'task.failed'] })
    t.strictSame(await reader.frame('drawn'), {
      type: 'drawn',
      chart: 'task',
      collapsed: ['task.active', 'task.failed'],
      svg: 'task-task.active,task.failed'
    })
    reader.ask({ type: 'draw', chart: 'child:none', collapsed: [] })
    await until(() => reader.all('drawn').length === 2)
    t.equal(reader.all('drawn').at(-1)?.svg, '')
  })

  await t.test('authorizes a task for a page, or gives the reason why not', async t => {
    const work = setupWork({ types: { events: {} as AuthorizationReceived } }).createMachine({
      initial: 'on',
      states: {
        on: { tags: 'auth-required', meta: { prompt: 'Key?' }, on: { 'authorization.received': 'off' } },
        off: { type: 'final' }
      }
    })
    const { runtime, page } = await inspected(t, { work })
    const reader = await page()
    await reader.frame('hello')
    const { id: taskId } = taskIn(await runtime.sendMessage(say('x')))
    await reader.frame('tasks', ({ rows }) => rows[0]?.taskId === taskId)
    reader.ask({ type: 'authorize', taskId })
    t.strictSame(await reader.frame('authorized'), { type: 'authorized', taskId })
    await reaches(runtime, taskId, 'completed')
    reader.ask({ type: 'authorize', taskId: 'nobody', data: 1 })
    t.match((await reader.frame('authorized', ({ taskId }) => taskId === 'nobody')).error, /nobody/)
  })

  await t.test('closes a connection after an invalid request', async t => {
    const { page } = await inspected(t, { work: () => ({}) })
    for (const text of ['{', '7', '{"type":"dance"}']) {
      const reader = await page()
      await reader.frame('hello')
      reader.socket.send(text)
      t.equal((await once(reader.socket, 'close'))[0], 1008, text)
    }
  })

  await t.test('continues when the store fails to read tasks or a page breaks the protocol', async t => {
    const store = { ...memoryStore(), listTasks: () => Promise.reject(new Error('no disk')) }
    const { page, log } = await inspected(t, { work: () => ({}) }, {}, { store })
    const reader = await page()
    await reader.frame('hello')
    t.match(log, [{ message: 'the earlier tasks could not be read' }])
    const stream = (reader.socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket
    stream.write(Buffer.from([0xff, 0xff, 0xff]))
    t.equal((await once(reader.socket, 'close'))[0], 1002)
  })
})

await t.test('under load', async t => {
  await t.test('a limited number of contexts starts recording per minute, and each watched one', async t => {
    const { runtime, page, clock } = await inspected(t, { work: obedient })
    const reader = await page()
    await reader.frame('hello')
    reader.ask({ type: 'watch', contextId: 'last' })
    await reader.frame('actors')
    clock.increment(60_000)
    for (let i = 0; i <= RECORDED_A_MINUTE; i += 1) await open(runtime, 'ask', { contextId: `c-${i}` })
    await open(runtime, 'ask', { contextId: 'last' })
    t.ok((await reader.frame('steps')).steps.length > 5)
    const other = await page()
    await other.frame('hello')
    other.ask({ type: 'watch', contextId: `c-${RECORDED_A_MINUTE}` })
    t.equal((await other.frame('actors')).rows.length, 3, 'an unrecorded one starts when it is watched')
    await runtime.sendMessage(
      say('red', {
        taskId: (
          await until(() =>
            other
              .all('tasks')
              .flatMap(({ rows }) => rows)
              .find(({ contextId }) => contextId === `c-${RECORDED_A_MINUTE}`)
          )
        ).taskId
      })
    )
    t.equal((await other.frame('steps')).steps[0]?.n, 1)
  })

  await t.test('a limited number of contexts is remembered, the newest and the watched', async t => {
    const { runtime, page, clock } = await inspected(t, { work: obedient })
    const [reader, late] = [await page(), await page()]
    await reader.frame('hello')
    await late.frame('hello')
    reader.ask({ type: 'watch', contextId: 'first' })
    await reader.frame('actors')
    for (const contextId of ['first', 'second']) await runtime.sendMessage(say('ask', { contextId }))
    for (let i = 0; i < REMEMBERED_CONTEXTS; i += 1) {
      clock.increment(100)
      await runtime.sendMessage(say('x', { contextId: `c-${i}` }))
    }
    const count = async (contextId: string) => {
      const from = late.frames.length
      late.ask({ type: 'watch', contextId })
      await late.frame('actors', frame => frame.contextId === contextId, from)
      return late.frames.slice(from).filter(({ type }) => type === 'steps').length
    }
    t.equal(await count('second'), 0)
    t.equal(await count('first'), 1)
    t.equal(await count(`c-${REMEMBERED_CONTEXTS - 1}`), 1)
  })

  await t.test('a limited number of steps and ended actors per context is remembered', async t => {
    const { runtime, page } = await inspected(t, { work: obedient })
    const reader = await page()
    await reader.frame('hello')
    for (let i = 0; i < REMEMBERED_ACTORS; i += 1) await runtime.sendMessage(say('x', { contextId: 'c' }))
    reader.ask({ type: 'watch', contextId: 'c' })
    const {
      steps: [first]
    } = await reader.frame('steps')
    t.ok((first?.n ?? 0) > 1, 'the oldest are evicted, which does not count as missed')
    t.equal(reader.all('lost').length, 0)
    const rows = reader.all('actors').flatMap(({ rows }) => rows)
    t.equal(rows.filter(({ status }) => status === 'done').length, REMEMBERED_ACTORS)
    await runtime.sendMessage(say('x', { contextId: 'c' }))
    const { gone } = await reader.frame('actors', ({ gone }) => gone.length > 0)
    t.equal(gone.length, 2)
    t.ok(gone.every(id => rows.some(({ sessionId }) => sessionId === id)))
    const { n = 0 } = reader.all('steps').at(-1)?.steps.at(-1) ?? {}
    t.ok(n > REMEMBERED_STEPS)
  })
})

await t.test('inspect refuses invalid options, and one option serves it', async t => {
  t.throws(() => inspect({ redact: 'yes' as never }), { name: 'TypeError', message: /redact has to be a function/ })
  t.throws(() => inspect({ stately: 'http://127.0.0.1/' }), { message: /ws:\/\/127\.0\.0\.1:8080/ })
  t.throws(() => inspect({ token: '' }), { message: /token/ })
  t.type(inspect().answer, 'function')
})
