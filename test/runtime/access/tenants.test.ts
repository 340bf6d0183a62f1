import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { AgentInterface } from '../../../machines/protocol/card.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { CallContext } from '../../../runtime/access/call-context.ts'
import { BEGINNING, CallScheduler, FairQueue } from '../../../runtime/access/call-scheduler.ts'
import { defaultLimits, limitsWith } from '../../../runtime/access/limits.ts'
import { RejectedRequests } from '../../../runtime/access/quotas.ts'
import { TokenBucket, REFILL_MS } from '../../../runtime/access/shares.ts'
import type { TenantOptions } from '../../../runtime/access/tenants.ts'
import { progress, reply } from '../../../runtime/authoring/words.ts'
import { jitter } from '../../../runtime/primitives/event-loop.ts'
import { TwoGenerationCache } from '../../../runtime/primitives/collections.ts'
import type { RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { lastingStore } from '../../fixtures/runtime/lives.ts'
import {
  collect,
  deferred,
  heldStore,
  metering,
  open,
  reaches,
  rejection,
  say,
  start,
  taskIn,
  until,
  withGenerations
} from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'

const anna = { principal: 'anna' }
const bob = { principal: 'bob' }
const tenants: TenantOptions = {
  blue: { members: ['anna'] },
  green: { members: ({ principal, claims }) => principal === 'bob' || claims['role'] === 'admin' },
  grey: {}
}

function served(t: Test, options: Partial<RuntimeOptions> = {}) {
  return start(t, { work: obedient }, options)
}

/** All there is of an error for its caller, but for the ids of what it asked for. */
async function answer(call: Promise<unknown>, id: string): Promise<string> {
  const { message, ...rest } = (await rejection(call)) as Error & { details: unknown }
  return JSON.stringify([message, rest]).replaceAll(id, 'ID')
}

await t.test('every tenant is a scope of its own for everybody without configuration', async t => {
  const { runtime } = served(t)
  const calls = ['blue', 'green', ''].flatMap(tenant => [
    { ...anna, tenant },
    { ...bob, tenant }
  ])
  const ids = await Promise.all(calls.map(async call => (await open(runtime, 'ask', { contextId: 'c' }, call)).id))
  t.equal(new Set(ids).size, 6, 'the same context id means another context for each')
  for (const [index, call] of calls.entries()) {
    for (const [other, id] of ids.entries()) {
      if (other === index) t.equal((await runtime.getTask({ id }, call)).id, id)
      else t.match(await rejection(runtime.getTask({ id }, call)), { code: 'TaskNotFound' })
    }
    t.equal((await runtime.listTasks({}, call)).totalSize, 1)
  }
  t.equal(runtime.settings.hasTenants, false)
})

await t.test('a principal accesses only the tenants that it is a member of', async t => {
  const { runtime } = served(t, { tenants })
  const tasks = new Map<string, string>()
  for (const [tenant, call] of [
    ['blue', anna],
    ['green', bob],
    ['grey', anna],
    ['grey', bob]
  ] as const) {
    const { id } = await open(runtime, 'ask', {}, { ...call, tenant })
    tasks.set(`${tenant} ${call.principal}`, id)
    t.equal((await runtime.getTask({ id, tenant }, call)).id, id, 'the parameters name it as well as the address')
  }
  t.match(
    await open(runtime, 'ask', {}, { principal: 'cleo', claims: { role: 'admin' }, tenant: 'green' }),
    { status: {} },
    'claims count'
  )
  t.match(await rejection(open(runtime, 'ask', {}, { principal: 'cleo', tenant: 'green' })), { code: 'InvalidParams' })
  t.match(
    await rejection(runtime.getTask({ id: tasks.get('grey bob') ?? '', tenant: 'grey' }, anna)),
    { code: 'TaskNotFound' },
    "another principal's tasks are not shared"
  )
})

await t.test('a tenant of others is answered byte for byte as a missing one', async t => {
  const { runtime, store } = served(t, { tenants })
  const { id } = await open(runtime, 'ask', { contextId: 'c' }, { ...anna, tenant: 'blue' })
  const asking = [
    (call: CallContext) => runtime.getTask({ id }, call),
    (call: CallContext) => runtime.cancelTask({ id }, call),
    (call: CallContext) => collect(runtime.subscribeToTask({ id }, call)),
    (call: CallContext) =>
      collect(runtime.subscribeToTask({ id }, { ...call, ...withGenerations, conditions: { afterGeneration: 0 } })),
    (call: CallContext) => runtime.authorized(id, {}, call),
    (call: CallContext) =>
      runtime.sendMessage({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }], taskId: id } }, call),
    (call: CallContext) =>
      runtime.sendMessage(
        { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }], contextId: 'c' } },
        call
      ),
    (call: CallContext) =>
      collect(
        runtime.sendStreamingMessage({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] } }, call)
      ),
    (call: CallContext) => runtime.getExtendedAgentCard({}, call),
    (call: CallContext) => runtime.createTaskPushNotificationConfig({ taskId: id, url: 'https://example.com/' }, call)
  ]
  for (const [index, ask] of asking.entries()) {
    const foreign = await answer(ask({ ...bob, tenant: 'blue' }), id)
    for (const tenant of ['pink', 'blu', 'bluee', 'BLUE', '__proto__', ''])
      t.equal(await answer(ask({ ...bob, tenant }), id), foreign, `${index} ${tenant}`)
    t.equal(await answer(ask(bob), id), foreign)
    if (index < 5)
      t.equal(
        await answer(ask({ ...bob, tenant: 'grey' }), id),
        foreign,
        'the same as an accessible tenant without the task'
      )
  }
  const [foreign, absent, empty] = await Promise.all(
    ['blue', 'pink', 'grey'].map(tenant => runtime.listTasks({}, { ...bob, tenant }))
  )
  t.strictSame([foreign, absent], [empty, empty], 'a list is empty')
  t.match(await rejection(asking[6]?.({ ...bob, tenant: 'blue' }) as Promise<unknown>), {
    code: 'InvalidParams',
    violations: [{ field: 'tenant', description: 'must be one that you may use here' }]
  })
  t.match(
    await runtime.getTask({ id }, { ...anna, tenant: 'blue' }),
    { status: { state: 'TASK_STATE_INPUT_REQUIRED' } },
    'nothing has changed'
  )
  t.equal(await store.countOpen({}), 1)
})

