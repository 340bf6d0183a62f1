import t from 'tap'
import { defineAgent, progress, setupWork } from '../../runtime/index.ts'
import { echo } from '../fixtures/agents.ts'

const card = { name: 'A' }
const chart = setupWork({}).createMachine({ initial: 'a', states: { a: { type: 'final' } } })

await t.test('an agent refuses messages to a task that works, is not restarted and has 5 seconds to clean up, unless its author says otherwise', async t => {
  t.match(defineAgent({ card, work: echo }), { messages: 'reject', restart: { type: 'temporary', intensity: 1, periodMs: 5000 }, cancelGraceMs: 5000 })
  t.match(defineAgent({ card, work: chart, messages: 'steer', restart: { type: 'transient', intensity: 3 }, cancelGraceMs: 0 }), {
    messages: 'steer',
    restart: { type: 'transient', intensity: 3, periodMs: 5000 },
    cancelGraceMs: 0
  })
  t.match(defineAgent({ card, work: echo, messages: 'queue', restart: 'transient', cancelGraceMs: Infinity }), { messages: 'queue', restart: { type: 'transient' }, cancelGraceMs: Infinity })
})

await t.test('work is a function that may return a promise, or an async generator, but no other generator', async t => {
  const works = [() => {}, async () => {}, async function* () { yield progress('x') }, { async *work() { yield progress('x') } }.work]
  for (const work of works) t.equal(defineAgent({ card, work }).work, work)
  for (const work of [function* () {}, { *work() {} }.work]) {
    t.throws(() => defineAgent({ card, work: work as never }), {
      name: 'TypeError',
      message: 'work has to be an async function, an async generator, or a statechart made with setupWork(…).createMachine(…).'
    })
  }
})

await t.test('messages that are to steer need a statechart, since a function could not say which it can take', async t => {
  const steer = { card, messages: 'steer' } as const
  const message = "messages: 'steer' needs work as a statechart; a function takes 'queue', and asks for its messages."
  t.throws(() => defineAgent({ ...steer, work: echo }), { name: 'TypeError', message })
  t.throws(() => defineAgent({ ...steer, work: async function* () { yield progress('x') } }), { name: 'TypeError', message })
  t.doesNotThrow(() => defineAgent({ ...steer, work: chart }))
})

await t.test('a policy for messages that is none is refused with those there are', async t => {
  for (const wrong of ['', 'Queue', 'drop', null, true, 3]) {
    t.throws(() => defineAgent({ card, work: chart, messages: wrong as never }), {
      name: 'TypeError',
      message: `messages has to be 'reject', 'steer' or 'queue', not ${String(wrong)}.`
    })
  }
})

await t.test('a restart policy that is none is refused when the agent is defined', async t => {
  t.throws(() => defineAgent({ card, work: echo, restart: 'permanent' as never }), { name: 'TypeError', message: /work cannot be permanent/ })
  t.throws(() => defineAgent({ card, work: echo, restart: { type: 'transient', intensity: -1 } }), { name: 'RangeError', message: /restart\.intensity .* not -1\./ })
  t.throws(() => defineAgent({ card, work: echo, restart: { type: 'transient', periodMs: 0 } }), { name: 'RangeError', message: /restart\.periodMs .* not 0\./ })
})

await t.test('a grace period that is no time is refused', async t => {
  for (const wrong of [-1, NaN, -Infinity, '5000', null, true]) {
    t.throws(() => defineAgent({ card, work: echo, cancelGraceMs: wrong as never }), {
      name: 'RangeError',
      message: `cancelGraceMs has to be milliseconds from 0, not ${String(wrong)}.`
    })
  }
})
