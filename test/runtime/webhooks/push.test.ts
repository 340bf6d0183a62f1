import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import type { TaskPushNotificationConfig } from '../../../machines/protocol/push.ts'
import { defineAgent, type AgentDefinition } from '../../../runtime/agent/define-agent.ts'
import { inputRequired } from '../../../runtime/authoring/questions.ts'
import { artifact, progress, reply } from '../../../runtime/authoring/words.ts'
import type { Runtime } from '../../../runtime/runtime-options.ts'
import { createRuntime } from '../../../runtime/runtime.ts'
import type { RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store, TaskEvent } from '../../../runtime/store/store.ts'
import { afterAttempt, deliver, type DeliveryServices } from '../../../runtime/webhooks/delivery.ts'
import { KeyedSemaphore } from '../../../runtime/webhooks/delivery-queue.ts'
import type { WorkFunction } from '../../../runtime/work/function-work.ts'
import { anyone, lastingStore } from '../../fixtures/runtime/lives.ts'
import { deliveryOf, receivers } from '../../fixtures/runtime/receiver.ts'
import {
  closed,
  collect,
  countingIds,
  deferred,
  generationOf,
  heldStore,
  messageIn,
  open,
  reaches,
  recordingLogger,
  refusal,
  rejection,
  rest,
  say,
  start,
  taskIn,
  until,
  withGenerations
} from '../../fixtures/runtime/runtime-helpers.ts'
import { IS_DEEP } from '../../fixtures/sample.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const A = 'https://a.example/'
const B = 'https://b.example/'
const anna = { principal: 'anna' }
const bob = { principal: 'bob' }
const HOUR_MS = 3_600_000

/** Asks once, and then is done. */
const asking: WorkFunction = async ({ ask }) => ({
  artifact: `heard ${JSON.stringify(await ask(inputRequired('Which?')))}`.slice(0, 5)
})

/** Opens a task that asks, with a webhook. */
async function asked(runtime: Runtime, config: TaskPushNotificationConfig = { url: A }, call = {}): Promise<string> {
  const { id } = taskIn(await runtime.sendMessage(say('go', {}, { taskPushNotificationConfig: config }), call))
  return id
}

/** Starts an agent that pushes to receivers of the test. */
function pushing(t: Test, options: Partial<RuntimeOptions> = {}, definition: Partial<AgentDefinition> = {}) {
  const sender = receivers()
  return { sender, ...start(t, { work: asking, ...definition }, { push: sender, ...options }) }
}

/** Moves the clock on until something holds, a step at a time, and gives how much that took. */
async function passed(
  clock: TestClock,
  stepMs: number,
  fact: () => boolean,
  turn: () => Promise<unknown> = () => setImmediate()
): Promise<number> {
  for (let steps = 0; ; steps += 1) {
    for (let turns = 0; turns < 8; turns += 1) await turn()
    if (fact()) return steps * stepMs
    if (steps > 5000) throw new Error(`Waited in vain for ${fact.toString()}`)
    clock.increment(stepMs)
  }
}

await t.test('a webhook of a message receives every event of its task in order', async t => {
  const { runtime, sender } = pushing(t)
  const taskId = await asked(runtime, {
    url: A,
    token: 'tok',
    authentication: { scheme: 'Bearer', credentials: 'cred' }
  })
  await until(() => sender.heard.length === 3)
  t.strictSame(sender.heard, [`${A} submitted`, `${A} working`, `${A} input-required: Which?`])
  await runtime.sendMessage(say('this', { taskId }))
  await until(() => sender.heard.length === 6)
  t.strictSame(sender.heard.slice(3), [`${A} working`, `${A} artifact: heard`, `${A} completed`])
  const [first, second] = sender.posts.map(({ headers }) => headers)
  t.match(first, {
    'Content-Type': 'application/a2a+json',
    'X-A2A-Notification-Token': 'tok',
    Authorization: 'Bearer cred'
  })
  t.match(first?.['Taskchart-Delivery-Id'], new RegExp(`^${taskId}/[\\w-]{22}/2$`))
  t.equal(second?.['Taskchart-Delivery-Id'], first?.['Taskchart-Delivery-Id']?.replace(/2$/, '3'))
  const { configs } = await runtime.listTaskPushNotificationConfigs({ taskId })
  t.equal(configs.length, 1, 'its configuration exists as long as the task')
})

