import t, { type Test } from 'tap'
import {
  artifact,
  inputRequired,
  progress,
  text,
  textOf,
  type WorkArguments,
  type WorkFunction,
  type WorkGenerator
} from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { failOnLooseErrors, lives, type Lives } from '../../fixtures/runtime/lives.ts'
import { deferred, open, reaches, rest } from '../../fixtures/runtime/runtime-helpers.ts'
import { answer, patchesOf, patchSuite, resultOf } from '../../fixtures/stores/patch-suite.ts'

failOnLooseErrors(t)

await t.test('patches in the store in memory', t => patchSuite(t, () => memoryStore()))

/** Starts a task with one code, and restarts the process with another after `between`. */
async function changed(
  t: Test,
  now: WorkFunction,
  later: WorkFunction,
  between: (life: Lives, id: string) => Promise<unknown> = rest
): Promise<{ life: Lives; id: string }> {
  const life = lives(t, { work: now })
  const { id } = await open(life.runtime)
  await rest()
  await between(life, id)
  await life.kill({ work: later })
  await rest()
  return { life, id }
}

await t.test('a new task takes every patch, as a function and as a generator', async t => {
  const generator: WorkGenerator = async function* ({ patch, retired }) {
    yield progress('working')
    retired('old')
    const isPatched = patch('tax')
    yield* inputRequired('Go?')
    return { artifact: String(isPatched) }
  }
  const fun: WorkFunction = async ({ patch, retired, ask }) => {
    retired('old')
    const isPatched = patch('tax')
    await ask(inputRequired('Go?'))
    return { artifact: String(isPatched) }
  }
  for (const work of [generator, fun]) {
    const life = lives(t, { work: work as WorkFunction })
    const { id } = await open(life.runtime)
    await reaches(life.runtime, id, 'input-required')
    t.strictSame(await patchesOf(life, id), ['old', true, 'tax', true])
    await answer(life, id, 'Go.')
    t.equal(await resultOf(life, id), 'true')
  }
})

await t.test('a generator keeps its answer over restarts', async t => {
  const work = (isPatched: boolean): WorkGenerator =>
    async function* ({ patch }) {
      const size = textOf(yield* inputRequired('Size?'))
      if (isPatched && patch('milk')) yield artifact({ artifactId: 'milk', parts: [text('milk')] })
      const name = textOf(yield* inputRequired('Name?'))
      return { artifact: `${size}, ${name}` }
    }
  for (const [passes, expected] of [
    [false, 'milk,Large, Ada'],
    [true, 'Large, Ada']
  ] as const) {
    const life = lives(t, { work: work(false) as WorkFunction })
    const { id } = await open(life.runtime)
    await rest()
    if (passes) await answer(life, id, 'Large')
    await rest()
    await life.restart({ work: work(true) as WorkFunction })
    if (!passes) await answer(life, id, 'Large')
    await rest()
    await life.again()
    t.strictSame(await patchesOf(life, id), ['milk', !passes])
    await answer(life, id, 'Ada')
    t.equal(await resultOf(life, id), expected)
  }
})

await t.test(
  'work that may have passed the point in a step that it did not finish goes on without the patch',
  async t => {
    const keys: string[] = []
    const pay = ({ idempotencyKey }: { idempotencyKey: string }) => void keys.push(idempotencyKey)
    const never = async (given: { idempotencyKey: string }) => {
      pay(given)
      await new Promise(() => {})
    }
    const { life, id } = await changed(
      t,
      async ({ step }) => {
        await step('look', () => 1)
        await step('pay', never)
      },
      async ({ step, patch, ask }) => {
        await step('look', () => 1)
        if (patch('card')) await step('pay by card', pay)
        else await step('pay', pay)
        await ask(inputRequired('Well?'))
      }
    )
    await reaches(life.runtime, id, 'input-required')
    t.strictSame(keys, [`${id}/step/pay/1`, `${id}/step/pay/1`], 'nothing is paid twice under two keys')
    t.strictSame(await patchesOf(life, id), ['card', false])
  }
)

