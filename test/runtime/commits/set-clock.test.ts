import t from 'tap'
import { inputRequired, setupWork, type AgentDefinition } from '../../../runtime/index.ts'
import { receivers } from '../../fixtures/runtime/receiver.ts'
import { open, reaches, refusal, rest, say, start, until } from '../../fixtures/runtime/runtime-helpers.ts'

const MINUTE = 60_000
const HOURS = 60 * MINUTE
/** How long each work below sleeps, and how far the clock is set ahead. */
const SLEEP = 2 * HOURS

type Work = NonNullable<AgentDefinition['work']>

const asleep: Record<string, { readonly work: Work; readonly from: string; readonly to: string }> = {
  'a sleep of a function': {
    work: async ({ sleep }) => (await sleep(SLEEP), { artifact: 'awake' }),
    from: 'working',
    to: 'completed'
  },
  'a question with a deadline': {
    work: async ({ ask }) => (await ask(inputRequired('Which?', { deadlineMs: SLEEP })), { artifact: 'asked' }),
    from: 'input-required',
    to: 'failed'
  },
  'a delayed transition': {
    work: setupWork({}).createMachine({
      initial: 'waiting',
      states: { waiting: { after: { [SLEEP]: 'awake' } }, awake: { type: 'final' } }
    }),
    from: 'working',
    to: 'completed'
  }
}

await t.test('within a minute after the clock is set ahead', async t => {
  for (const [what, { work, from, to }] of Object.entries(asleep)) {
    await t.test(`${what} ends, in memory and out of it`, async t => {
      for (const idleContexts of [1000, 1]) {
        const { runtime, clock } = start(t, { work }, { limits: { advanced: { idleContexts } } })
        const { id } = await open(runtime, 'go', { contextId: 'first' })
        await reaches(runtime, id, from)
        const other = await open(runtime, 'go', { contextId: 'second' })
        await reaches(runtime, other.id, from)
        await rest()
        clock.set(SLEEP)
        clock.increment(MINUTE)
        await reaches(runtime, id, to)
        await reaches(runtime, other.id, to)
      }
    })
  }

  await t.test('a deadline of the agent ends the work', async t => {
    const { runtime, clock } = start(t, { work: () => new Promise(() => {}), deadlineMs: SLEEP })
    const { id } = await open(runtime)
    await reaches(runtime, id, 'working')
    clock.set(SLEEP)
    clock.increment(MINUTE)
    await reaches(runtime, id, 'failed')
  })

  await t.test('retention removes what is old, however rarely it looks', async t => {
    const { runtime, clock } = start(
      t,
      { work: async () => ({ artifact: 'done' }) },
      { retention: { endedTasksMs: HOURS, sweepEveryMs: SLEEP } }
    )
    const { id } = await open(runtime)
    await reaches(runtime, id, 'completed')
    await runtime.settled()
    clock.set(SLEEP)
    clock.increment(MINUTE)
    t.equal((await refusal(until(async () => void (await runtime.getTask({ id }))))).code, 'TaskNotFound')
  })

  await t.test('a webhook is tried again', async t => {
    const push = receivers()
    push.answer = () => ({ status: 503, retryAfter: '3600' })
    const { runtime, clock } = start(t, { work: async () => ({ artifact: 'done' }) }, { push })
    await runtime.sendMessage(say('go', {}, { taskPushNotificationConfig: { url: 'https://a.example/' } }))
    await until(() => push.posts.length === 1)
    await rest()
    clock.set(SLEEP)
    clock.increment(MINUTE)
    await until(() => push.posts.length === 2)
  })
})