await t.test('the four operations store, return, list and delete configurations', async t => {
  const { runtime, sender } = pushing(t)
  const { id: taskId } = await open(runtime)
  await reaches(runtime, taskId, 'input-required')
  const whole = { taskId, id: 'mine', url: A, token: 'tok', authentication: { scheme: 'Bearer', credentials: 'cred' } }

  await t.test('Create returns the configuration with its id or a new one, effective at once', async t => {
    t.strictSame(await runtime.createTaskPushNotificationConfig(whole), {
      id: 'mine',
      taskId,
      url: A,
      token: 'tok',
      authentication: whole.authentication
    })
    const other = await runtime.createTaskPushNotificationConfig({ taskId, url: B })
    t.match(other.id, /^id-/)
    t.strictSame(other, { id: other.id, taskId, url: B })
    t.strictSame(
      await runtime
        .createTaskPushNotificationConfig({
          tenant: 'x',
          taskId: (await open(runtime, 'go', {}, { tenant: 'x' })).id,
          id: 'i',
          url: A
        })
        .then(({ tenant }) => tenant),
      'x'
    )
    await rest()
    t.strictSame(sender.heard, [], 'earlier events are not sent')
  })

  await t.test('Get and List omit the secrets', async t => {
    const shown = { id: 'mine', taskId, url: A, authentication: { scheme: 'Bearer' } }
    t.strictSame(await runtime.getTaskPushNotificationConfig({ taskId, id: 'mine' }), shown)
    const { configs, nextPageToken } = await runtime.listTaskPushNotificationConfigs({ taskId })
    t.strictSame(configs[0], shown)
    t.equal(configs.length, 2)
    t.equal(nextPageToken, undefined)
    t.match(await refusal(runtime.getTaskPushNotificationConfig({ taskId, id: 'min' })), {
      code: 'TaskNotFound',
      message: `Task ${taskId} has no push notification configuration min.`
    })
  })

  await t.test('List returns pages, whose tokens are valid for their task and caller', async t => {
    const first = await runtime.listTaskPushNotificationConfigs({ taskId, pageSize: 1 })
    t.strictSame(
      first.configs.map(({ id }) => id),
      ['mine']
    )
    const second = await runtime.listTaskPushNotificationConfigs({
      taskId,
      pageSize: 1,
      pageToken: first.nextPageToken ?? ''
    })
    t.strictSame(
      second.configs.map(({ url }) => url),
      [B]
    )
    t.equal(second.nextPageToken, undefined)
    const { id: other } = await open(runtime)
    for (const [of, pageToken] of [
      [taskId, 'x'],
      [other, first.nextPageToken ?? '']
    ] as const) {
      t.match(await refusal(runtime.listTaskPushNotificationConfigs({ taskId: of, pageToken })), {
        code: 'InvalidParams',
        message: /pageToken/
      })
    }
    t.strictSame((await runtime.listTaskPushNotificationConfigs({ taskId: other })).configs, [])
  })

  await t.test('Delete removes it, also when it is repeated', async t => {
    for (let twice = 0; twice < 2; twice += 1)
      t.strictSame(await runtime.deleteTaskPushNotificationConfig({ taskId, id: 'mine' }), {})
    t.strictSame(
      (await runtime.listTaskPushNotificationConfigs({ taskId })).configs.map(({ url }) => url),
      [B]
    )
    await runtime.sendMessage(say('this', { taskId }))
    await until(() => sender.heard.length === 3)
    t.strictSame(sender.heard, [`${B} working`, `${B} artifact: heard`, `${B} completed`])
  })
})

await t.test("another caller's configuration is indistinguishable from a missing one", async t => {
  const { runtime } = pushing(t)
  const taskId = await asked(runtime, { id: 'w', url: A }, anna)
  const calls: ((id: string) => Promise<unknown>)[] = [
    id => runtime.createTaskPushNotificationConfig({ taskId: id, url: B }, bob),
    id => runtime.getTaskPushNotificationConfig({ taskId: id, id: 'w' }, bob),
    id => runtime.listTaskPushNotificationConfigs({ taskId: id }, bob),
    id => runtime.deleteTaskPushNotificationConfig({ taskId: id, id: 'w' }, bob)
  ]
  for (const call of calls) {
    const [foreign, absent] = [await refusal(call(taskId)), await refusal(call('nobody'))]
    t.equal(JSON.stringify(foreign).replaceAll(taskId, 'nobody'), JSON.stringify(absent))
    t.equal(absent.code, 'TaskNotFound')
  }
  t.equal((await runtime.listTaskPushNotificationConfigs({ taskId }, anna)).configs.length, 1)
})

await t.test('without a sender all operations and webhooks of messages are refused, as on the card', async t => {
  const { runtime } = start(t, { work: asking })
  const refused = { code: 'PushNotificationNotSupported' }
  t.match(await refusal(runtime.sendMessage(say('x', {}, { taskPushNotificationConfig: { url: A } }))), refused)
  t.match(await refusal(runtime.createTaskPushNotificationConfig({ taskId: 't', url: A })), refused)
  t.match(await refusal(runtime.getTaskPushNotificationConfig({ taskId: 't', id: 'w' })), refused)
  t.equal(runtime.agentCard([]).capabilities.pushNotifications, false)
  t.equal(pushing(t).runtime.agentCard([]).capabilities.pushNotifications, true)
})

await t.test('an unusable webhook is refused with the reason, without effect', async t => {
  const { runtime, sender } = pushing(t)
  const { id: taskId } = await open(runtime)
  const wrong = async (config: Partial<TaskPushNotificationConfig>) =>
    (await refusal(runtime.createTaskPushNotificationConfig({ taskId, url: A, ...config }))).message
  t.match(await wrong({ url: `${A}${'x'.repeat(2048)}` }), 'url must have at most 2048 characters')
  t.match(await wrong({ token: 'a\r\nX-Evil: 1' }), 'token must be the text of an HTTP header')
  t.match(await wrong({ token: 'x'.repeat(8193) }), 'token must be')
  t.match(await wrong({ authentication: { scheme: 'Bearer', credentials: '€' } }), 'authentication.credentials must be')
  t.match(
    await wrong({ authentication: { scheme: 'Bearer x' } }),
    'authentication.scheme must be an HTTP authentication scheme'
  )
  sender.fault = url => (url === B ? 'must be nicer' : undefined)
  t.match(await wrong({ url: B }), 'Invalid parameters: url must be nicer')
  const sent = runtime.sendMessage(say('x', {}, { taskPushNotificationConfig: { url: B } }))
  t.match(await refusal(sent), {
    code: 'InvalidParams',
    message: 'Invalid parameters: configuration.taskPushNotificationConfig.url must be nicer'
  })
  t.match(await refusal(runtime.sendMessage(say('x', {}, { taskPushNotificationConfig: { url: A, taskId } }))), {
    message: /taskPushNotificationConfig\.taskId must be the task of the message/
  })
  t.strictSame((await runtime.listTaskPushNotificationConfigs({ taskId })).configs, [])
  t.equal((await runtime.listTasks({})).totalSize, 1)
})