await t.test('the end of a step, of a sleep and of a wait brings a task on to the patch', async t => {
  const held = deferred()
  const waits: readonly ((work: WorkArguments, other: string) => Promise<unknown>)[] = [
    ({ step }) => step('slow', () => held.promise),
    ({ sleep }) => sleep(1000),
    ({ completed }, other) => completed(other)
  ]
  for (const [i, wait] of waits.entries()) {
    const isCompleting = i === 2
    const asking: WorkFunction = async ({ ask }) => void (await ask(inputRequired('Go?')))
    const life = lives(t, { work: asking })
    const first = await open(life.runtime)
    const pick =
      (later: boolean): WorkFunction =>
      async work => {
        if (work.taskId === first.id) return asking(work)
        await wait(work, first.id)
        return { artifact: String(later && work.patch('tax')) }
      }
    await rest()
    await life.restart({ work: pick(false) })
    const { id } = await open(life.runtime)
    await rest()
    await life.kill({ work: pick(true) })
    await rest()
    if (isCompleting) await answer(life, first.id, 'Go.')
    held.resolve()
    await life.pass(1000)
    t.equal(await resultOf(life, id), 'true', `wait ${i + 1}`)
  }
})

await t.test('a sleep that ended while the process was down brings a task on to the patch', async t => {
  const { life, id } = await changed(
    t,
    async ({ sleep }) => sleep(1000),
    async ({ sleep, patch }) => {
      await sleep(1000)
      return { artifact: String(patch('tax')) }
    },
    async life => {
      life.die()
      life.clock.increment(5000)
    }
  )
  await life.pass(0)
  t.equal(await resultOf(life, id), 'true')
})

await t.test('a sleep that had ended before a step began does not', async t => {
  const { life, id } = await changed(
    t,
    async ({ sleep, step }) => {
      await sleep(1000)
      await step('slow', () => new Promise<void>(() => {}))
    },
    async ({ sleep, patch, step }) => {
      await sleep(1000)
      const isPatched = patch('tax')
      await step('slow', () => 1)
      return { artifact: String(isPatched) }
    },
    life => life.pass(1000)
  )
  await life.pass(0)
  t.equal(await resultOf(life, id), 'false')
})

await t.test('a wait that had ended before does not either', async t => {
  const life = lives(t, { work: async ({ ask }) => void (await ask(inputRequired('Go?'))) })
  const first = await open(life.runtime)
  await rest()
  const pick =
    (later: boolean): WorkFunction =>
    async ({ taskId, ask, completed, step, patch }) => {
      if (taskId === first.id) return void (await ask(inputRequired('Go?')))
      await completed(first.id)
      const isPatched = later && patch('tax')
      if (!later) await step('slow', () => new Promise<void>(() => {}))
      return { artifact: String(isPatched) }
    }
  await life.restart({ work: pick(false) })
  const { id } = await open(life.runtime)
  await rest()
  await answer(life, first.id, 'Go.')
  await reaches(life.runtime, first.id, 'completed')
  await life.kill({ work: pick(true) })
  t.equal(await resultOf(life, id), 'false')
  const again = await open(life.runtime)
  t.equal(await resultOf(life, again.id), 'true', 'a new task takes it')
})

await t.test(
  'a task that was restored while its step ran, and another branch had gone on, is asked where it is',
  async t => {
    const held = deferred()
    const code =
      (later: boolean): WorkFunction =>
      async ({ step, patch, ask, history }) => {
        const fast = async () => {
          await step('fast 1', () => 1)
          // What is read again takes longer than what the journal has.
          await history()
          await history()
          const isPatched = later && patch('fast')
          await step('fast 2', () => 1)
          return isPatched
        }
        const slow = async () => {
          await step('slow 1', () => held.promise)
          return later && patch('slow')
        }
        const results = await Promise.all([fast(), slow()])
        await ask(inputRequired('Well?'))
        return { artifact: results.join() }
      }
    const { life, id } = await changed(t, code(false), code(true), async () => {
      await rest()
    })
    held.resolve()
    await reaches(life.runtime, id, 'input-required')
    await answer(life, id, 'Well.')
    t.equal(await resultOf(life, id), 'false,true')
  }
)

await t.test('a step waits until the answer is stored', async t => {
  const seen: unknown[] = []
  const life = lives(t, {
    work: async ({ taskId, patch, step }) => {
      patch('tax')
      await step('first', async () => void seen.push(await patchesOf(life, taskId)))
    }
  })
  const { id } = await open(life.runtime)
  await reaches(life.runtime, id, 'completed')
  t.strictSame(seen, [['tax', true]])
})

await t.test('work that crashes and starts again in its process takes patches that it had not come to', async t => {
  let tries = 0
  const life = lives(t, {
    restart: { type: 'transient' },
    work: async ({ patch, step }) => {
      await step('look', () => 1)
      const isFirst = patch('first')
      if ((tries += 1) === 1) throw new Error('crash')
      return { artifact: `${isFirst}, ${patch('second')}` }
    }
  })
  const { id } = await open(life.runtime)
  t.equal(await resultOf(life, id), 'true, true')
})

