/* oxlint-disable require-yield -- generators that say nothing are among what is tested */
import t, { type Test } from 'tap'
import type { AgentDefinition } from '../../../runtime/agent/define-agent.ts'
import { fromPromise } from '../../../runtime/work/refining.ts'
import { inputRequired } from '../../../runtime/index.ts'
import { setupWork } from '../../../runtime/authoring/setup-work.ts'
import type { Step } from '../../../runtime/authoring/work-arguments.ts'
import { failOnLooseErrors } from '../../fixtures/runtime/lives.ts'
import { deferred, reaches, rest, say, start, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'

failOnLooseErrors(t)

const fail = (): never => {
  throw new Error('no paint')
}

type Work = NonNullable<AgentDefinition['work']>
type Code = (step: Step) => unknown

/** The kinds of work that make steps, around the same code. */
const KINDS: readonly [kind: string, work: (code: Code) => Work][] = [
  [
    'a function',
    code =>
      async ({ step }) =>
        void (await code(step))
  ],
  [
    'a generator',
    code =>
      async function* ({ step }) {
        await code(step)
      }
  ],
  [
    'the promise of a chart',
    code =>
      setupWork({ actors: { code: fromPromise(async ({ step }) => void (await code(step))) } }).createMachine({
        initial: 'going',
        states: { going: { invoke: { src: 'code', onDone: 'done' } }, done: { type: 'final' } }
      })
  ]
]

/** Runs work to its end, has `ended` run then, and gives the log with the name of each step instead of its task. */
async function logOf(t: Test, work: Work, { state = 'completed', ended = () => {} } = {}) {
  const { runtime, log } = start(t, { work })
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  await reaches(runtime, id, state)
  ended()
  await rest()
  return log.map(({ level, message, details: { taskId, step, error } }) => ({
    level,
    message,
    step,
    error: (error as Error).message,
    isOfTask: taskId === id
  }))
}

const LOGGED = {
  level: 'error',
  message: 'a step failed, and its promise was never awaited',
  step: 'paint',
  error: 'no paint',
  isOfTask: true
}

for (const [kind, work] of KINDS) {
  await t.test(`${kind} with a rejected step that is never awaited logs it once`, async t => {
    t.strictSame(
      await logOf(
        t,
        work(async step => {
          void step('paint', fail)
          await step('dry', () => 1)
        })
      ),
      [LOGGED]
    )
  })

  await t.test(`${kind} with a step that rejects after its end logs it once`, async t => {
    const late = deferred()
    const code = (step: Step) =>
      void step('paint', async () => {
        await late.promise
        fail()
      })
    t.strictSame(await logOf(t, work(code), { ended: late.resolve }), [LOGGED])
  })

  await t.test(`${kind} that awaits its steps later, or handles their errors, logs nothing`, async t => {
    t.strictSame(
      await logOf(
        t,
        work(async step => {
          const later = step('a', fail)
          const settled = step('b', fail)
          step('c', fail).catch(() => {})
          void step('d', fail).then(
            () => undefined,
            () => undefined
          )
          await Promise.all([step('e', () => 1), step('f', fail)]).catch(() => {})
          await step('g', () => 1)
          await later.catch(() => {})
          try {
            await settled
          } catch {
            await Promise.allSettled([step('h', fail)])
          }
          return step('i', () => 1)
        })
      ),
      []
    )
  })

  await t.test(`${kind} that aborts its own step by the signal logs nothing`, async t => {
    t.strictSame(
      await logOf(
        t,
        work(step => {
          void step(
            'wait',
            ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
          )
        })
      ),
      []
    )
  })
}

await t.test('work that crashes also logs its rejected step that was not awaited', async t => {
  const log = await logOf(
    t,
    async ({ step }) => {
      void step('paint', fail)
      await step('dry', () => Promise.reject(new TypeError('too wet')))
    },
    { state: 'failed' }
  )
  t.strictSame(
    log.map(({ step, error }) => [step, error]),
    [
      ['paint', 'no paint'],
      [undefined, 'too wet']
    ]
  )
})

await t.test('work that is canceled before it could await its step logs nothing', async t => {
  const { runtime, log } = start(t, {
    work: async ({ step, ask }) => {
      const paint = step('paint', fail)
      await ask(inputRequired('Which colour?'))
      await paint
    }
  })
  const { id } = taskIn(await runtime.sendMessage(say('x')))
  await reaches(runtime, id, 'input-required')
  await runtime.cancelTask({ id })
  await rest()
  t.strictSame(log, [])
})