await t.test('an address whose validation times out is accepted, and validated before each post', async t => {
  const { runtime, sender, clock } = pushing(t)
  const { id: taskId } = await open(runtime)
  sender.fault = (_, signal) => new Promise(resolve => signal.addEventListener('abort', () => resolve(undefined)))
  const created = runtime.createTaskPushNotificationConfig({ taskId, url: A })
  let isCreated = false
  void created.then(() => (isCreated = true))
  t.equal(await passed(clock, 500, () => isCreated), 2000)
  t.equal((await created).url, A)
})

await t.test('a task and a principal have limited numbers of webhooks', async t => {
  const { runtime } = pushing(t, { limits: { advanced: { webhooksPerTask: 2, webhooksPerPrincipal: 3 } } })
  const taskId = await asked(runtime, { id: 'a', url: A })
  await runtime.createTaskPushNotificationConfig({ taskId, id: 'b', url: B })
  const full = {
    code: 'RateLimited',
    message: `Task ${taskId} has 2 push notification configurations, which is the limit. Delete one first.`
  }
  t.match(await refusal(runtime.createTaskPushNotificationConfig({ taskId, id: 'c', url: B })), full)
  t.match(
    await refusal(runtime.sendMessage(say('x', { taskId }, { taskPushNotificationConfig: { id: 'c', url: B } }))),
    full
  )
  await runtime.createTaskPushNotificationConfig({ taskId, id: 'b', url: A })
  const other = await asked(runtime)
  t.match(await refusal(runtime.createTaskPushNotificationConfig({ taskId: other, url: B })), {
    code: 'RateLimited',
    message: /^You have 3 active push/
  })
  t.equal(
    (await runtime.createTaskPushNotificationConfig({ taskId: await asked(runtime, { url: A }, bob), url: B }, bob))
      .url,
    B,
    'others are not affected'
  )
  await runtime.deleteTaskPushNotificationConfig({ taskId, id: 'a' })
  t.ok(await runtime.createTaskPushNotificationConfig({ taskId: other, url: B }))
})

await t.test('a message updates the webhook with its address, or adds one for a new address', async t => {
  const { runtime, sender } = pushing(
    t,
    {},
    {
      work: async ({ ask }) => {
        for (;;) await ask(inputRequired('More?'))
      }
    }
  )
  const taskId = await asked(runtime, { url: A, token: 'old' })
  await until(() => sender.heard.length === 3)
  await runtime.sendMessage(say('1', { taskId }, { taskPushNotificationConfig: { url: A, token: 'new', taskId } }))
  await until(() => sender.heard.length === 5)
  await runtime.sendMessage(say('2', { taskId }, { taskPushNotificationConfig: { url: B } }))
  await until(() => sender.heard.length === 9)
  t.strictSame(
    sender.heard.slice(3).filter(each => each.startsWith(A)),
    [`${A} working`, `${A} input-required: More?`, `${A} working`, `${A} input-required: More?`]
  )
  t.strictSame(
    sender.heard.filter(each => each.startsWith(B)),
    [`${B} working`, `${B} input-required: More?`],
    'starting with the event that the message caused'
  )
  t.strictSame(
    sender.posts.filter(({ url }) => url === A).map(({ headers }) => headers['X-A2A-Notification-Token']),
    ['old', 'old', 'old', 'new', 'new', 'new', 'new']
  )
})

await t.test('a message answered without a task, or lost with its process, adds no webhook', async t => {
  const gate = deferred()
  const store = lastingStore()
  const sender = receivers()
  const negotiate: AgentDefinition['negotiate'] = async ({ message }) => {
    if (message.messageId === 'slow') await gate.promise
    return reply('Hello.')
  }
  const { runtime, clock } = start(t, { negotiate }, { store, push: sender })
  const hello = { message: { ...say('hello').message }, configuration: { taskPushNotificationConfig: { url: A } } }
  t.ok(messageIn(await runtime.sendMessage(hello)))
  t.strictSame(await store.readOpenWebhooks(10, 0), [])
  const slow = runtime.sendMessage({ ...hello, message: { ...hello.message, messageId: 'slow', contextId: 'c' } })
  await rest()
  const rejected = rejection(slow)
  await closed(runtime, clock)
  await rejected
  gate.resolve()
  start(t, { negotiate }, { store, push: sender })
  await rest()
  t.strictSame(await store.readMessages({ tenant: '', principal: 'anonymous', contextId: 'c' }, 10), [])
})

/** Stores that outlive a runtime: one in memory, one in a file. */
const STORES: readonly [name: string, open: (t: Test) => () => Store][] = [
  [
    'in memory',
    () => {
      const store = lastingStore()
      return () => store
    }
  ],
  [
    'in a file',
    t => {
      const file = `${t.testdir()}/tasks.db`
      return () => sqliteStore(file)
    }
  ]
]

