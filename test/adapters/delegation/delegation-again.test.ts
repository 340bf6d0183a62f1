import '../../fixtures/stores/needs-sqlite.ts'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { delegate, remoteAgent } from '../../../adapters/delegation/index.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import type { AgentDefinition } from '../../../runtime/agent/define-agent.ts'
import { inputRequired } from '../../../runtime/authoring/questions.ts'
import { artifact, progress, text, textOf } from '../../../runtime/authoring/words.ts'
import { passingChart, passingFunction } from '../../fixtures/servers/desks.ts'
import { converse, persistentClient } from '../../fixtures/kills/kill-oracle.ts'
import { KilledHost } from '../../fixtures/kills/killed-host.ts'
import { IS_DEEP } from '../../fixtures/sample.ts'
import {
  brief,
  closed,
  collect,
  deferred,
  heldStore,
  open,
  reaches,
  say,
  start,
  stateName,
  taskIn,
  until,
  withGenerations,
  type Deferred,
  type Started
} from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

t.setTimeout(300_000)

const OWNER = { tenant: '', principal: 'anonymous' }

type Work = NonNullable<AgentDefinition['work']>

/** A file, and the lives of an agent with it, one after the other. */
async function livesOf(t: Test, definition: Partial<AgentDefinition> & { work: Work }) {
  const folder = await mkdtemp(join(tmpdir(), 'taskchart-delegation-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const clock = new TestClock()
  return (during: (started: Started) => Promise<void>) => {
    const life = async () => {
      const started = start(t, definition, { store: sqliteStore(join(folder, 'tasks.db')), clock })
      await during(started)
      await closed(started.runtime, clock)
      t.strictSame(started.log, [])
    }
    return life()
  }
}

/** An agent that tells what the test has it tell, and asks in between. */
async function led(t: Test) {
  const gates: Deferred<void>[] = [deferred(), deferred(), deferred()]
  let isAborted = false
  let runs = 0
  const definition: { work: Work } = {
    work: async function* ({ signal }) {
      runs += 1
      signal.addEventListener('abort', () => (isAborted = true))
      yield artifact({ artifactId: 'a', parts: [text('1')] })
      await gates[0]?.promise
      yield artifact({ artifactId: 'a', parts: [text('2')] }, { append: true })
      yield progress('half')
      await gates[1]?.promise
      const answer = textOf(yield* inputRequired('Go on?'))
      yield artifact({ artifactId: 'a', parts: [text(answer)] }, { append: true, lastChunk: true })
      await gates[2]?.promise
      return { message: 'done' }
    }
  }
  const remote = start(t, { ...definition, cancelGraceMs: 5000 })
  const served = await serve(remote.runtime, { port: 0 })
  t.teardown(() => served.close())
  return {
    ...remote,
    url: served.url,
    go: (gate: number) => gates[gate]?.resolve(),
    isAborted: () => isAborted,
    runs: () => runs
  }
}

async function told({ runtime }: Started, taskId: string): Promise<string[]> {
  const events = await collect(
    runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } })
  )
  return events.map(brief)
}

async function soFar({ runtime }: Started, taskId: string, count: number): Promise<void> {
  const stream = runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } })
  for (let events = 0; events < count; events += 1) await stream.next()
  await stream.return()
}

for (const [binding, name] of [
  ['WEBSOCKET', 'over WebSocket'],
  ['JSONRPC', 'over JSON-RPC']
] as const) {
  for (const kind of [0, 1] as const) {
    await t.test(`${name}, a restarted ${kind === 0 ? 'chart' : 'function'} resumes its delegated task`, async t => {
      const remote = await led(t)
      const work = [passingChart, passingFunction][kind]?.(remoteAgent(remote.url, { bindings: [binding] })) as Work
      const life = await livesOf(t, { work })
      let taskId = ''
      await life(async desk => {
        taskId = (await open(desk.runtime)).id
        await soFar(desk, taskId, kind === 0 ? 5 : 3)
      })
      t.equal(remote.isAborted(), false, 'nothing is canceled')
      remote.go(0)
      await until(async () => (await remote.runtime.listTasks({})).tasks.some(({ status }) => status.message))
      await life(async desk => {
        await soFar(desk, taskId, kind === 0 ? 7 : 5)
      })
      remote.go(1)
      await life(async desk => {
        t.match((await reaches(desk.runtime, taskId, 'input-required')).status.message?.parts, [{ text: 'Go on?' }])
      })
      await life(async desk => {
        t.equal(
          stateName(
            taskIn(await desk.runtime.sendMessage(say('3', { taskId }, { returnImmediately: true }))).status.state
          ),
          'working'
        )
        await until(
          async () => (await desk.store.readJournal(OWNER, taskId)).some(({ value }) => value === null),
          'the answer has reached the other agent'
        )
      })
      remote.go(2)
      await life(async desk => {
        await reaches(desk.runtime, taskId, 'completed')
        const all = (await told(desk, taskId)).filter(event => event !== 'working')
        t.strictSame(all, [
          'submitted',
          'artifact: 1',
          'artifact: 2',
          'working: half',
          'input-required: Go on?',
          'artifact: 3',
          `artifact: ${['1', '2', '3'].join('\n')}`,
          'completed'
        ])
      })
      t.equal(remote.runs(), 1, 'one task was opened')
      t.equal((await remote.runtime.listTasks({})).totalSize, 1)
    })
  }
}

