import t from 'tap'
import { createActor, fromCallback, fromObservable, fromTransition } from 'xstate'
import { type ActorHost, deferEffects, hostActors, hostOf, taskIdOf } from '../../../runtime/commits/actor-host.ts'
import type { Effect } from '../../../runtime/commits/commit-pipeline.ts'
import { isMachine } from '../../../runtime/xstate/persisted-snapshot.ts'
import { recordingLogger } from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const key = { tenant: '', principal: 'anna', contextId: 'c' }

await t.test('runtime logic runs only in a context of the runtime', async t => {
  const actor = createActor(fromCallback(() => {}))
  t.throws(() => hostOf(actor.system), { name: 'TypeError', message: /runs only in a context/ })
  t.equal(taskIdOf(actor), actor.id)
})

await t.test('leaf logic without a start, and observing logic, wait for the commit as promises do', async t => {
  const held: Effect[] = []
  const host = {
    key,
    clock: new TestClock(),
    markChanged: () => {},
    noteHaste: () => {},
    afterCommit: (effect: Effect) => void held.push(effect),
    logger: recordingLogger().logger
  } as unknown as ActorHost
  const count = deferEffects(fromTransition((n: number, e: { type: string }) => (e.type === 'add' ? n + 1 : n), 0))
  t.notOk(isMachine(count))
  const counter = createActor(count)
  hostActors(counter.system, host)
  counter.start()
  counter.send({ type: 'add' })
  t.match(counter.getSnapshot(), { context: 1 })
  let subscribed = 0
  const ticks = createActor(
    deferEffects(fromObservable(() => ({ subscribe: () => ((subscribed += 1), { unsubscribe: () => {} }) })))
  )
  hostActors(ticks.system, host)
  ticks.start()
  t.equal(subscribed, 0)
  for (const effect of held.splice(0)) effect.run()
  t.equal(subscribed, 1)
  ticks.stop()
  for (const effect of held.splice(0)) effect.run()
})