await t.test('rounds of a loop have names of their own', async t => {
  const loop =
    (later: boolean): WorkFunction =>
    async ({ ask, patch }) => {
      const rounds: unknown[] = []
      for (let round = 1; round < 4; round += 1) {
        await ask(inputRequired('And?'))
        rounds.push(later && patch(`tax ${round}`))
      }
      return { artifact: rounds.join() }
    }
  const { life, id } = await changed(t, loop(false), loop(true), async (life, id) => {
    await answer(life, id, 'one')
    await rest()
  })
  await answer(life, id, 'two')
  await rest()
  await answer(life, id, 'three')
  t.equal(await resultOf(life, id), 'false,true,true')
})

await t.test('a retired patch that a restored task had not passed is kept, and its call may be removed', async t => {
  const { life, id } = await changed(
    t,
    async ({ ask }) => void (await ask(inputRequired('Size?'))),
    async ({ ask, retired }) => {
      await ask(inputRequired('Size?'))
      retired('tax')
      await ask(inputRequired('Name?'))
    }
  )
  await answer(life, id, 'Large')
  await rest()
  t.strictSame(await patchesOf(life, id), ['tax', true])
  await life.again({
    work: async ({ ask, patch }) => {
      await ask(inputRequired('Size?'))
      await ask(inputRequired('Name?'))
      return { artifact: String(patch('other')) }
    }
  })
  await answer(life, id, 'Ada')
  t.equal(await resultOf(life, id), 'true', 'what is left in the journal counts for no other patch')
})

await t.test('a patch that one call was refused is refused to retired too', async t => {
  const thrown: unknown[] = []
  const { life, id } = await changed(
    t,
    async ({ ask }) => {
      await ask(inputRequired('Size?'))
      await ask(inputRequired('Name?'))
    },
    async ({ ask, patch, retired }) => {
      await ask(inputRequired('Size?'))
      patch('tax')
      try {
        retired('tax')
      } catch (error) {
        thrown.push(error)
      }
      await ask(inputRequired('Name?'))
    },
    async (life, id) => {
      await answer(life, id, 'Large')
      await rest()
    }
  )
  await answer(life, id, 'Ada')
  await reaches(life.runtime, id, 'completed')
  t.match(thrown, [{ name: 'TypeError', message: /needs the old code.*taskchart tasks patches/ }])
})

await t.test('wrong use of patch and retired is a TypeError that says what to write', async t => {
  const refused: string[] = []
  const life = lives(t, {
    work: async ({ patch, retired, ask }) => {
      for (const name of ['', 'x'.repeat(201), undefined, null, 5, Symbol('x'), ['x'], { name: 'x' }])
        for (const method of [patch, retired] as ((name: unknown) => unknown)[])
          try {
            method(name)
          } catch (error) {
            refused.push(String(error))
          }
      patch('x'.repeat(200))
      await ask(inputRequired('Well?'))
    }
  })
  const { id } = await open(life.runtime)
  await reaches(life.runtime, id, 'input-required')
  t.equal(refused.length, 16)
  t.equal(
    refused[0],
    "TypeError: patch takes the name of a patch, a text of 1 to 200 characters, not an empty one: patch('two-offers')."
  )
  t.match(refused[1], /^TypeError: retired takes .* not an empty one: retired\('two-offers'\)\.$/)
  t.match(refused[2], /not one of 201 characters: patch/)
  t.match(refused[4], /not undefined: /)
  t.match(refused[8], /not a number: /)
  t.strictSame((await patchesOf(life, id)).length, 2, 'nothing else is stored')
})

await t.test('a patch after the end of its work throws, and stores nothing', async t => {
  const escaped: { patch?: (name: string) => boolean; retired?: (name: string) => void } = {}
  const life = lives(t, {
    work: async ({ patch, retired }) => {
      Object.assign(escaped, { patch, retired })
    }
  })
  const { id } = await open(life.runtime)
  await reaches(life.runtime, id, 'completed')
  t.throws(() => escaped.patch?.('late'), { name: 'AbortError', message: 'The work has ended.' })
  t.throws(() => escaped.retired?.('late'), { name: 'AbortError' })
  t.strictSame(await patchesOf(life, id), [])
})
