import t from 'tap'
import { openTelemetry } from '../../../adapters/opentelemetry/open-telemetry.ts'
import type { Observer } from '../../../runtime/contexts/observers.ts'
import { open, reaches, rest, say, start, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'

/** An observer that notes what it is told, shortly. */
function noting(): { told: string[]; observer: Observer } {
  const told: string[] = []
  const observer: Observer = {
    entered: ({ key, root }) => told.push(`${key.contextId} entered: ${root.id}`),
    left: ({ key, root }) => told.push(`${key.contextId} left: ${root.getSnapshot().status}`),
    committed: ({ key, expected, tasks }) =>
      told.push(
        `${key.contextId} commit ${expected}: ${tasks.map(({ state, generation }) => `${state} ${generation}`).join()}`
      ),
    erased: ({ principal, contextId }) => told.push(`${principal} ${contextId} erased`)
  }
  return { told, observer }
}

await t.test('an observer receives loaded and passivated contexts, and every commit once told', async t => {
  const { runtime } = start(t, { work: obedient })
  const { told, observer } = noting()
  runtime.observe(observer)
  await runtime.sendMessage(say('x', { contextId: 'c' }))
  await runtime.close()
  t.strictSame(told, [
    'c entered: context',
    'c commit 0: TASK_STATE_SUBMITTED 2',
    'c commit 1: TASK_STATE_COMPLETED 5',
    'c left: stopped'
  ])
})

await t.test('an observer that is added later first receives the contexts in memory', async t => {
  const { runtime } = start(t, { work: obedient })
  await runtime.sendMessage(say('ask', { contextId: 'c' }))
  const { told, observer } = noting()
  const { agent, store } = runtime.observe(observer)
  t.strictSame(told, ['c entered: context'])
  t.equal(agent.card.name, 'Test')
  t.equal((await store.listTasks({ tenant: '', principal: 'anonymous' }, { limit: 1 })).total, 1)
})

await t.test('an observer that stops receives nothing more, and others continue', async t => {
  const { runtime } = start(t, { work: obedient })
  const [first, second] = [noting(), noting()]
  const { stop } = runtime.observe(first.observer)
  runtime.observe(second.observer)
  stop()
  stop()
  await runtime.sendMessage(say('x', { contextId: 'c' }))
  t.strictSame([first.told.length, second.told.length], [0, 3])
})

await t.test('an observer receives erasures, after the contexts have left memory', async t => {
  const { runtime } = start(t, { work: obedient })
  const { told, observer } = noting()
  await open(runtime, 'ask', { contextId: 'c' })
  await rest()
  runtime.observe(observer)
  await runtime.erase({ contextId: 'c' })
  t.strictSame(told, ['c entered: context', 'c left: stopped', 'anonymous c erased'])
})

await t.test("an observer receives the author's errors with their tasks, also if the work restarts", async t => {
  const { runtime } = start(t, {
    work: () => Promise.reject(new Error('mine')),
    restart: { type: 'transient', intensity: 1, periodMs: 1000 }
  })
  const told: unknown[] = []
  runtime.observe({ crashed: (taskId, error) => told.push([taskId, (error as Error).message]) })
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  t.strictSame(told, [
    [id, 'mine'],
    [id, 'mine']
  ])
})

await t.test('an error of an observer is logged, and has no effect', async t => {
  const { runtime, log } = start(t, { work: obedient })
  const fail = () => {
    throw new Error('cannot see')
  }
  runtime.observe({ entered: fail, left: fail, committed: fail, erased: fail })
  const task = taskIn(await runtime.sendMessage(say('x', { contextId: 'c' })))
  await reaches(runtime, task.id, 'completed')
  await runtime.erase({ contextId: 'c' })
  t.strictSame([...new Set(log.map(({ message }) => message))], ['an observer failed'])
  t.equal(log.length, 5)
})

await t.test('a runtime with tracing can be observed too', async t => {
  const { runtime } = start(t, { work: obedient }, { telemetry: openTelemetry() })
  const { told, observer } = noting()
  runtime.observe(observer)
  await runtime.sendMessage(say('x', { contextId: 'c' }))
  t.equal(told.length, 3)
})
