import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { assign, emit, sendTo } from 'xstate'
import { delegate, remoteAgent, type RemoteAgent, type RemoteEvent } from '../../adapters/delegation/index.ts'
import { serve } from '../../adapters/http/serve.ts'
import { sqliteStore } from '../../adapters/storage/sqlite.ts'
import type { AgentDefinition } from '../../runtime/agent.ts'
import { authRequired, inputRequired } from '../../runtime/questions.ts'
import { setupWork } from '../../runtime/setup-work.ts'
import { artifact, progress, text, textOf } from '../../runtime/words.ts'
import { brief, closed, collect, deferred, open, reaches, rest, say, start, stateName, taskIn, until, withGenerations, type Deferred, type Started } from '../fixtures/runtime-helpers.ts'
import { TestClock } from '../fixtures/test-clock.ts'

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
  const definition: { work: Work } = { work: async function* ({ signal }) {
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
  } }
  const remote = start(t, { ...definition, cancelGraceMs: 5000 })
  const served = await serve(remote.runtime, { port: 0 })
  t.teardown(() => served.close())
  return { ...remote, url: served.url, go: (gate: number) => gates[gate]?.resolve(), isAborted: () => isAborted, runs: () => runs }
}

async function told({ runtime }: Started, taskId: string): Promise<string[]> {
  const events = await collect(runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } }))
  return events.map(brief)
}

async function soFar({ runtime }: Started, taskId: string, count: number): Promise<void> {
  const stream = runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } })
  for (let events = 0; events < count; events += 1) await stream.next()
  await stream.return()
}

/** The same by a chart and by a function. */
function works(agent: RemoteAgent): [string, Work][] {
  const chart = setupWork({ types: { context: {} as { words: string }, events: {} as RemoteEvent }, actors: { remote: agent } }).createMachine({
    context: { words: '' },
    invoke: { id: 'remote', src: 'remote', input: { message: 'x' }, onDone: { target: '.done', actions: assign({ words: ({ event }) => event.output.artifacts.map(textOf).join() }) } },
    on: {
      'remote.status': { target: '.waiting', actions: emit(({ event }) => progress(event.message ? textOf(event.message) : undefined)) },
      'remote.artifact': { actions: emit(({ event }) => artifact({ ...event.artifact, artifactId: 'a' }, { append: event.append })) },
      'remote.input-required': { target: '.asking', actions: assign({ words: ({ event }) => textOf(event.message ?? { parts: [] }) }) }
    },
    initial: 'waiting',
    states: {
      waiting: {},
      asking: {
        tags: 'input-required', meta: { prompt: ({ context }) => context.words },
        on: { 'message.received': { target: 'waiting', actions: sendTo('remote', ({ event }) => ({ type: 'answer', message: event.message })) } }
      },
      done: { type: 'final' }
    },
    output: ({ context }) => ({ artifact: context.words })
  })
  return [
    ['chart', chart],
    ['function', async work => ({ artifact: (await delegate(work, agent, 'x')).artifacts.map(textOf).join() })]
  ]
}

for (const [binding, name] of [['WEBSOCKET', 'over WebSocket'], ['JSONRPC', 'over JSON-RPC']] as const) {
  for (const kind of [0, 1] as const) {
    await t.test(`${name}, a ${kind === 0 ? 'chart' : 'function'} that was restarted goes on hearing its task where it was`, async t => {
      const remote = await led(t)
      const [, work] = works(remoteAgent(remote.url, { bindings: [binding] }))[kind] as [string, Work]
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
        t.equal(stateName(taskIn(await desk.runtime.sendMessage(say('3', { taskId }, { returnImmediately: true }))).status.state), 'working')
      })
      remote.go(2)
      await life(async desk => {
        await reaches(desk.runtime, taskId, 'completed')
        const all = (await told(desk, taskId)).filter(event => event !== 'working')
        t.strictSame(all, ['submitted', 'artifact: 1', 'artifact: 2', 'working: half', 'input-required: Go on?', 'artifact: 3', `artifact: ${['1', '2', '3'].join('\n')}`, 'completed'])
      })
      t.equal(remote.runs(), 1, 'one task was opened')
      t.equal((await remote.runtime.listTasks({})).totalSize, 1)
    })
  }
}