await t.test('after a restart an answer goes to the question that was asked', async t => {
  const asks = async (question: string) => {
    const remote = start(t, {
      work: async ({ ask }) => ({ artifact: `${question} ${textOf(await ask(inputRequired(question)))}` })
    })
    const served = await serve(remote.runtime, { port: 0 })
    t.teardown(() => served.close())
    return { ...remote, url: served.url }
  }
  const [a, b] = [await asks('A?'), await asks('B?')]
  let lives = 0
  const isAsked = deferred()
  const life = await livesOf(t, {
    work: async work => {
      lives += 1
      const made = async ({ url }: { readonly url: string }) =>
        (await delegate(work, remoteAgent(url), 'x', { artifacts: false })).artifacts.map(textOf).join()
      // A asks first, and is asked last when the work runs again.
      const first = lives === 1 ? made(a) : made(b)
      if (lives === 1) await isAsked.promise
      const both = await Promise.all([first, lives === 1 ? made(b) : made(a)])
      return { artifact: both.toSorted().join(' ') }
    }
  })
  let taskId = ''
  await life(async desk => {
    taskId = (await open(desk.runtime)).id
    t.match((await reaches(desk.runtime, taskId, 'input-required')).status.message?.parts, [{ text: 'A?' }])
    isAsked.resolve()
    await until(
      async () =>
        (await desk.store.readJournal(OWNER, taskId)).filter(({ value }) =>
          JSON.stringify(value).includes('remote.input-required')
        ).length === 2
    )
  })
  await life(async desk => {
    await desk.runtime.sendMessage(say('to A?', { taskId }, { returnImmediately: true }))
    const next = await until(async () => {
      const task = await desk.runtime.getTask({ id: taskId })
      return textOf(task.status.message ?? { parts: [] }) === 'B?' && task
    })
    t.equal(next.status.state, 'TASK_STATE_INPUT_REQUIRED')
    await desk.runtime.sendMessage(say('to B?', { taskId }, { returnImmediately: true }))
    t.match(await reaches(desk.runtime, taskId, 'completed'), {
      artifacts: [{ parts: [{ text: 'A? to A? B? to B?' }] }]
    })
  })
  t.equal(lives, 2)
})

await t.test('an accepted answer is delivered although the next commit fails', async t => {
  const remote = await quick(t)
  const store = heldStore()
  const desk = start(t, { work: passingFunction(remoteAgent(remote.url)) }, { store })
  const { id: taskId } = taskIn(await desk.runtime.sendMessage(say('x')))
  store.hold()
  const answered = desk.runtime.sendMessage(say('red', { taskId }, { returnImmediately: true }))
  await until(() => store.held.length === 1)
  await store.release()
  await answered
  await until(() => store.held.length === 1)
  await store.release(new TypeError('The disk is full.'))
  await store.passAll()
  await until(() => desk.log.some(({ message }) => message === 'a commit failed'))
  desk.clock.increment(1000)
  t.match(await reaches(desk.runtime, taskId, 'completed'), { artifacts: [{}, { parts: [{ text: '1\n2\nred' }] }] })
})

/**
 * An agent for a desk that is killed: it tells two chunks and a progress, asks, and ends. Counts its tasks and the
 * answers that they got.
 */
async function quick(t: Test) {
  const remote = start(t, {
    work: async function* () {
      yield artifact({ artifactId: 'a', parts: [text('1')] })
      yield artifact({ artifactId: 'a', parts: [text('2')] }, { append: true })
      yield progress('half')
      const answer = textOf(yield* inputRequired('Go on?'))
      yield artifact({ artifactId: 'a', parts: [text(answer)] }, { append: true, lastChunk: true })
      return {}
    }
  })
  const served = await serve(remote.runtime, { port: 0 })
  t.teardown(() => served.close())
  return { ...remote, url: served.url }
}

for (const [agent, point] of [
  ['desk function', 'sends written'],
  ['desk chart', 'streams told']
] as const) {
  await t.test(
    `a ${agent} killed at ${point} opens one task, answers once and repeats no event`,
    { timeout: 120_000 },
    async t => {
      let kills = 1
      // Not each time, and once unless all is tested: the process starts again each time.
      for (let n = 1; kills > 0; n += Math.ceil(n / 2)) {
        const remote = await quick(t)
        const folder = await mkdtemp(join(tmpdir(), 'taskchart-desk-'))
        await writeFile(join(folder, 'remote'), remote.url)
        const { host, url } = await KilledHost.start(agent, folder, `${point} ${n}`)
        const client = await persistentClient(url)
        const { taskId, end } = await converse(client, 'one')
        const events = (await collect(client.subscribeToTask({ id: taskId }, { afterGeneration: 0 }))).map(brief)
        t.strictSame(
          events.filter(event => event !== 'working'),
          [
            'submitted',
            'artifact: 1',
            'artifact: 2',
            'working: half',
            'input-required: Go on?',
            'artifact: red',
            'artifact: 1\n2\nred',
            'completed'
          ],
          `killed, time ${n}`
        )
        t.match(end.status, { state: 'TASK_STATE_COMPLETED' })
        const { tasks, totalSize } = await remote.runtime.listTasks({ historyLength: 10 })
        t.equal(totalSize, 1)
        t.equal(tasks[0]?.history?.filter(({ role }) => role === 'ROLE_USER').length, 2)
        const noticed = await host.killsNoticed()
        t.ok(n > 1 || noticed === 1, 'it reaches that point')
        kills = IS_DEEP ? noticed : 0
        await client.close()
        await host.end()
        await rm(folder, { recursive: true, force: true })
      }
    }
  )
}