for (const [name, storeFor] of STORES) {
  await t.test(
    `a receiver that is down for 24 hours later receives every event once: ${name}`,
    { skip: name === 'in a file' && NO_SQLITE },
    async t => {
      const open = storeFor(t)
      // Each turn reads the store, which takes longer in a file.
      const stepMs = name === 'in memory' || IS_DEEP ? 60_000 : 600_000
      const clock = new TestClock()
      const sender = receivers()
      const { logger, log } = recordingLogger()
      const work: WorkFunction = async ({ ask, emit }) => {
        for (let n = 1; n <= 20; n += 1)
          emit(artifact({ artifactId: 'a', parts: [{ text: `${n}` }] }, { append: n > 1 }))
        await ask(inputRequired('Which?'))
        emit(progress('last words'))
        return { artifact: 'done' }
      }
      const run = () =>
        createRuntime({
          agent: defineAgent({ card: { name: 'Test' }, work, cancelGraceMs: 0 }),
          clock,
          ids: countingIds(),
          logger,
          store: open(),
          push: sender
        })
      const isDown = (url: string) => url === A
      sender.answer = ({ url }) => (isDown(url) ? { failure: 'no connection (ECONNREFUSED)' } : { status: 200 })
      let runtime = run()
      const startMs = clock.now()
      const taskId = await asked(runtime)
      // What the store was asked before is done when this is answered.
      const read = async () => {
        await runtime.getTask({ id: taskId, historyLength: 0 })
        await setImmediate()
      }
      await runtime.createTaskPushNotificationConfig({ taskId, id: 'b', url: B })
      await passed(clock, stepMs, () => clock.now() - startMs > 12 * HOUR_MS, read)
      await closed(runtime, clock)
      runtime = run()
      t.teardown(() => closed(runtime, clock))
      await runtime.sendMessage(say('this', { taskId }))
      await until(() => sender.heard.length === 4)
      t.strictSame(
        sender.heard.map(each => each.slice(0, B.length)),
        [B, B, B, B],
        'the other receiver is not delayed'
      )
      await passed(clock, stepMs, () => clock.now() - startMs > 24 * HOUR_MS, read)
      const tries = sender.posts.filter(({ url }) => url === A)
      t.strictSame(new Set(tries.map(deliveryOf)).size, 1, 'only the first event is tried')
      t.ok(tries.length > 25 && tries.length < 60, `${tries.length} tries in a day`)
      sender.answer = () => ({ status: 200 })
      await passed(clock, stepMs, () => sender.heard.filter(each => each.startsWith(A)).length === 27, read)
      const heard = sender.posts.slice(-27)
      const events = await collect(
        runtime.subscribeToTask({ id: taskId }, { ...withGenerations, conditions: { afterGeneration: 0 } })
      )
      t.equal(events.length, 27)
      t.strictSame(
        heard.map(post => Number(deliveryOf(post).split('/')[2])),
        events.map(generationOf)
      )
      await passed(clock, HOUR_MS, () => clock.now() - startMs > 30 * HOUR_MS, read)
      t.equal(sender.heard.length, 31, 'nothing arrives twice')
      t.strictSame(log, [])
    }
  )
}

await t.test('a message after the last event is nothing to deliver, and ends no webhook at the next start', async t => {
  const store = lastingStore()
  const goOn = deferred()
  const work: WorkFunction = async () => (await goOn.promise, { artifact: 'done' })
  const before = pushing(t, { store }, { work, messages: 'queue', cancelGraceMs: 0 })
  const { id: taskId } = taskIn(
    await before.runtime.sendMessage(
      say('go', {}, { returnImmediately: true, taskPushNotificationConfig: { id: 'w', url: A } })
    )
  )
  await until(() => before.sender.heard.length === 2)
  await before.runtime.sendMessage(say('more', { taskId }, { returnImmediately: true }))
  await closed(before.runtime, before.clock)
  const [webhook] = await store.readWebhooks(anyone, taskId)
  t.match(webhook, { generation: 4, row: { progress: { told: 3 } } })
  let reads = 0
  const readEvents: Store['readEvents'] = (...args) => ((reads += 1), store.readEvents(...args))
  const { runtime, sender } = pushing(t, { store: { ...store, readEvents } }, { work, messages: 'queue' })
  await until(() => reads > 0)
  await rest()
  t.match(await runtime.listTaskPushNotificationConfigs({ taskId }), { configs: [{ id: 'w' }] })
  t.strictSame(sender.heard, [])
  goOn.resolve()
  await until(() => sender.heard.length === 2)
  t.strictSame(sender.heard, [`${A} artifact: done`, `${A} completed`])
})

await t.test('the delay after a failure doubles up to an hour, with jitter and Retry-After', t => {
  const failing = (tries: number, spread: number, answer: Parameters<typeof afterAttempt>[1] = { status: 503 }) => {
    const next = afterAttempt({ told: 0, tries, failingSinceMs: 0 }, answer, {
      generation: 1,
      isLast: false,
      nowMs: 1_000_000,
      spread,
      triesMs: 10_000_000
    })
    return next === 'gone' ? NaN : (next.dueAtMs ?? NaN) - 1_000_000
  }
  t.strictSame(
    [0, 1, 2, 11, 12, 40].map(tries => failing(tries, 0)),
    [1000, 2000, 4000, 2_048_000, HOUR_MS, HOUR_MS]
  )
  t.strictSame(
    [0, 12].map(tries => failing(tries, 0.5)),
    [750, 2_700_000]
  )
  t.equal(failing(0, 0, { status: 429, retryAfter: '120' }), 120_000)
  t.equal(failing(0, 0, { status: 503, retryAfter: new Date(1_060_000).toUTCString() }), 60_000)
  t.equal(failing(0, 0, { status: 503, retryAfter: '999999999' }), HOUR_MS, 'but no longer than an hour')
  for (const retryAfter of ['soon', '', '-5', 'x'.repeat(100)])
    t.equal(failing(0, 0, { status: 503, retryAfter }), 1000, retryAfter)
  t.end()
})

