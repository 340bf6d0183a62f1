import t, { type Test } from 'tap'
import { fromCallback, fromTransition, type AnyStateMachine } from 'xstate'
import { z } from 'zod'
import { readRecord, replayTask, type TaskReplay } from '../../../runtime/contexts/task-replay.ts'
import { defineAgent, setupWork, type AgentDefinition } from '../../../runtime/index.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { anyone, failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import { open, rejection, rest } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

type Definition = Omit<AgentDefinition, 'card'>

/** Opens a task, and gives a function that replays it with another agent. */
async function stored(t: Test, definition: Definition, then: (life: Lives, id: string) => Promise<unknown> = rest) {
  const life = lives(t, definition)
  const { id, contextId = '' } = await open(life.runtime)
  await rest()
  await then(life, id)
  await rest()
  const record = await readRecord(life.store, { ...anyone, contextId }, id)
  if (!record) throw new Error('the task has ended')
  return (now: Definition, redacted: readonly string[] = []): Promise<TaskReplay> =>
    replayTask(defineAgent({ card: { name: 'Test' }, ...now }), { ...record, redacted })
}

/** A chart that asks, or waits, in a state of this name. */
const chart = (state: object, name = 'asking'): AnyStateMachine =>
  setupWork({ actors: { ear: fromCallback(() => {}) }, delays: { soon: 5000 } }).createMachine({
    id: 'order',
    initial: name,
    states: { [name]: state, done: { type: 'final' } }
  } as never) as never

const asking = { tags: 'input-required', meta: { prompt: 'Size?' }, on: { 'message.received': 'done' } }

await t.test('a chart that asks the same goes on', async t => {
  const replay = await stored(t, { work: chart(asking) })
  t.strictSame(await replay({ work: chart(asking) }), { outcome: 'same' })
  const wildcard = { ...asking, on: { 'message.*': 'done' } }
  t.strictSame(await replay({ work: chart(wildcard) }), { outcome: 'same' })
})

await t.test('what a restored chart asks is compared with the log', async t => {
  const replay = await stored(t, { work: chart(asking) })
  const was = 'question "Size?"'
  const difference = (is: string, of = was) => ({ at: 'asking', was: of, is })
  t.match(await replay({ work: chart(asking, 'choosing') }), {
    outcome: 'not restored',
    reason: /has no state order\.asking/
  })
  t.strictSame(await replay({ work: chart({ after: { 1000: 'done' } }) }), {
    outcome: 'diverges',
    difference: difference('work')
  })
  t.strictSame(await replay({ work: chart({ ...asking, meta: { prompt: 'Which?' } }) }), {
    outcome: 'otherwise',
    difference: difference('question "Which?"')
  })
  t.strictSame(await replay({ work: chart({ ...asking, meta: { prompt: 'Size?', schema: z.enum(['a', 'b']) } }) }), {
    outcome: 'other answer',
    difference: difference(was)
  })
  t.strictSame(await replay({ work: chart({ ...asking, tags: 'auth-required' }) }), {
    outcome: 'diverges',
    difference: difference('request for authorization "Size?"')
  })
  t.strictSame(await replay({ work: chart({ ...asking, on: { other: 'done' } }) }), {
    outcome: 'diverges',
    difference: difference('question that takes no answer')
  })
  const throwing = {
    ...asking,
    meta: {
      prompt: () => {
        throw new Error('no size')
      }
    }
  }
  t.strictSame(await replay({ work: chart(throwing) }), {
    outcome: 'diverges',
    difference: difference('question that throws: The work ended with an error. (no size)')
  })
  t.match(await replay({ work: chart(throwing) }, ['/snapshot/children/work/snapshot/context/a']), {
    outcome: 'cannot say',
    reason: 'its chart reads redacted values'
  })
  const text = '/events/2/update/statusUpdate/status/message/parts/0/text'
  t.strictSame(await replay({ work: chart({ ...asking, meta: { prompt: 'Which?' } }) }, [text]), { outcome: 'same' })
})