await t.test('the tenant without a name exists if it is configured', async t => {
  const { runtime } = served(t, { tenants: { '': { members: ['anna'] }, blue: {} } })
  t.ok(await open(runtime, 'ask', {}, anna))
  t.match(await rejection(open(runtime, 'ask', {}, bob)), { code: 'InvalidParams' })
  t.ok(await open(runtime, 'ask', {}, { ...bob, tenant: 'blue' }))
})

await t.test('authorize receives the requested tenant', async t => {
  const asked: unknown[] = []
  const { runtime } = served(t, { tenants, authorize: ({ tenant, operation }) => asked.push([operation, tenant]) > 0 })
  t.match(await rejection(runtime.getTask({ id: 'x' }, { ...bob, tenant: 'blue' })), { code: 'TaskNotFound' })
  t.match(await rejection(runtime.getTask({ id: 'x', tenant: 'grey' }, bob)), { code: 'TaskNotFound' })
  t.strictSame(asked, [
    ['getTask', 'blue'],
    ['getTask', 'grey']
  ])
})

await t.test('members that fails refuses everybody, and is logged', async t => {
  for (const members of [
    () => {
      throw new Error('no database')
    },
    () => 'yes',
    async () => true
  ]) {
    const { runtime, log } = served(t, { tenants: { blue: { members: members as never } } })
    t.match(await rejection(runtime.getTask({ id: 'x' }, { ...anna, tenant: 'blue' })), { code: 'TaskNotFound' })
    t.match(log, [{ level: 'error', message: 'members of a tenant failed', details: { tenant: 'blue' } }])
  }
})