await t.test('each response of a receiver has its effect on the next attempt', t => {
  const before = { told: 4, tries: 2, refusals: 7, failingSinceMs: 0 }
  const after = (answer: Parameters<typeof afterAttempt>[1], more: Partial<Parameters<typeof afterAttempt>[2]> = {}) =>
    afterAttempt(before, answer, { generation: 5, isLast: false, nowMs: 50, spread: 0, triesMs: 100, ...more })
  for (const status of [200, 201, 202, 204, 299]) t.strictSame(after({ status }), { told: 5, tries: 0 })
  t.strictSame(after({ status: 200 }, { isLast: true }), { told: 5, tries: 0, end: 'told' })
  t.equal(after({ status: 410 }), 'gone')
  t.equal(after('gone'), 'gone', 'its task was removed')
  for (const status of [101, 301, 302, 307, 401, 403, 404, 405, 409, 451])
    t.match(after({ status }), { told: 4, tries: 3, refusals: 8, failure: `HTTP ${status}`, end: 'given up' })
  for (const status of [400, 413, 415, 422]) {
    const rejected = { events: 1, generation: 5, failure: `HTTP ${status}` }
    t.strictSame(after({ status }), { told: 5, tries: 0, rejected })
    t.strictSame(after({ status }, { isLast: true }), { told: 5, tries: 0, rejected, end: 'told' })
    const second = { generation: 6, isLast: false, nowMs: 50, spread: 0, triesMs: 100 }
    t.strictSame(afterAttempt({ told: 5, tries: 0, rejected }, { status }, second), {
      told: 6,
      tries: 0,
      rejected: { events: 2, generation: 6, failure: `HTTP ${status}` }
    })
    t.strictSame(
      afterAttempt({ told: 5, tries: 0, rejected }, { status: 200 }, second),
      { told: 6, tries: 0, rejected },
      'a success keeps the rejections'
    )
    t.match(
      afterAttempt({ told: 5, tries: 0, rejected }, { status: 503 }, second),
      { told: 5, tries: 1, rejected },
      'so does a failure'
    )
  }
  t.match(after({ failure: 'not there', isRefused: true }), { end: 'given up', failure: 'not there' })
  for (const status of [408, 429, 500, 503, 599])
    t.strictSame(after({ status }), {
      told: 4,
      tries: 3,
      refusals: 0,
      failingSinceMs: 0,
      failure: `HTTP ${status}`,
      dueAtMs: 4050
    })
  t.match(after({ failure: 'no connection' }, { nowMs: 99 }), { refusals: 0, dueAtMs: 4099 })
  t.match(after({ failure: 'no connection' }, { nowMs: 100 }), { end: 'given up' })
  t.strictSame(
    afterAttempt(
      { told: 0, tries: 0 },
      { status: 404 },
      { generation: 1, isLast: false, nowMs: 9, spread: 0, triesMs: 100 }
    ),
    {
      told: 0,
      tries: 1,
      refusals: 1,
      failingSinceMs: 9,
      failure: 'HTTP 404',
      dueAtMs: 1009
    }
  )
  t.end()
})

await t.test('a refused webhook is given up after a few attempts, and can be registered again', async t => {
  const { runtime, sender, clock, store, log } = pushing(t)
  sender.answer = ({ body }) => (body.includes('WORKING') ? { status: 404 } : { status: 200 })
  const taskId = await asked(runtime, { id: 'w', url: 'https://a.example/?key=hidden', token: 'hidden' })
  await passed(clock, 1000, () => log.length > 0)
  t.strictSame(log, [
    {
      level: 'warn',
      message: 'a webhook is given up',
      details: { taskId, webhook: 'w', generation: 3, tries: 8, failure: 'HTTP 404' }
    }
  ])
  t.equal(sender.posts.length, 9)
  const [dead] = await store.readWebhooks({ tenant: '', principal: 'anonymous' }, taskId)
  t.match(dead?.row.progress, { told: 2, tries: 8, end: 'given up' })
  await runtime.sendMessage(say('this', { taskId }))
  await passed(clock, HOUR_MS, () => true)
  t.equal(sender.posts.length, 9, 'nothing more is posted to it')
  sender.answer = () => ({ status: 200 })
  await runtime.createTaskPushNotificationConfig({ taskId, id: 'w', url: B })
  await until(() => sender.heard.length === 6)
  t.strictSame(
    sender.heard.slice(1).map(each => each.replace(B, '').trim()),
    ['working', 'input-required: Which?', 'working', 'artifact: heard', 'completed']
  )
  t.notMatch(JSON.stringify(log), 'hidden')
})

await t.test('a rejected event does not block the next, is logged, and counts over a restart', async t => {
  const { runtime, sender, store, log } = pushing(t)
  sender.answer = ({ body }) => (body.includes('WORKING') ? { status: 422 } : { status: 200 })
  const taskId = await asked(runtime, { id: 'w', url: A })
  await until(() => sender.heard.length === 2)
  t.strictSame(
    sender.heard.map(each => each.replace(A, '').trim()),
    ['submitted', 'input-required: Which?']
  )
  t.strictSame(log, [
    {
      level: 'warn',
      message: 'a receiver rejected an event',
      details: { taskId, webhook: 'w', events: 1, generation: 3, failure: 'HTTP 422' }
    }
  ])
  await runtime.sendMessage(say('this', { taskId }))
  await until(
    async () =>
      (await store.readWebhooks({ tenant: '', principal: 'anonymous' }, taskId))[0]?.row.progress.end === 'told'
  )
  const [row] = await store.readWebhooks({ tenant: '', principal: 'anonymous' }, taskId)
  t.strictSame(row?.row.progress, {
    told: 8,
    tries: 0,
    rejected: { events: 2, generation: 6, failure: 'HTTP 422' },
    end: 'told'
  })
})