await t.test('a timer that leads nowhere diverges, and one of another version is renewed', async t => {
  const waiting = { after: { 1000: 'done', soon: 'done' } }
  const replay = await stored(t, { work: chart(waiting), version: '1' })
  t.strictSame(await replay({ work: chart(waiting), version: '1' }), { outcome: 'same' })
  t.strictSame(await replay({ work: chart({ after: { 2000: 'done', soon: 'done' } }), version: '1' }), {
    outcome: 'diverges',
    difference: { at: 'asking', was: 'timer after 1000 ms', is: 'no transition for it' }
  })
  t.strictSame(
    await replay({ work: chart({ after: { 2000: 'done', soon: 'done' }, on: { go: 'done' } }), version: '2' }),
    {
      outcome: 'otherwise',
      difference: { at: 'asking', was: 'timer after 1000 ms', is: 'timer after 2000 ms and timer after soon' }
    }
  )
})

await t.test(
  'a delayed event of the author needs a transition, and one to an actor that is no chart does not',
  async t => {
    const listening = setupWork({ actors: { ear: fromTransition(state => state, {}) } })
    const machine = (on: object): AnyStateMachine =>
      listening.createMachine({
        id: 'order',
        initial: 'on',
        states: {
          on: {
            type: 'parallel',
            invoke: { src: 'ear', id: 'ear' },
            entry: [
              listening.raise({ type: 'tick' } as never, { delay: 1000 }),
              listening.sendTo('ear', { type: 'tick' }, { delay: 1000 })
            ],
            on,
            states: { a: {}, b: {} }
          },
          done: { type: 'final' }
        }
      } as never) as never
    const replay = await stored(t, { work: machine({ tick: '.a' }) })
    t.strictSame(await replay({ work: machine({ tick: '.b' }) }), { outcome: 'same' })
    t.strictSame(await replay({ work: machine({}) }), {
      outcome: 'diverges',
      difference: { at: '{on:{a:{},b:{}}}', was: 'timer tick', is: 'no transition for it' }
    })
  }
)

await t.test('migrate and earlier are applied as by a restart', async t => {
  const replay = await stored(t, { work: chart(asking), version: '1' })
  const renamed: Definition = {
    work: chart(asking, 'choosing'),
    version: '2',
    migrate: ({ snapshot }) => ({ ...snapshot, value: 'choosing' })
  }
  t.strictSame(await replay(renamed), { outcome: 'same' })
  t.match(await replay({ ...renamed, migrate: ({ snapshot }) => snapshot }, ['/snapshot/a']), {
    outcome: 'cannot say',
    reason: 'migrate reads redacted values'
  })
  const later = { work: chart(asking, 'choosing'), version: '2', earlier: { '1': chart(asking) } }
  t.strictSame(await replay(later), { outcome: 'same' })
})

await t.test('a chart whose actors ran fails if its work is not restarted, or an actor is not restored', async t => {
  const running = { invoke: { src: 'ear', id: 'ear' }, on: { go: 'done' } }
  const replay = await stored(t, { work: chart(running) })
  t.strictSame(await replay({ work: chart(running) }), { outcome: 'same' })
  t.match(await replay({ work: chart(running), recovery: 'fail' }), {
    outcome: 'not restored',
    reason: /does not restart/
  })
  const broken: AnyStateMachine = setupWork({
    actors: {
      ear: {
        ...fromCallback(() => {}),
        restoreSnapshot: () => {
          throw new Error('no ear')
        }
      }
    }
  }).createMachine({
    id: 'order',
    initial: 'asking',
    states: { asking: running, done: { type: 'final' } }
  } as never) as never
  t.match(await replay({ work: broken }), { outcome: 'not restored', reason: /no ear/ })
  t.match(await replay({ work: broken }, ['/snapshot/a']), {
    outcome: 'cannot say',
    reason: 'its chart reads redacted values'
  })
})

await t.test('a record is read between two commits, or not at all', async t => {
  const life = lives(t, { work: chart(asking) })
  const { id, contextId = '' } = await open(life.runtime)
  const key = { ...anyone, contextId }
  let commits = 0
  const moving: Store = {
    ...life.store,
    loadContext: async (...args) => {
      const found = await life.store.loadContext(...args)
      return found && { ...found, commit: commits++ }
    }
  }
  t.match(await rejection(readRecord(moving, key, id)), { code: 'Overloaded', message: /changes all the time/ })
  t.equal(await readRecord(life.store, key, 'gone'), undefined)
  t.equal(await readRecord(life.store, { ...key, contextId: 'gone' }, id), undefined)
  t.match(await readRecord(life.store, key, id), { isAlone: true, row: { taskId: id } })
})