await t.test('invalid tenants are refused at once', async t => {
  const options: [unknown, string, RegExp][] = [
    [{}, 'TypeError', /is empty/],
    [{ blue: undefined }, 'TypeError', /tenants\.blue has to be an object/],
    [{ blue: null }, 'TypeError', /tenants\.blue has to be an object/],
    [{ blue: { member: [] } }, 'TypeError', /tenants\.blue has no member\. Is members meant\?/],
    [{ blue: { members: 'anna' } }, 'TypeError', /list of principals' ids, or a function/],
    [{ blue: { members: [5] } }, 'TypeError', /list of principals' ids, or a function/],
    [
      { blue: {}, healthz: {} },
      'TypeError',
      /tenants\.healthz is reserved: \/healthz reports the health of a server\. Choose another name\./
    ],
    [{ 'ag-ui': {} }, 'TypeError', /tenants\.ag-ui is reserved: \/ag-ui is where a server speaks AG-UI\./],
    [{ mcp: {} }, 'TypeError', /tenants\.mcp is reserved: \/mcp is where a server speaks MCP\. Choose another name\./],
    [{ blue: { listed: 'no' } }, 'TypeError', /tenants\.blue\.listed has to be true or false/],
    [
      { blue: { limits: { perTenants: {} } } },
      'TypeError',
      /tenants\.blue\.limits has no perTenants\. Is perTenant meant\?/
    ],
    [
      { blue: { limits: { perTenant: { openTask: 5 } } } },
      'TypeError',
      /tenants\.blue\.limits\.perTenant has no openTask\. Is openTasks meant\?/
    ],
    [
      { blue: { limits: { perPrincipal: { openTasks: 0 } } } },
      'RangeError',
      /tenants\.blue\.limits\.perPrincipal\.openTasks has to be a number above 0, not 0/
    ]
  ]
  for (const [wrong, name, message] of options)
    t.throws(() => served(t, { tenants: wrong as TenantOptions }), { name, message })
  t.throws(() => limitsWith({ perTenant: { openTasks: -1 } }), {
    name: 'RangeError',
    message: /^limits\.perTenant\.openTasks/
  })
  t.strictSame(limitsWith({ perPrincipal: { openTasks: 3 } }).perPrincipal, {
    ...defaultLimits.perPrincipal,
    openTasks: 3
  })
})

await t.test('cards', async t => {
  const ws: AgentInterface = {
    url: 'ws://127.0.0.1:1/',
    protocolBinding: 'urn:taskchart:binding:websocket:1',
    protocolVersion: '1.0'
  }
  const rest: AgentInterface = { url: 'http://127.0.0.1:1', protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' }
  const older = [
    { url: 'http://127.0.0.1:1/', protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
    { url: 'http://127.0.0.1:1', protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' }
  ]

  await t.test('list the interfaces of every tenant in order, except unlisted ones', async t => {
    const { runtime } = served(t, { tenants: { ...tenants, green: { listed: false } } })
    t.strictSame(
      runtime.agentCard([ws, rest]).supportedInterfaces,
      ['blue', 'grey'].flatMap(tenant => [
        { ...ws, tenant },
        { ...rest, tenant }
      ])
    )
    t.strictSame(
      runtime.agentCard([ws], 'pink').supportedInterfaces,
      [{ ...ws, tenant: 'pink' }],
      'for one tenant, be it there or not'
    )
  })

  await t.test('list interfaces without a tenant for the unnamed one, and if none is listed', async t => {
    t.strictSame(
      served(t, { tenants: { '': {}, blue: {} } }).runtime.agentCard([ws, ...older]).supportedInterfaces,
      [ws, ...older, { ...ws, tenant: 'blue' }, { ...older[0], url: 'http://127.0.0.1:1/blue' }],
      'of 0.3 there is a path for each tenant, but not by REST'
    )
    t.strictSame(served(t, { tenants: { blue: { listed: false } } }).runtime.agentCard([ws]).supportedInterfaces, [ws])
    t.strictSame(served(t).runtime.agentCard([ws]).supportedInterfaces, [ws])
  })

  await t.test('that are extended list the tenants of their caller', async t => {
    const { runtime } = start(
      t,
      { work: obedient, extendedCard: {} },
      { tenants: { ...tenants, red: { listed: false } } }
    )
    const card = await runtime.getExtendedAgentCard({}, { ...anna, tenant: 'blue', interfaces: [ws] })
    t.strictSame(
      card.supportedInterfaces,
      ['blue', 'grey', 'red'].map(tenant => ({ ...ws, tenant }))
    )
  })
})

await t.test('quotas', async t => {
  const few = (quota: object) => ({ limits: { perPrincipal: quota } })

  await t.test('of open tasks hold for simultaneous requests too, and an ended task frees one', async t => {
    const { runtime } = served(t, few({ openTasks: 2 }))
    const sent = await Promise.allSettled([1, 2, 3, 4, 5].map(() => open(runtime, 'ask', {}, anna)))
    t.equal(sent.filter(({ status }) => status === 'fulfilled').length, 2)
    const error = await rejection(open(runtime, 'ask', {}, anna))
    t.match(error, {
      code: 'RateLimited',
      retryAfterMs: 1000,
      metadata: { quota: 'perPrincipal.openTasks', limit: '2' }
    })
    t.equal(error.message, 'You have reached the limit of 2 open tasks. Wait for one to end, or cancel one.')
    t.match(await rejection(collect(runtime.sendStreamingMessage(say('ask'), anna))), { code: 'RateLimited' })
    t.match(
      await rejection(open(runtime, 'ask', {}, { ...anna, tenant: 'x' })),
      { code: 'RateLimited' },
      "another tenant's name does not avoid it"
    )
    t.ok(await open(runtime, 'ask', {}, bob), 'others are not affected')
    const [first] = (await runtime.listTasks({}, anna)).tasks
    t.match(
      await runtime.sendMessage(say('done', { taskId: first?.id ?? '' }), anna),
      { task: { status: { state: 'TASK_STATE_COMPLETED' } } },
      'answers are no tasks'
    )
    t.ok(await open(runtime, 'ask', {}, anna))
    t.match(await rejection(open(runtime, 'ask', {}, anna)), { code: 'RateLimited' })
    for (const { id } of (await runtime.listTasks({ status: 'TASK_STATE_INPUT_REQUIRED' }, anna)).tasks)
      await runtime.cancelTask({ id }, anna)
    for (let count = 0; count < 5; count += 1) t.ok(await runtime.sendMessage(say('x'), anna), 'tasks that end at once')
  })

  await t.test('of a tenant are shared by its principals, and separate from other tenants', async t => {
    const { runtime } = served(t, { tenants: { blue: { limits: { perTenant: { openTasks: 2 } } }, green: {} } })
    await open(runtime, 'ask', {}, { ...anna, tenant: 'blue' })
    await open(runtime, 'ask', {}, { ...bob, tenant: 'blue' })
    const error = await rejection(open(runtime, 'ask', {}, { principal: 'cleo', tenant: 'blue' }))
    t.match(error, { code: 'RateLimited', metadata: { quota: 'perTenant.openTasks', limit: '2' } })
    t.equal(error.message, 'This tenant has reached the limit of 2 open tasks. Wait for one to end, or cancel one.')
    t.ok(await open(runtime, 'ask', {}, { ...anna, tenant: 'green' }))
  })

  await t.test('count open tasks after a restart without loading them, and of passivated contexts', async t => {
    const store = lastingStore()
    const first = served(t, { store, limits: { advanced: { idleContexts: 1 } } })
    for (const call of [anna, anna, { ...anna, tenant: 'x' }, bob]) {
      const { id } = await open(first.runtime, 'ask', {}, call)
      await reaches(first.runtime, id, 'input-required', call)
    }
    await first.runtime.close()
    let loads = 0
    const second = served(t, {
      ...few({ openTasks: 3 }),
      store: { ...store, loadContext: key => ((loads += 1), store.loadContext(key)) }
    })
    t.match(await rejection(open(second.runtime, 'ask', {}, anna)), { code: 'RateLimited' })
    t.equal(loads, 0)
    t.ok(await open(second.runtime, 'ask', {}, bob))
    const [task] = (await second.runtime.listTasks({}, anna)).tasks
    await second.runtime.cancelTask({ id: task?.id ?? '' }, anna)
    t.ok(await open(second.runtime, 'ask', {}, anna), 'tasks ended by a restored context free the quota')
    t.match(await rejection(open(second.runtime, 'ask', {}, anna)), { code: 'RateLimited' })
  })

  await t.test('count tasks with failed or uncertain commits and erased tasks correctly', async t => {
    const store = heldStore()
    const { runtime } = served(t, { store, ...few({ openTasks: 2 }) })
    await open(runtime, 'ask', { contextId: 'c' }, anna)
    store.hold()
    const lost = rejection(open(runtime, 'ask', { contextId: 'd' }, anna))
    await until(() => store.held.length > 0)
    await store.release(new Error('disk full'))
    t.match(await lost, { code: 'Overloaded' })
    await store.passAll()
    t.ok(await open(runtime, 'ask', { contextId: 'e' }, anna))
    t.match(await rejection(open(runtime, 'ask', {}, anna)), { code: 'RateLimited' })
    t.equal(await runtime.erase({ ...anna, contextId: 'c' }), true)
    t.ok(await open(runtime, 'ask', {}, anna))
    t.match(await rejection(open(runtime, 'ask', {}, anna)), { code: 'RateLimited' })
    await runtime.erase(anna)
    await runtime.erase({ principal: 'nobody' })
    t.ok(await open(runtime, 'ask', {}, anna))
  })

  await t.test('of open tasks are freed when a message opens none', async t => {
    const { runtime } = start(
      t,
      {
        negotiate: ({ message }) => {
          if (message.messageId === 'bad') throw new Error('no')
          return reply('Hello.')
        },
        work: obedient
      },
      few({ openTasks: 1 })
    )
    for (let count = 0; count < 3; count += 1) t.match(await runtime.sendMessage(say('x'), anna), { message: {} })
    for (let count = 0; count < 3; count += 1)
      t.match(await rejection(runtime.sendMessage(say('x', { messageId: 'bad' }), anna)), { code: 'InternalError' })
  })

  await t.test('of open tasks do not refuse resent messages', async t => {
    const { runtime } = served(t, few({ openTasks: 1 }))
    const message = say('ask', {}, { returnImmediately: true })
    const call = { ...anna, extensions: [RELIABILITY_EXTENSION] }
    const { id } = taskIn(await runtime.sendMessage(message, call))
    t.equal(taskIn(await runtime.sendMessage(message, call)).id, id)
    const other = { ...say('ask') }
    t.match(await rejection(runtime.sendMessage(other, call)), { code: 'RateLimited' })
    await runtime.cancelTask({ id }, call)
    t.match(
      await runtime.sendMessage({ ...other, configuration: { returnImmediately: true } }, call),
      { task: {} },
      'a refused message may be resent unchanged'
    )
  })

  await t.test('of requests refuse requests over the limit, with the delay, for that time', async t => {
    const { runtime, clock } = served(t, few({ requestsPerMinute: 3 }))
    const ask = (call: CallContext = anna) => rejection(runtime.getTask({ id: 'x' }, call))
    for (let count = 0; count < 3; count += 1) t.match(await ask(), { code: 'TaskNotFound' })
    const error = await ask()
    t.match(error, {
      code: 'RateLimited',
      retryAfterMs: 20_000,
      metadata: { quota: 'perPrincipal.requestsPerMinute', limit: '3' }
    })
    t.equal(error.message, 'You have reached the limit of 3 requests per minute. Send it again later.')
    t.match(await ask({ ...anna, tenant: 'other' }), { code: 'RateLimited' }, "another tenant's name does not avoid it")
    t.match(await ask(bob), { code: 'TaskNotFound' })
    clock.increment(19_999)
    t.match(await ask(), { code: 'RateLimited', retryAfterMs: 1 })
    clock.increment(1)
    t.match(await ask(), { code: 'TaskNotFound' })
    t.match(await ask(), { code: 'RateLimited' })
    clock.increment(60_000)
    for (let count = 0; count < 3; count += 1) t.match(await ask(), { code: 'TaskNotFound' })
    t.match(await ask(), { code: 'RateLimited' })
  })

  await t.test("count each operation, but not unauthorized requests against a tenant's quota", async t => {
    const { runtime } = served(t, {
      tenants: { blue: { members: ['anna'], limits: { perTenant: { requestsPerMinute: 2 } } } },
      ...few({ requestsPerMinute: 5 })
    })
    const blue = { tenant: 'blue' }
    for (let count = 0; count < 5; count += 1)
      t.match(await rejection(runtime.getTask({ id: 'x', ...blue }, bob)), { code: 'TaskNotFound' })
    t.match(await rejection(runtime.getTask({ id: 'x', tenant: 'pink' }, bob)), {
      code: 'RateLimited',
      metadata: { quota: 'perPrincipal.requestsPerMinute' }
    })
    await runtime.listTasks(blue, anna)
    t.match(await rejection(collect(runtime.subscribeToTask({ id: 'x', ...blue }, anna))), { code: 'TaskNotFound' })
    const refused = [
      runtime.listTasks(blue, anna),
      runtime.sendMessage({ ...say('x'), ...blue }, anna),
      collect(runtime.sendStreamingMessage({ ...say('x'), ...blue }, anna)),
      runtime.cancelTask({ id: 'x', ...blue }, anna),
      runtime.authorized('x', {}, { ...anna, ...blue }),
      runtime.deleteTaskPushNotificationConfig({ id: 'x', taskId: 'x', ...blue }, anna)
    ]
    for (const call of refused)
      t.match(await rejection(call), { code: 'RateLimited', metadata: { quota: 'perTenant.requestsPerMinute' } })
  })

  await t.test('of bytes accept one request over the limit, and then none until it is compensated', async t => {
    const { runtime, clock } = served(t, few({ bytesPerMinute: 600 }))
    const ask = (bytes: number) => rejection(runtime.getTask({ id: 'x' }, { ...anna, bytes }))
    t.match(await ask(610), { code: 'TaskNotFound' })
    t.match(await ask(1), {
      code: 'RateLimited',
      retryAfterMs: 1000,
      metadata: { quota: 'perPrincipal.bytesPerMinute', limit: '600' }
    })
    clock.increment(1000)
    t.match(await ask(1_000_000), { code: 'TaskNotFound' })
    t.match(await ask(1), { code: 'RateLimited', retryAfterMs: 60_000 }, 'no wait exceeds a minute')
    t.match(await rejection(runtime.getTask({ id: 'x' }, anna)), { code: 'RateLimited' })
  })

  await t.test('of events never delay works, but refuse requests until they are compensated', async t => {
    const { runtime, clock, store } = start(
      t,
      {
        work: async function* () {
          for (let count = 0; count < 20; count += 1) yield progress(`${count}`)
        }
      },
      few({ eventsPerMinute: 12 })
    )
    const task = taskIn(await runtime.sendMessage(say('x'), anna))
    t.equal(task.status.state, 'TASK_STATE_COMPLETED')
    t.equal((await store.readEvents({ tenant: '', ...anna }, task.id, 0, 100)).length, 23)
    const error = await rejection(runtime.sendMessage(say('x'), anna))
    t.match(error, {
      code: 'RateLimited',
      retryAfterMs: 55_000,
      metadata: { quota: 'perPrincipal.eventsPerMinute', limit: '12' }
    })
    t.equal(error.message, 'You have reached the limit of 12 task events per minute. Send it again later.')
    t.match(await rejection(runtime.sendMessage(say('x', { taskId: task.id }), anna)), { code: 'RateLimited' })
    t.equal((await runtime.listTasks({}, anna)).totalSize, 1, 'reads continue, and nothing was opened')
    clock.increment(55_000)
    t.ok(await runtime.sendMessage(say('x'), anna))
  })

  await t.test("have generous defaults, a principal's a tenth of its tenant's", async t => {
    const { perTenant, perPrincipal } = defaultLimits
    for (const [name, value] of Object.entries(perPrincipal))
      t.ok(Math.abs(perTenant[name as keyof typeof perTenant] / value - 10) < 1e-9)
    const { runtime } = served(t, {
      limits: {
        perTenant: { requestsPerMinute: Infinity },
        perPrincipal: { requestsPerMinute: Infinity, openTasks: Infinity }
      }
    })
    for (let count = 0; count < 100; count += 1) await runtime.listTasks({}, anna)
    t.ok(await open(runtime, 'ask', {}, anna), 'Infinity is no limit')
  })

  await t.test("query the store once per tenant, and per principal only at its tenant's limit", async t => {
    const store = memoryStore()
    const counted: unknown[] = []
    const counting: Store = { ...store, countOpen: whose => (counted.push(whose), store.countOpen(whose)) }
    const { runtime } = served(t, { store: counting, ...few({ openTasks: 3 }) })
    for (const call of [anna, bob, { principal: 'cleo' }]) await open(runtime, 'ask', {}, call)
    t.strictSame(counted, [{ tenant: undefined }])
    for (const call of [anna, bob, anna]) await open(runtime, 'ask', {}, call)
    t.match(counted.slice(1), [{ principal: 'anna' }, { principal: 'bob' }])
    t.equal(counted.length, 3)
  })

  await t.test('are correct when tasks open and end while the store is queried', async t => {
    const store = memoryStore()
    const asked = deferred()
    const { runtime } = served(t, {
      ...few({ openTasks: 3 }),
      store: { ...store, countOpen: async whose => (await asked.promise, store.countOpen(whose)) }
    })
    const sent = [1, 2, 3, 4].map(() => open(runtime, 'ask', {}, anna))
    asked.resolve()
    t.equal((await Promise.allSettled(sent)).filter(({ status }) => status === 'fulfilled').length, 3)
    const [task] = (await runtime.listTasks({}, anna)).tasks
    await runtime.cancelTask({ id: task?.id ?? '' }, anna)
    t.ok(await open(runtime, 'ask', {}, anna))
    t.match(await rejection(open(runtime, 'ask', {}, anna)), { code: 'RateLimited' })
  })
})

await t.test('turns', async t => {
  await t.test('alternate between waiting callers, 16 calls of one per turn of the loop, in order', async t => {
    const turns = new FairQueue(BEGINNING)
    const [noisy, quiet, other] = [{}, {}, {}]
    const begun: string[] = []
    const call = async (user: object, name: string) => {
      const wait = turns.next(user)
      if (wait) await wait
      begun.push(wait ? name : `${name} at once`)
    }
    const waits = Array.from({ length: 40 }, (_, index) => call(noisy, `noisy ${index}`))
    waits.push(call(quiet, 'quiet'), call(other, 'other'))
    t.strictSame(
      begun,
      Array.from({ length: 16 }, (_, index) => `noisy ${index} at once`)
    )
    await waits.at(-1)
    t.strictSame(begun.slice(16, 20), ['noisy 16', 'quiet', 'other', 'noisy 17'])
    await Promise.all(waits)
    t.strictSame(
      begun.filter(name => name.startsWith('noisy')).map(name => Number(name.split(' ')[1])),
      Array.from({ length: 40 }, (_, index) => index)
    )
    await setImmediate()
    await setImmediate()
    t.equal(turns.next(quiet), undefined, 'no call waits any more')
  })

  await t.test('are short while several callers wait, and long again for a single one', async t => {
    const turns = new FairQueue(BEGINNING)
    const [noisy, quiet] = [{}, {}]
    const atOnce = () => Array.from({ length: 20 }, () => turns.next(noisy)).filter(wait => !wait).length
    const rest = async (loops: number) => {
      for (let i = 0; i < loops; i += 1) await setImmediate()
    }
    t.equal(atOnce(), 16)
    await rest(20)
    t.equal(turns.next(quiet), undefined)
    t.equal(turns.size, 0)
    t.equal(atOnce(), 8)
    t.equal(turns.size, 12)
    await rest(20)
    t.equal(atOnce(), 8, 'it is remembered')
    for (let i = 0; i < 1024; i += 1) {
      void turns.next(noisy)
      await rest(1)
    }
    await rest(20)
    t.equal(atOnce(), 16)
    await rest(20)
  })

  await t.test("start a quiet tenant's call before most of a noisy tenant's", async t => {
    const { runtime } = served(t, { tenants: { noisy: {}, quiet: {} } })
    const ends: string[] = []
    const call = (tenant: string) =>
      runtime.sendMessage(say('x'), { ...anna, tenant }).then(() => void ends.push(tenant))
    const calls = Array.from({ length: 200 }, () => call('noisy'))
    calls.push(call('quiet'))
    await Promise.all(calls)
    t.ok(ends.indexOf('quiet') < 64, `it was number ${ends.indexOf('quiet')}`)
    t.equal((await runtime.listTasks({ tenant: 'noisy', status: 'TASK_STATE_COMPLETED' }, anna)).totalSize, 200)
  })

  await t.test('are given to principals if callers are authenticated without tenants', async t => {
    const { runtime } = served(t, { authenticate: () => ({ id: 'anybody' }) })
    const ends: string[] = []
    const call = (principal: string) =>
      runtime.sendMessage(say('x'), { principal }).then(() => void ends.push(principal))
    const calls = Array.from({ length: 200 }, () => call('noisy'))
    calls.push(call('quiet'))
    await Promise.all(calls)
    t.ok(ends.indexOf('quiet') < 64, `it was number ${ends.indexOf('quiet')}`)
  })

  await t.test('are freed while a call waits for anything but the store', async t => {
    const { runtime } = served(t, { authenticate: () => ({ id: 'anybody' }) })
    const asking = taskIn(await runtime.sendMessage(say('ask'), anna))
    const reliable = { ...anna, extensions: [RELIABILITY_EXTENSION] }
    const gone = new AbortController()
    const polls = Array.from({ length: 300 }, () =>
      runtime
        .getTask({ id: asking.id }, { ...reliable, conditions: { currentGeneration: 1000 }, signal: gone.signal })
        .catch(() => {})
    )
    t.equal((await runtime.getTask({ id: asking.id }, anna)).id, asking.id)
    t.equal(taskIn(await runtime.sendMessage(say('red', { taskId: asking.id }), anna)).id, asking.id)
    gone.abort()
    await Promise.all(polls)
  })

  await t.test('skip calls whose client has disconnected', async t => {
    const { runtime } = served(t, { authenticate: () => ({ id: 'anybody' }) })
    const gone = new AbortController()
    const calls = Array.from({ length: 40 }, () =>
      runtime.sendMessage(say('x'), { principal: 'noisy', signal: gone.signal }).catch(() => {})
    )
    gone.abort()
    await Promise.all(calls)
    t.equal((await runtime.listTasks({}, { principal: 'noisy' })).totalSize, 16)
  })

  await t.test('are by connection without tenants and authenticate', async t => {
    const { runtime } = served(t)
    const ends: string[] = []
    const [noisy, quiet] = [{}, {}]
    const call = (name: string, connection: object) =>
      rejection(runtime.getTask({ id: 'x' }, { connection })).then(() => void ends.push(name))
    await Promise.all([...Array.from({ length: 200 }, () => call('noisy', noisy)), call('quiet', quiet)])
    t.ok(ends.indexOf('quiet') < 50, `${ends.indexOf('quiet')} before it`)
  })

  await t.test('give several users equal parts of the pending lookups', async t => {
    const scheduler = new CallScheduler()
    const begun = new Map<string, number>()
    const users = ['anna', 'bob', 'carl', 'dora']
    for (const user of users.flatMap(user => Array.from({ length: 256 }, () => user)))
      void scheduler.take(user, () => (begun.set(user, (begun.get(user) ?? 0) + 1), new Promise<void>(() => {})))
    for (let turn = 0; turn < 300; turn += 1) await setImmediate()
    t.strictSame(
      [...begun],
      users.map(user => [user, 64])
    )
  })

  await t.test('are not used in process without tenants and authenticate: calls start as they arrive', async t => {
    const { runtime } = served(t)
    const ends: string[] = []
    const call = (principal: string, tenant: string) =>
      rejection(runtime.getTask({ id: 'x', tenant }, { principal })).then(() => void ends.push(principal))
    await Promise.all([...Array.from({ length: 200 }, (_, index) => call('anna', `${index}`)), call('bob', '0')])
    t.equal(ends.indexOf('bob'), 200)
  })

  await t.test('are withheld from callers with 256 pending lookups while others continue', async t => {
    const scheduler = new CallScheduler()
    const begun: string[] = []
    const ends: (() => void)[] = []
    const call = (user: string, name: string) =>
      scheduler.take(user, releaseRead => {
        begun.push(name)
        return new Promise<void>(end => ends.push(name === 'waits' ? releaseRead : end))
      })
    for (let count = 0; count < 256; count += 1) void call('noisy', count === 255 ? 'waits' : 'reads')
    await until(() => ends.length === 256)
    const late = Array.from({ length: 16 }, (_, i) => call('noisy', `late ${i}`))
    const reading = scheduler.reading.next('noisy')
    t.type(reading, Promise, 'and so many wait that no more are parsed')
    for (let turn = 0; turn < 10; turn += 1) await setImmediate()
    void call('quiet', 'quiet')
    t.equal(begun.at(-1), 'quiet')
    t.equal(scheduler.reading.next('quiet'), undefined)
    for (const end of ends.splice(255)) end()
    await until(() => begun.includes('late 0'))
    for (let turn = 0; turn < 10; turn += 1) await setImmediate()
    t.notOk(begun.includes('late 15'), 'as many as one turn takes')
    await reading
    for (const end of ends.splice(0)) end()
    await until(() => begun.includes('late 15'))
    for (const end of ends.splice(0)) end()
    await Promise.all(late)
    for (let turn = 0; turn < 10; turn += 1) await setImmediate()
    await t.rejects(
      scheduler.take('noisy', async () => {
        throw new Error('This call is over.')
      }),
      { message: 'This call is over.' }
    )
    t.equal(await scheduler.take('noisy', async () => 'at once'), 'at once')
  })

  await t.test('after closing are refused, and authorize is called at the turn', async t => {
    let asked = 0
    const { runtime } = served(t, { authorize: () => (asked += 1) > 0, tenants: { blue: {} } })
    const calls = Array.from({ length: 20 }, () => rejection(runtime.getTask({ id: 'x', tenant: 'blue' }, anna)))
    t.equal(asked, 16)
    const closing = runtime.close()
    t.match(
      await Promise.all(calls),
      Array.from({ length: 20 }, () => ({ code: 'Overloaded' }))
    )
    await closing
    t.equal(asked, 16)
  })
})

await t.test('a bucket holds a minute, at least one, refills evenly, and survives clock changes', t => {
  const bucket = new TokenBucket(7)
  for (let count = 0; count < 7; count += 1) {
    t.equal(bucket.waitMs(1, 1000), 0)
    bucket.use(1, 1000)
  }
  t.equal(Math.ceil(bucket.waitMs(1, 1000)), Math.ceil(60_000 / 7))
  t.equal(bucket.waitMs(1, 500) > 8000, true, 'the clock was set back')
  t.equal(bucket.waitMs(1, 500 + 60_000 / 7), 0, 'it refills from then on')
  const slow = new TokenBucket(0.5)
  t.equal(slow.waitMs(1, 0), 0)
  slow.use(1, 0)
  t.equal(slow.waitMs(1, 0), 120_000)
  const endless = new TokenBucket(Infinity)
  endless.use(2 ** 40, 0)
  t.equal(endless.waitMs(1, 0), 0)
  t.end()
})

await t.test('unused counters are removed after a while, and used ones are kept', t => {
  let made = 0
  const recent = new TwoGenerationCache(() => ({ number: (made += 1) }), REFILL_MS)
  const first = recent.get('a', 0)
  for (let count = 0; count < 1000; count += 1) recent.get(`b${count}`, 0)
  t.equal(recent.size, 1001)
  t.equal(recent.get('a', REFILL_MS), first)
  t.equal(recent.find('a'), first)
  t.equal(recent.find('b7')?.number, 9)
  t.equal(recent.get('a', 2 * REFILL_MS), first)
  t.equal(recent.size, 1, 'only that one is left')
  t.equal(recent.find('b7'), undefined)
  for (let count = 0; count < 500_000; count += 1) recent.get(`c${count}`, 2 * REFILL_MS)
  t.ok(recent.size <= 200_000, 'however many come')
  t.not(recent.get('a', 2 * REFILL_MS), first)
  t.end()
})

await t.test('callers that wait at the same time get different delays', async t => {
  const waits = jitter(200)
  const given = Array.from({ length: 32 }, waits).toSorted((a, b) => a - b)
  t.ok(given.every(ms => ms >= 100 && ms < 300))
  t.ok(given.every((ms, i) => i === 0 || ms - Number(given[i - 1]) > 2))
})

await t.test('an error of ours in reading a rejected request is neither counted nor taken for its answer', t => {
  const failed: string[] = []
  const fault = new TypeError('a bug')
  const clock = Object.assign(new TestClock(), {
    now() {
      throw fault
    }
  })
  const rejected = new RejectedRequests(metering(memoryStore(), clock), { failed: code => failed.push(code) })
  const read = () => {
    throw fault
  }
  t.throws(() => rejected.read({}, {}, read), fault)
  t.throws(() => rejected.count({}), fault)
  t.strictSame(failed, [])
  t.end()
})