await t.test('a webhook whose receiver keeps failing is given up after its time limit', async t => {
  const { runtime, sender, clock, log } = pushing(t, { limits: { advanced: { webhookTriesMs: HOUR_MS } } })
  sender.answer = () => ({ status: 500 })
  await asked(runtime)
  const took = await passed(clock, 60_000, () => log.length > 0)
  t.ok(took >= HOUR_MS && took <= 2.2 * HOUR_MS, `${took} ms`)
  t.match(log[0], { message: 'a webhook is given up', details: { failure: 'HTTP 500' } })
})

await t.test('a receiver that answers 410 loses its webhook', async t => {
  const { runtime, sender } = pushing(t)
  sender.answer = () => ({ status: 410 })
  const taskId = await asked(runtime)
  await until(async () => (await runtime.listTaskPushNotificationConfigs({ taskId })).configs.length === 0)
  await runtime.sendMessage(say('this', { taskId }))
  await rest()
  t.equal(sender.posts.length, 1)
})

await t.test('a receiver that does not answer times out, and is retried', async t => {
  const { runtime, sender, clock, store } = pushing(t)
  sender.answer = (_, signal) =>
    new Promise(resolve => signal.addEventListener('abort', () => resolve({ failure: 'aborted' })))
  const taskId = await asked(runtime)
  await until(() => sender.posts.length === 1)
  clock.increment(14_999)
  await rest()
  t.equal(sender.posts.length, 1)
  t.equal((await passed(clock, 500, () => sender.posts.length === 2)) <= 2000, true)
  const [webhook] = await store.readWebhooks({ tenant: '', principal: 'anonymous' }, taskId)
  t.match(webhook?.row.progress, { tries: 1, failure: 'no answer within 15000 ms' })
})

await t.test('simultaneous posts are shared: a quarter for a principal, half for one of several tenants', async t => {
  const hosts = Array.from({ length: 4 }, (_, host) => `https://host-${host}.example/`)
  const under = async (options: Partial<RuntimeOptions>, calls: readonly object[]) => {
    const { runtime, sender } = pushing(t, { limits: { advanced: { webhooksAtOnce: 8 } }, ...options })
    sender.answer = (_, signal) =>
      new Promise(resolve => signal.addEventListener('abort', () => resolve({ status: 200 })))
    for (const call of calls) for (const url of hosts) await asked(runtime, { url }, call)
    await rest()
    return sender.posts.length
  }
  const principals = ['anna', 'bob', 'carl', 'dora'].map(principal => ({ principal, tenant: 'blue' }))
  t.equal(await under({}, [anna]), 2)
  t.equal(await under({ limits: { advanced: { webhooksAtOnce: 8, principalShare: 0.5 } } }, [anna]), 4)
  t.equal(await under({ tenants: { blue: {}, green: {} } }, principals), 4)
  t.equal(await under({ tenants: { blue: {}, green: {} } }, [...principals, { principal: 'emil', tenant: 'green' }]), 6)
  t.equal(await under({}, principals), 8, 'tenants are only labels')
})

await t.test('deletion stops pending, scheduled and queued posts at once', async t => {
  const { runtime, sender, clock } = pushing(t, { limits: { advanced: { webhooksAtOncePerHost: 1 } } })
  let aborted = 0
  sender.answer = (_, signal) =>
    new Promise(resolve =>
      signal.addEventListener('abort', () => {
        aborted += 1
        resolve({ status: 200 })
      })
    )
  const taskId = await asked(runtime, { id: 'under way', url: A })
  await runtime.createTaskPushNotificationConfig({ taskId, id: 'waits', url: A })
  const other = await asked(runtime, { id: 'waits too', url: A })
  await until(() => sender.posts.length === 1)
  await runtime.deleteTaskPushNotificationConfig({ taskId: other, id: 'waits too' })
  await runtime.deleteTaskPushNotificationConfig({ taskId, id: 'under way' })
  t.equal(aborted, 1)
  sender.answer = () => ({ status: 500 })
  const third = await asked(runtime, { id: 'fails', url: B })
  await until(() => sender.posts.length === 2)
  await rest()
  await runtime.deleteTaskPushNotificationConfig({ taskId: third, id: 'fails' })
  await passed(clock, HOUR_MS, () => true)
  clock.increment(HOUR_MS)
  await rest()
  t.equal(sender.posts.length, 2)
})

await t.test('erased webhooks receive nothing more, and others continue', async t => {
  const { runtime, sender, clock } = pushing(t)
  sender.answer = () => ({ status: 500 })
  const gone = await asked(runtime, { id: 'gone', url: A }, anna)
  const contextId = (await runtime.getTask({ id: gone }, anna)).contextId ?? ''
  await asked(runtime, { id: 'stays', url: B }, anna)
  await asked(runtime, { id: 'bob', url: B }, bob)
  await until(() => sender.posts.length === 3)
  await runtime.erase({ principal: 'anna', contextId })
  sender.answer = () => ({ status: 200 })
  await passed(clock, 1000, () => sender.heard.length === 6)
  t.strictSame(new Set(sender.heard.map(each => each.slice(0, B.length))), new Set([B]))
})

await t.test('a webhook is removed with its expired task', async t => {
  const { runtime, sender, clock, store } = pushing(t, { retention: { endedTasksMs: HOUR_MS } })
  sender.answer = () => ({ status: 500 })
  const taskId = await asked(runtime)
  await runtime.cancelTask({ id: taskId })
  const startMs = clock.now()
  await passed(clock, 60_000, () => clock.now() - startMs > 2 * HOUR_MS)
  t.strictSame(await store.readOpenWebhooks(10, 0), [])
  const { length } = sender.posts
  await passed(clock, HOUR_MS, () => true)
  t.equal(sender.posts.length, length)
})

