import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { AnyStateMachine } from 'xstate'
import type { ComparedTask } from '../../../adapters/inspector/feed.ts'
import { inspect } from '../../../adapters/inspector/index.ts'
import { TaskComparisons } from '../../../adapters/inspector/task-comparison.ts'
import { postgresStore } from '../../../adapters/postgres/postgres.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { readLocalModules } from '../../../adapters/testing/diff/local-modules.ts'
import type { AgentDefinition } from '../../../runtime/agent/define-agent.ts'
import { createRuntime, defineAgent, inputRequired, progress, setupWork } from '../../../runtime/index.ts'
import { servedRuntime } from '../../../runtime/runtime-options.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { definitionOfSnapshot } from '../../../runtime/store/rows.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { FeedReader, TOKEN } from '../../fixtures/pages/feed-reader.ts'
import { recordingLogger, rest, say, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { NO_POSTGRES, PostgresServer } from '../../fixtures/stores/postgres.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'

type Given = Omit<AgentDefinition, 'card'>

const HOSTILE = '<script>alert(1)</script>'

/** An order that asks in `state`, and an actor with a chart of its own. */
const order = (state = 'choosing', more: object = {}) => {
  const child = setupWork({}).createMachine({
    id: 'child',
    initial: 'open',
    states: { open: { on: { END: 'over' } }, over: { type: 'final' } }
  } as never)
  return setupWork({ actors: { child } }).createMachine({
    id: 'order',
    initial: state,
    states: {
      [state]: {
        tags: 'input-required',
        meta: { prompt: 'Small or large?' },
        invoke: { src: 'child', id: 'aside' },
        on: { 'message.received': 'sure' }
      },
      sure: { tags: 'input-required', on: { 'message.received': 'served' } },
      served: { type: 'final' },
      ...more
    }
  } as never) as unknown as AnyStateMachine
}

const agentOf = (given: Given) => defineAgent({ card: { name: 'Test' }, version: '1', ...given } as never)

/** A task that an agent has opened in a store. */
async function opened(given: Given, store: Store = memoryStore()) {
  const { logger, log } = recordingLogger()
  const shared: Store = { ...store, close: async () => {} }
  const begin = (now: Given) => servedRuntime(createRuntime({ agent: agentOf(now), store: shared, logger }), 'a test')
  const first = begin(given)
  const task = taskIn(await first.sendMessage(say('a coffee')))
  await rest()
  await first.close()
  const key = { tenant: '', principal: 'anonymous', contextId: task.contextId ?? '' }
  const digest = definitionOfSnapshot((await store.readSnapshot(key, task.id)) ?? '')
  /** Compares it with another agent. */
  const compare = (now: Given, { isSeen = true, openedWith = digest, replays = true, draw = drawNothing } = {}) =>
    new TaskComparisons(
      { agent: agentOf(now), store, localModules: undefined, replays, redact: value => value, logger },
      draw
    ).of(key, task.id, isSeen ? openedWith : undefined)
  /** Answers it with another agent. */
  const answer = async (now: Given) => {
    const runtime = begin(now)
    await runtime.sendMessage({ ...say('large', { taskId: task.id }) })
    await rest()
    await runtime.close()
  }
  return { id: task.id, key, store, log, compare, answer, begin }
}

const drawNothing = async () => ({ before: '<svg/>', now: '<svg/>' })

await t.test('a task whose agent has not changed has no comparison', async t => {
  const { compare } = await opened({ work: order() })
  t.equal(await compare({ work: order() }), undefined)
  t.equal(await compare({ work: order() }, { isSeen: false }), undefined)
})

await t.test('a waiting task is compared with the agent now, where it stands in both', async t => {
  const { compare } = await opened({ work: order() })
  t.match(await compare({ work: order('asking') }), {
    versions: { before: '1', now: '1' },
    verdict: 'not restored',
    says: /^It is not restored/,
    details: [/the chart has no state order\.choosing/],
    isKept: false,
    changes: [{ change: 'renamed', says: 'the state choosing is now named asking' }],
    moreChanges: 0,
    charts: [
      { id: 'work', before: '<svg/>', stands: { before: ['order', 'order.choosing'], now: [] } },
      { id: 'child:child', stands: { before: ['child', 'child.open'], now: [] } }
    ]
  })
  t.match(await compare({ version: '2', work: order('choosing', { spilt: { type: 'final' } }) }), {
    versions: { before: '1', now: '2' },
    verdict: 'same',
    charts: [
      { stands: { before: ['order', 'order.choosing'], now: ['order', 'order.choosing'] } },
      { stands: { now: ['child', 'child.open'] } }
    ]
  })
  t.match(await compare({ version: '2', work: order('asking'), renamed: { states: { choosing: 'asking' } } }), {
    charts: [{ stands: { before: ['order', 'order.choosing'], now: ['order', 'order.asking'] } }, {}]
  })
  t.match(await compare({ version: '2', work: order('asking'), deadlineMs: 5000, earlier: { '1': order() } }), {
    isKept: true,
    verdict: 'otherwise'
  })
})

await t.test('a task that has gone on, or has ended, has the chart with which it was opened', async t => {
  const { compare, answer, store } = await opened({ work: order() })
  const now = { work: order('choosing', { [HOSTILE]: { type: 'final' } }) }
  await answer(now)
  t.match(await compare(now), {
    verdict: 'gone on',
    says: 'It has gone on with the agent of now.',
    changes: [{ says: `the state ${HOSTILE} is new` }],
    charts: [{ stands: { before: [], now: [] } }, {}]
  })
  t.equal(await compare(now, { isSeen: false }), undefined)
  t.equal(await compare(now, { openedWith: 'lost' }), undefined)
  await answer(now)
  t.match(await compare(now), { verdict: 'ended', details: [] })
  const [given] = [store.readDefinition]
  store.readDefinition = async digest => (await given?.(digest))?.replace('"format":1', '"format":9')
  t.match(await compare(now), { verdict: 'ended', details: [/in form 9/], changes: [], charts: [] })
})

await t.test('a task that a newer taskchart has stored is not restored', async t => {
  const { compare, store } = await opened({ work: order() })
  const read = store.readSnapshot
  store.readSnapshot = async (...whose) => (await read(...whose))?.replace('"format":1', '"format":9')
  t.match(await compare({ work: order('asking') }), {
    verdict: 'not restored',
    details: [/was stored by a newer taskchart/],
    charts: [{ stands: { before: [], now: [] } }, {}]
  })
})

await t.test('a task without a definition is compared only if its version differs', async t => {
  const { writeDefinition: _, ...older } = memoryStore()
  const { compare } = await opened({ work: order() }, older)
  t.equal(await compare({ work: order('asking') }), undefined)
  t.match(await compare({ version: '2', work: order('choosing') }), {
    verdict: 'not compared',
    details: ['it is restored'],
    charts: []
  })
})

await t.test('a function is run with its journal, where that is asked for', async t => {
  // The text of a function is compared, and not what it closes over.
  const begins: Given = {
    work: async ({ ask, emit }) => {
      emit(progress('begins'))
      await ask(inputRequired('Size?'))
    }
  }
  const starts: Given = {
    work: async ({ ask, emit }) => {
      emit(progress('starts'))
      await ask(inputRequired('Size?'))
    }
  }
  const { compare } = await opened(begins)
  t.match(await compare(starts), {
    verdict: 'otherwise',
    word: { number: 1, before: /begins/, now: /starts/ },
    charts: []
  })
  t.match(await compare(starts, { replays: false }), {
    verdict: 'depends',
    details: ['a function runs again from its start with its journal', /^taskchart diff --db says/]
  })
  const { writeDefinition: _, ...older } = memoryStore()
  const unknown = await opened(begins, older)
  t.match(await unknown.compare({ version: '2', ...starts }, { replays: false }), { verdict: 'not compared' })
  const stepped = await opened({
    work: async ({ ask, step }) => {
      await step('price', () => 1)
      await ask(inputRequired('Size?'))
    }
  })
  const other: Given = {
    work: async ({ ask, step }) => {
      await step('cost', () => 1)
      await ask(inputRequired('Size?'))
    }
  }
  t.match(await stepped.compare(other), { verdict: 'depends' })
})

await t.test('local modules are compared if the file of the agent is known', async t => {
  const folder = t.testdir({ 'agent.mjs': "import './price.mjs'", 'price.mjs': 'export default 1' })
  const { key, id, store, log } = await opened({ work: order() })
  const { logger } = recordingLogger()
  const comparisons = new TaskComparisons(
    {
      agent: agentOf({ work: order('asking') }),
      store,
      localModules: () => readLocalModules(join(folder, 'agent.mjs')),
      replays: false,
      redact: value => (typeof value === 'string' ? value.replace('asking', '…') : value),
      logger
    },
    () => Promise.reject(new TypeError('Install elkjs.'))
  )
  for (let i = 0; i < 2; i += 1)
    t.match(await comparisons.of(key, id, undefined), {
      changes: [{ says: 'the state choosing is now named …' }],
      charts: [{ before: '', now: '' }, {}]
    })
  t.strictSame(
    log.filter(({ level }) => level === 'error'),
    []
  )
})

/** Deploys another version over a store, and has a page compare a task of the version before. */
async function deploys(t: Test, store: Store) {
  const { id, begin } = await opened({ work: order() }, store)
  const runtime = begin({ version: '2', work: order('choosing', { spilt: { type: 'final' } }) })
  t.teardown(() => runtime.close())
  const served = await serve(runtime, { port: 0, inspector: inspect({ token: TOKEN }) })
  t.teardown(() => served.close())
  const page = await FeedReader.open(t, served.url)
  await page.frame('hello')
  const ask = async (taskId: string): Promise<ComparedTask> => {
    const from = page.frames.length
    page.ask({ type: 'compare', taskId })
    return page.frame('compared', () => true, from)
  }
  const { comparison } = await ask(id)
  t.match(comparison, { versions: { before: '1', now: '2' }, verdict: 'same' })
  t.match(comparison?.charts[0]?.before, /data-state="order\.choosing"/)
  t.match(comparison?.charts[0]?.now, /class="[^"]* added" data-state="order\.spilt"/)
  t.strictSame(await ask('unknown'), { type: 'compared', taskId: 'unknown' })
  await runtime.sendMessage(say('large', { taskId: id }))
  t.match(await ask(id), { comparison: { verdict: 'gone on' } }, 'it knows the version that the page has seen')
  await runtime.erase({ tenant: '', principal: 'anonymous' })
}

await t.test('a deploy over a store in memory', t => deploys(t, memoryStore()))

await t.test('a deploy over a SQLite file', { skip: NO_SQLITE }, async t => {
  const folder = mkdtempSync(join(tmpdir(), 'taskchart-compared-'))
  const store = sqliteStore(join(folder, 'tasks.db'))
  t.teardown(async () => {
    await store.close()
    rmSync(folder, { recursive: true })
  })
  await deploys(t, store)
})

await t.test('a deploy over PostgreSQL', { skip: NO_POSTGRES }, async t => {
  const server = await PostgresServer.start()
  t.teardown(() => server.stop())
  const store = await postgresStore(server.url())
  t.teardown(() => store.close())
  await deploys(t, store)
})
