import t from 'tap'
import { limitsWith, type LimitChanges } from '../../../runtime/access/limits.ts'
import { SharedLimit, unfinishedBytes, sharerKeyOf } from '../../../runtime/access/shares.ts'
import { inputRequired } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Runtime } from '../../../runtime/runtime-options.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { painter, steeredWork } from '../../fixtures/runtime/agents.ts'
import { open, rejection, rest, say, start, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'

const ANNA = { principal: 'anna' }
const BOB = { principal: 'bob' }

/** Opens a task in a new context. */
const opened = (runtime: Runtime, call?: object) => open(runtime, 'x', {}, call)

const overShare = (share: string, limit: number, what = 'liveContexts') => ({
  code: 'RateLimited',
  retryAfterMs: 1000,
  metadata: { share: `${share}.${what}`, limit: String(limit) }
})

await t.test('shares count by user and by tenant, and name the limit reached: the own first', t => {
  const shares = new SharedLimit(8, { principalShare: 0.25, tenantShare: 0.5 })
  const [anna, bob, socket] = [{ user: 'anna', tenant: 'blue' }, { user: 'bob', tenant: 'blue' }, { user: {} }]
  for (const sharer of [anna, anna, bob, bob]) {
    t.equal(shares.exceeded(sharer), undefined)
    shares.add(sharer)
  }
  t.equal(shares.exceeded(anna), 'user')
  t.equal(shares.exceeded({ user: 'carl', tenant: 'blue' }), 'tenant')
  for (const sharer of [socket, socket, {}]) {
    t.equal(shares.exceeded(sharer), undefined)
    shares.add(sharer)
  }
  t.equal(shares.exceeded(socket), 'user')
  t.equal(shares.exceeded({}, 2), 'whole')
  shares.add({})
  t.equal(shares.exceeded({}), 'whole')
  t.equal(shares.exceeded(anna), 'user')
  shares.add(anna, -1)
  t.equal(shares.exceeded(anna), undefined)
  t.equal(shares.used, 7)
  t.end()
})

await t.test('a caller is scheduled by tenant if there are several, else by principal or connection', t => {
  const connection = {}
  t.equal(sharerKeyOf({ user: 'anna', tenant: 'harbour' }, connection), 'tenant harbour')
  t.equal(sharerKeyOf({ user: 'anna' }, connection), 'principal anna')
  t.equal(sharerKeyOf({}, connection), connection)
  t.end()
})

await t.test('a request over its share is accepted if its user has no other', t => {
  const shares = new SharedLimit(8, { principalShare: 0.25, tenantShare: 0.5 })
  t.equal(shares.exceeded({ user: 'anna' }, 9), undefined)
  shares.add({ user: 'anna' }, 9)
  t.equal(shares.exceeded({ user: 'anna' }, 1), 'user')
  t.equal(shares.exceeded({ user: 'bob' }, 1), 'whole')
  t.end()
})

await t.test('a message fits into a share of the unfinished bytes, whatever the limits', t => {
  const mostOf = (changes: LimitChanges) => unfinishedBytes(limitsWith(changes)).most
  t.strictSame(mostOf({}), { whole: 256 * 2 ** 20, user: 64 * 2 ** 20, tenant: 128 * 2 ** 20 })
  t.strictSame(mostOf({ messageBytes: 100 * 2 ** 20 }), {
    whole: 400 * 2 ** 20,
    user: 100 * 2 ** 20,
    tenant: 200 * 2 ** 20
  })
  t.end()
})

await t.test('a share is a fraction of the whole', t => {
  for (const name of ['principalShare', 'tenantShare'] as const) {
    t.equal(limitsWith({ advanced: { [name]: 1 } })[name], 1)
    t.throws(() => limitsWith({ advanced: { [name]: 1.1 } }), {
      name: 'RangeError',
      message: `limits.advanced.${name} has to be a part from 0 to 1, not 1.1. Leave it out for the default.`
    })
    t.throws(() => limitsWith({ advanced: { [name]: 0 } }), { name: 'RangeError' })
  }
  t.match(limitsWith(), { liveContexts: 10_000, principalShare: 0.25, tenantShare: 0.5 })
  t.end()
})

await t.test('the live contexts of one principal', async t => {
  await t.test('are at most a quarter of all, over all its tenants, and others are served', async t => {
    const { runtime } = start(t, { work: steeredWork().work }, { limits: { liveContexts: 8 } })
    const [first] = [await opened(runtime, ANNA), await opened(runtime, { ...ANNA, tenant: 'blue' })]
    const error = await rejection(opened(runtime, { ...ANNA, tenant: 'green' }))
    t.match(error, {
      ...overShare('perPrincipal', 2),
      message: 'You have reached the limit of 2 active contexts. Wait for a task to end, or cancel one.'
    })
    for (const principal of ['bob', 'bob', 'carl', 'carl', 'dora', 'dora']) await opened(runtime, { principal })
    t.match(await rejection(opened(runtime, { principal: 'emil' })), { code: 'Overloaded', retryAfterMs: 1000 })
    t.match(await rejection(opened(runtime, ANNA)), { code: 'RateLimited' }, 'its own share is named first')
    await runtime.cancelTask({ id: first.id }, ANNA)
    t.ok(await until(() => opened(runtime, ANNA).catch(() => undefined)))
  })

  await t.test('replace each other when they are idle', async t => {
    const { runtime } = start(t, { work: painter() }, { limits: { liveContexts: 8 } })
    for (const contextId of ['a', 'b', 'c', 'a', 'b']) await runtime.sendMessage(say('x', { contextId }), ANNA)
    t.pass('nothing was refused')
  })

  await t.test('are refused before anything is loaded', async t => {
    let loads = 0
    const inner = memoryStore()
    // Behind a node, the definition of the agent is stored by way of contexts as well.
    const store: Store = {
      ...inner,
      loadContext: key => {
        if (!key.principal.startsWith('urn:taskchart:')) loads += 1
        return inner.loadContext(key)
      }
    }
    const { runtime } = start(t, { work: steeredWork().work }, { store, limits: { liveContexts: 1 } })
    await opened(runtime, ANNA)
    t.match(await rejection(open(runtime, 'x', { contextId: 'other' }, ANNA)), { code: 'RateLimited' })
    t.equal(loads, 0)
  })

  await t.test('have the configured share', async t => {
    const { runtime } = start(
      t,
      { work: steeredWork().work },
      { limits: { liveContexts: 2, advanced: { principalShare: 1 } } }
    )
    for (const _ of [1, 2]) await opened(runtime, ANNA)
    t.match(await rejection(opened(runtime, ANNA)), overShare('perPrincipal', 2))
  })
})

await t.test('the live contexts of one tenant', async t => {
  const principals = ['anna', 'anna', 'bob', 'bob']

  await t.test('are at most half of all if there are several', async t => {
    const { runtime } = start(
      t,
      { work: steeredWork().work },
      { tenants: { blue: {}, green: {} }, limits: { liveContexts: 8 } }
    )
    for (const principal of principals) await opened(runtime, { principal, tenant: 'blue' })
    const error = await rejection(opened(runtime, { principal: 'carl', tenant: 'blue' }))
    t.match(error, { ...overShare('perTenant', 4), message: /^This tenant has / })
    t.ok(await opened(runtime, { principal: 'carl', tenant: 'green' }))
  })

  await t.test('may be all if there is one, or tenants are only labels', async t => {
    for (const tenants of [{ blue: {} }, undefined]) {
      const { runtime } = start(
        t,
        { work: steeredWork().work },
        { ...(tenants && { tenants }), limits: { liveContexts: 8 } }
      )
      for (const principal of [...principals, 'carl', 'carl', 'dora', 'dora'])
        await opened(runtime, { principal, tenant: 'blue' })
      t.match(await rejection(opened(runtime, { principal: 'emil', tenant: 'blue' })), { code: 'Overloaded' })
    }
  })

  await t.test('of one tenant replace each other when they are idle', async t => {
    const { runtime } = start(t, { work: painter() }, { tenants: { blue: {}, green: {} }, limits: { liveContexts: 8 } })
    for (const principal of [...principals, 'carl']) await runtime.sendMessage(say('x'), { principal, tenant: 'blue' })
    t.pass('nothing was refused')
  })
})

await t.test('the live contexts of unidentified callers', async t => {
  await t.test('are a quarter of all for each connection, until they leave memory', async t => {
    const { runtime } = start(t, { work: steeredWork().work }, { limits: { liveContexts: 8 } })
    const [first, second] = [{ connection: {} }, { connection: {} }]
    const task = await opened(runtime, first)
    await opened(runtime, first)
    const error = await rejection(opened(runtime, first))
    t.match(error, {
      ...overShare('perConnection', 2),
      message: /^This connection has reached the limit of 2 active contexts/
    })
    t.ok(await opened(runtime, second))
    await runtime.cancelTask({ id: task.id }, second)
    t.ok(await until(() => opened(runtime, first).catch(() => undefined)))
    t.match(await rejection(opened(runtime, first)), { code: 'RateLimited' })
  })

  await t.test('may be all for calls in process', async t => {
    const { runtime } = start(t, { work: steeredWork().work }, { limits: { liveContexts: 8 } })
    for (let i = 0; i < 8; i += 1) await opened(runtime)
    t.match(await rejection(opened(runtime)), { code: 'Overloaded' })
  })

  await t.test('stay with their connection after a failed commit', async t => {
    const inner = memoryStore()
    let fails = false
    const commit: Store['commit'] = commit => (fails ? Promise.reject(new Error('disk full')) : inner.commit(commit))
    const { work, runs } = steeredWork()
    const { runtime, clock } = start(t, { work }, { store: { ...inner, commit }, limits: { liveContexts: 4 } })
    const caller = { connection: {} }
    const { id } = await opened(runtime, caller)
    fails = true
    await rejection(runtime.cancelTask({ id }))
    fails = false
    await until(() => (clock.increment(1000), runs.length === 2), 'its work runs again')
    t.match(await rejection(opened(runtime, caller)), { code: 'RateLimited' })
  })
})

await t.test('the bytes of live contexts', async t => {
  /** Four fit in all, one in each share. */
  const LIMITS = { messageBytes: 100_000, advanced: { liveBytes: 400_000 } }
  const LARGE = 'x'.repeat(60_000)
  const large = (runtime: Runtime, call: object, contextId?: string) =>
    open(runtime, LARGE, contextId === undefined ? {} : { contextId }, call)
  const OVER = overShare('perPrincipal', 100_000, 'liveBytes')

  await t.test('of one principal are at most a quarter of all while its tasks are open', async t => {
    const { runtime } = start(t, { work: steeredWork().work }, { limits: LIMITS })
    const task = await large(runtime, ANNA)
    await large(runtime, ANNA, 'c')
    const error = await rejection(large(runtime, ANNA))
    t.match(error, {
      ...OVER,
      message:
        'You have reached the limit of 100000 bytes of contexts in memory. Wait for a task to end, or cancel one.'
    })
    t.match(await rejection(large(runtime, ANNA, 'c')), OVER, 'in a context that is in memory')
    for (const principal of ['bob', 'bob', 'carl', 'carl', 'dora']) await large(runtime, { principal })
    t.match(await rejection(large(runtime, { principal: 'emil' })), {
      code: 'Overloaded',
      retryAfterMs: 1000,
      message: 'The agent has too many bytes of contexts in memory. Send the request again later.'
    })
    await runtime.cancelTask({ id: task.id }, ANNA)
    t.ok(await until(() => large(runtime, ANNA).catch(() => undefined)))
  })

  await t.test('do not grow by messages to running tasks either', async t => {
    const { work, run } = steeredWork()
    const { runtime } = start(t, { work, messages: 'queue' }, { limits: LIMITS })
    const { id } = await large(runtime, ANNA)
    await run()
    const more = () => runtime.sendMessage(say(LARGE, { taskId: id }, { returnImmediately: true }), ANNA)
    await more()
    t.match(await rejection(more()), OVER)
  })

  await t.test('exclude stored data: idle contexts make room, and ended tasks use nothing', async t => {
    const { runtime } = start(
      t,
      {
        work: async function* () {
          yield* inputRequired('Which?')
          return {}
        }
      },
      { limits: LIMITS }
    )
    for (let i = 0; i < 12; i += 1) await runtime.sendMessage(say(LARGE), ANNA)
    const { runtime: echoing } = start(t, { work: () => ({ artifact: 'x' }) }, { limits: LIMITS })
    for (let i = 0; i < 12; i += 1) await echoing.sendMessage(say(LARGE, { contextId: 'c' }), ANNA)
    t.pass('nothing was refused')
  })

  await t.test('include what works read again after a restart', async t => {
    const inner = memoryStore()
    const kept: Store = { ...inner, close: async () => {} }
    const before = start(t, { work: steeredWork().work }, { store: kept, limits: LIMITS })
    for (const _ of [1, 2]) await large(before.runtime, ANNA)
    await before.runtime.close()
    const { work, runs } = steeredWork()
    const after = start(t, { work }, { store: kept, limits: LIMITS })
    await until(() => (after.clock.increment(1000), runs.length === 2), 'both works')
    t.match(await rejection(large(after.runtime, ANNA)), OVER)
    runs[0]?.resolve({})
    t.ok(await until(() => large(after.runtime, ANNA).catch(() => undefined)))
  })

  await t.test('of one restored context are at most a share: tasks beyond it fail alone', async t => {
    const inner = memoryStore()
    const asked: (number | string | undefined)[] = []
    const kept: Store = {
      ...inner,
      loadContext: (key, bytes) => (asked.push(bytes), inner.loadContext(key, bytes && 70_000)),
      readSnapshot: (scope, taskId) => (
        asked.push(taskId),
        taskId === gone ? Promise.resolve(undefined) : inner.readSnapshot(scope, taskId)
      ),
      close: async () => {}
    }
    let gone = ''
    const before = start(t, { work: painter() }, { store: kept })
    const ids = []
    for (const words of [LARGE, 'x', LARGE, LARGE.repeat(2), 'x', LARGE])
      ids.push((await open(before.runtime, words, { contextId: 'c' }, ANNA)).id)
    await rest()
    await before.runtime.close()
    asked.length = 0
    gone = String(ids[5])
    const after = start(
      t,
      { work: painter() },
      { store: kept, limits: { messageBytes: 100_000, advanced: { liveBytes: 880_000 } } }
    )
    const states = []
    t.equal(
      (await after.runtime.sendMessage(say('red', { taskId: String(ids[1]) }), ANNA).then(taskIn)).status.state,
      'TASK_STATE_COMPLETED'
    )
    for (const id of ids) states.push((await after.runtime.getTask({ id }, ANNA)).status)
    t.match(states, [
      { state: 'TASK_STATE_INPUT_REQUIRED' },
      { state: 'TASK_STATE_COMPLETED' },
      { state: 'TASK_STATE_INPUT_REQUIRED' },
      {
        state: 'TASK_STATE_FAILED',
        message: { parts: [{ text: /^This task cannot be resumed: the open tasks of its context/ }] }
      },
      { state: 'TASK_STATE_INPUT_REQUIRED' },
      { state: 'TASK_STATE_INPUT_REQUIRED' }
    ])
    t.strictSame(asked, [220_000, ids[2], gone])
  })

  await t.test('of contexts that wake have to fit: those over the share wait', async t => {
    const inner = memoryStore()
    const kept: Store = { ...inner, close: async () => {} }
    const chart = painter()
    const before = start(t, { work: chart }, { store: kept })
    const tasks = []
    for (const contextId of ['a', 'b', 'c']) tasks.push(await open(before.runtime, LARGE, { contextId }, ANNA))
    const sizes = await Promise.all(
      ['a', 'b', 'c'].map(
        async contextId =>
          (await inner.loadContext({ tenant: '', ...ANNA, contextId }))?.tasks[0]?.snapshot?.length ?? 0
      )
    )
    await before.runtime.close()
    t.ok(
      sizes.every(size => size > 60_000),
      'the charts keep their messages'
    )
    const after = start(t, { work: chart }, { store: kept, limits: { ...LIMITS, advanced: { idleContexts: 1 } } })
    for (const { id } of tasks)
      t.equal((await after.runtime.cancelTask({ id }, ANNA)).status.state, 'TASK_STATE_CANCELED')
  })
})

await t.test('contexts that wake', async t => {
  await t.test('use the share of their principal, and do not block those of others', async t => {
    const inner = memoryStore()
    const kept: Store = { ...inner, close: async () => {} }
    const before = start(t, { work: steeredWork().work }, { store: kept })
    for (let i = 0; i < 40; i += 1) await opened(before.runtime, ANNA)
    const { id } = await opened(before.runtime, BOB)
    await before.runtime.close()
    const { work, runs } = steeredWork()
    const after = start(t, { work }, { store: kept, limits: { liveContexts: 8 } })
    await until(() => runs.some(({ given }) => given.taskId === id), 'that of the other')
    await rest()
    t.equal(runs.length, 3)
    for (let done = 0; done < 41; done += 1) {
      const run = await until(() => (after.clock.increment(1000), runs[done]))
      run.resolve({})
    }
    t.strictSame(after.log, [])
  })

  await t.test('use only the whole where callers are unidentified, without their connections', async t => {
    const inner = memoryStore()
    const kept: Store = { ...inner, close: async () => {} }
    const before = start(t, { work: steeredWork().work }, { store: kept })
    for (let i = 0; i < 4; i += 1) await opened(before.runtime, { connection: {} })
    await before.runtime.close()
    const { work, run } = steeredWork()
    const after = start(t, { work }, { store: kept, limits: { liveContexts: 8 } })
    await run(3)
    t.ok(await opened(after.runtime, { connection: {} }))
  })
})