await t.test('a webhook of an older version gets nothing of a task that was removed, and no part of it', async t => {
  const update = { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' as const } } }
  const events: TaskEvent[] = [
    { taskId: 't', generation: 1, update },
    { taskId: 't', generation: 2, update }
  ]
  const row = { taskId: 't', id: 'w', webhook: { url: A }, version: '0.3', progress: { told: 1, tries: 0 } }
  for (const left of [[], events.slice(0, 1)]) {
    const store = {
      ...memoryStore(),
      readEvents: async (_: unknown, __: string, after: number) => left.slice(after)
    } as Store
    const services = {
      store,
      writings: new Map([['0.3', () => t.fail('it is written')]])
    } as unknown as DeliveryServices
    t.strictSame(await deliver(services, anyone, row, events[1] as TaskEvent, new AbortController().signal), 'gone')
  }
})

await t.test('nothing is lost while the store fails, and reads and writes are retried', async t => {
  const inner = lastingStore()
  const troubled = new Set<keyof Store>()
  const trouble =
    (name: keyof Store) =>
    async (...args: unknown[]) => {
      if (troubled.has(name)) throw new TypeError(`no ${name}`)
      return (inner[name] as (...args: unknown[]) => unknown)(...args)
    }
  const store = {
    ...inner,
    readEvents: trouble('readEvents'),
    noteWebhooks: trouble('noteWebhooks'),
    readWebhooks: trouble('readWebhooks'),
    readOpenWebhooks: trouble('readOpenWebhooks'),
    deleteWebhook: trouble('deleteWebhook')
  } as Store

  await t.test('an unreadable event, and progress that cannot be stored', async t => {
    const { runtime, sender, clock, log } = pushing(t, { store })
    troubled.add('readEvents')
    await asked(runtime)
    await until(() => log.length === 1)
    t.match(log[0], {
      message: 'an event could not be delivered to a webhook',
      details: { error: { message: 'no readEvents' } }
    })
    troubled.clear()
    troubled.add('noteWebhooks')
    await passed(clock, 500, () => log.length === 2)
    t.strictSame(sender.heard, [`${A} submitted`])
    troubled.clear()
    await passed(clock, 500, () => sender.heard.length === 3)
    t.strictSame(sender.heard, [`${A} submitted`, `${A} working`, `${A} input-required: Which?`])
  })

  await t.test('webhooks that cannot be read at the start, or after a message', async t => {
    troubled.add('readOpenWebhooks')
    const { runtime, sender, clock, log } = pushing(t, { store })
    await until(() => log.length === 1)
    troubled.add('readWebhooks')
    await asked(runtime)
    t.strictSame(
      log.map(({ message }) => message),
      ['the webhooks could not be read', 'the webhooks could not be read']
    )
    troubled.clear()
    await passed(clock, 500, () => sender.heard.length === 3)
  })

  await t.test('a webhook that cannot be deleted continues, and its client receives the error', async t => {
    const { runtime, sender } = pushing(t, { store })
    const taskId = await asked(runtime, { id: 'w', url: A })
    await until(() => sender.heard.length === 3)
    troubled.add('deleteWebhook')
    t.match(await refusal(runtime.deleteTaskPushNotificationConfig({ taskId, id: 'w' })), { code: 'InternalError' })
    await runtime.sendMessage(say('this', { taskId }))
    await until(() => sender.heard.length === 6)
  })

  await t.test('a commit with an unknown outcome', async t => {
    troubled.clear()
    const held = heldStore(inner)
    const { runtime, sender, log, clock } = pushing(t, {
      store: {
        ...held,
        commit: async commit => {
          const written = await held.commit(commit)
          if (commit.webhooks.length > 0) throw new TypeError('lost on the way')
          return written
        }
      }
    })
    t.match(await refusal(runtime.sendMessage(say('go', {}, { taskPushNotificationConfig: { url: A } }))), {
      code: 'Overloaded'
    })
    clock.increment(1000)
    await until(() => sender.heard.length === 3)
    t.match(log[0], { message: 'a commit failed' })
  })
})

await t.test('closing waits a while for pending posts, and their responses survive a restart', async t => {
  const store = lastingStore()
  const sender = receivers()
  const answered = deferred()
  sender.answer = async () => {
    await answered.promise
    return { status: 200 }
  }
  const first = start(t, { work: asking }, { store, push: sender })
  await asked(first.runtime)
  await until(() => sender.posts.length === 1)
  const closing = first.runtime.close()
  await rest()
  answered.resolve()
  await closing
  sender.answer = () => ({ status: 200 })
  const second = start(t, { work: asking }, { store, push: sender })
  await until(() => sender.heard.length === 3)
  t.strictSame(sender.heard, [`${A} submitted`, `${A} working`, `${A} input-required: Which?`])

  sender.answer = (_, signal) =>
    new Promise(resolve => signal.addEventListener('abort', () => resolve({ failure: 'aborted' })))
  await asked(second.runtime, { url: B })
  await until(() => sender.posts.length === 4)
  const last = second.runtime.close()
  await rest()
  second.clock.increment(2000)
  await last
  await second.runtime.close()
  sender.answer = () => ({ status: 200 })
  start(t, { work: asking }, { store, push: sender })
  await until(() => sender.heard.length === 6)
  t.equal(
    deliveryOf(sender.posts[3] ?? { url: '', headers: {}, body: '' }),
    deliveryOf(sender.posts[4] ?? { url: '', headers: {}, body: '' }),
    'the same delivery again'
  )
})

await t.test('a closing runtime ignores progress of deleted webhooks and unreadable ones', async t => {
  const inner = lastingStore()
  const [noted, read] = [deferred(), deferred()]
  let isHeld = false
  const store: Store = {
    ...inner,
    noteWebhooks: async notes => {
      if (isHeld) await noted.promise
      return inner.noteWebhooks(notes)
    },
    readWebhooks: async (scope, taskId) => {
      if (isHeld) await read.promise
      return inner.readWebhooks(scope, taskId)
    }
  }
  const { runtime, sender, clock, log } = pushing(t, { store })
  const taskId = await asked(runtime, { id: 'w', url: A })
  await until(() => sender.heard.length === 3)
  const other = await open(runtime)
  await reaches(runtime, other.id, 'input-required')
  isHeld = true
  await runtime.sendMessage(say('this', { taskId }, { returnImmediately: true }))
  await until(() => sender.heard.length === 4)
  await runtime.deleteTaskPushNotificationConfig({ taskId, id: 'w' })
  const refreshed = runtime.createTaskPushNotificationConfig({ taskId: other.id, url: B })
  await rest()
  const closing = closed(runtime, clock)
  await rest()
  noted.resolve()
  read.reject(new TypeError('The store is closed.'))
  await closing
  await refreshed
  t.strictSame(await inner.readWebhooks({ tenant: '', principal: 'anonymous' }, taskId), [])
  t.strictSame(log, [])
})

await t.test('a runtime resumes thousands of stored webhooks', async t => {
  const store = lastingStore()
  const sender = receivers()
  const { runtime, clock } = start(
    t,
    { work: asking },
    { store, push: sender, limits: { advanced: { webhooksPerTask: 1000 } } }
  )
  const { id: taskId } = await open(runtime)
  await reaches(runtime, taskId, 'input-required')
  for (let n = 0; n < 600; n += 1)
    await store.writeWebhook(
      { tenant: '', principal: 'anonymous' },
      { taskId, id: `${n}`, webhook: { url: `https://h${n}.example/` }, version: '1.0' },
      1000
    )
  await closed(runtime, clock)
  const again = start(t, { work: asking }, { store, push: sender })
  await again.runtime.cancelTask({ id: taskId })
  await until(() => sender.heard.length === 600)
  t.equal(new Set(sender.heard).size, 600)
  await until(async () => (await store.readOpenWebhooks(1, 0)).length === 0)
})

await t.test('a webhook on an ended task is stored, and receives nothing', async t => {
  const { runtime, sender, store } = pushing(t)
  const { id: taskId } = await open(runtime)
  await runtime.cancelTask({ id: taskId })
  await runtime.createTaskPushNotificationConfig({ taskId, id: 'w', url: A })
  await until(async () => (await store.readOpenWebhooks(1, 0)).length === 0)
  t.equal((await runtime.getTaskPushNotificationConfig({ taskId, id: 'w' })).url, A)
  t.strictSame(sender.posts, [])
})

await t.test("a webhook of an older version receives updates in that version, with the task's state", async t => {
  const { runtime, sender, clock } = pushing(t)
  const { id: taskId } = await open(runtime)
  await reaches(runtime, taskId, 'input-required')
  await runtime.createTaskPushNotificationConfig({ taskId, id: 'w', url: A }, { dialect: '0.1' })
  await runtime.sendMessage(say('this', { taskId }))
  await rest()
  t.strictSame(sender.posts, [], 'it is not written yet')
  runtime.writesWebhooks('0.1', (update, task) => ({
    type: 'text/plain',
    text: JSON.stringify({
      statusUpdate: {
        status: { state: `${task.status.state}/${task.artifacts?.length ?? 0}/${Object.keys(update).join()}` }
      }
    })
  }))
  await passed(clock, 500, () => sender.heard.length === 3)
  t.strictSame(
    sender.heard.map(each => each.slice(A.length + 1)),
    ['working/0/statusupdate', 'working/1/artifactupdate', 'completed/1/statusupdate']
  )
  t.equal(sender.posts[0]?.headers['Content-Type'], 'text/plain')
})

await t.test('jobs are limited in total and by name, and wait only for their own names', async t => {
  const slots = new KeyedSemaphore(name => (name === 'all' ? 3 : name === 'b' ? 1 : 2))
  const begun: string[] = []
  const gates = new Map<string, ReturnType<typeof deferred>>()
  const slot = (id: string, ...names: string[]) => ({
    names: [...names, 'all'],
    run: () => {
      begun.push(id)
      const gate = deferred()
      gates.set(id, gate)
      return gate.promise
    }
  })
  const ended = async (id: string) => {
    gates.get(id)?.resolve(undefined)
    await rest()
  }
  for (const each of [slot('a1', 'a'), slot('a2', 'a'), slot('a3', 'a'), slot('b1', 'b')]) slots.enter(each)
  t.strictSame(begun, ['a1', 'a2', 'b1'])
  const late = slot('b2', 'b')
  slots.enter(late)
  slots.enter(slot('c1', 'c'))
  await ended('b1')
  t.strictSame(begun.slice(3), ['b2'], 'its name has room again')
  await ended('a1')
  t.strictSame(begun.slice(4), ['a3'])
  const never = slot('c2', 'c')
  slots.enter(never)
  slots.withdraw(never)
  for (const id of ['a2', 'a3', 'b2']) await ended(id)
  t.strictSame(begun.slice(5), ['c1'])
  await ended('c1')
  t.strictSame(
    ['a', 'b', 'c', 'all'].map(name => slots.runningOf(name)),
    [0, 0, 0, 0]
  )
})
