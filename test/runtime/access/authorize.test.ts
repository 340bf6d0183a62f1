import t, { type Test } from 'tap'
import type { A2AError } from '../../../machines/protocol/errors.ts'
import { OPERATIONS, type OperationName } from '../../../machines/protocol/operations.ts'
import { toWireError } from '../../../machines/protocol/wire-errors.ts'
import type { AuthorizationRequest, Authorize } from '../../../runtime/access/authentication.ts'
import type { CallContext } from '../../../runtime/access/call-context.ts'
import { authRequired } from '../../../runtime/authoring/questions.ts'
import type { Runtime, RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import {
  collect,
  deferred,
  open,
  reaches,
  rejection,
  rest,
  say,
  start,
  taskIn,
  userMessage
} from '../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket, obedient, serve } from '../../fixtures/servers/served-agent.ts'

const anna: CallContext = { principal: 'anna', claims: { scope: 'tasks:read' }, tenant: 'acme' }

/** Every operation that is served, called with good parameters that name no task that is there. */
const served: readonly [
  operation: AuthorizationRequest['operation'],
  params: object,
  call: (runtime: Runtime, call: CallContext) => Promise<unknown>
][] = [
  ['sendMessage', say('x'), (runtime, call) => runtime.sendMessage(say('x'), call)],
  ['sendStreamingMessage', say('x'), (runtime, call) => collect(runtime.sendStreamingMessage(say('x'), call))],
  ['getTask', { id: 'nobody' }, (runtime, call) => runtime.getTask({ id: 'nobody' }, call)],
  ['listTasks', { pageSize: 7 }, (runtime, call) => runtime.listTasks({ pageSize: 7 }, call)],
  ['cancelTask', { id: 'nobody' }, (runtime, call) => runtime.cancelTask({ id: 'nobody' }, call)],
  ['subscribeToTask', { id: 'nobody' }, (runtime, call) => collect(runtime.subscribeToTask({ id: 'nobody' }, call))],
  ['authorized', { id: 'nobody' }, (runtime, call) => runtime.authorized('nobody', {}, call)],
  ['getExtendedAgentCard', {}, (runtime, call) => runtime.getExtendedAgentCard({}, call)]
]

/** The operations whose capability the card does not declare. */
const refused: readonly ((runtime: Runtime, call: CallContext) => Promise<unknown>)[] = [
  (runtime, call) => runtime.createTaskPushNotificationConfig({ taskId: 't', url: 'https://example.com' }, call),
  (runtime, call) => runtime.getTaskPushNotificationConfig({ taskId: 't', id: 'p' }, call),
  (runtime, call) => runtime.listTaskPushNotificationConfigs({ taskId: 't' }, call),
  (runtime, call) => runtime.deleteTaskPushNotificationConfig({ taskId: 't', id: 'p' }, call)
]

/** A store that counts what is asked of it. */
function watchedStore() {
  const inner = memoryStore()
  let calls = 0
  const store = Object.fromEntries(
    Object.entries(inner).map(([name, method]) => [
      name,
      (...args: never[]) => {
        if (name.startsWith('read') || name.startsWith('list') || name === 'loadContext' || name === 'commit')
          calls += 1
        return (method as (...args: never[]) => unknown)(...args)
      }
    ])
  ) as unknown as Store
  return { store, calls: () => calls }
}

function locked(t: Test, authorize: Authorize, options: Partial<RuntimeOptions> = {}) {
  return start(t, { work: obedient, extendedCard: { description: 'More.' } }, { authorize, ...options })
}

await t.test('authorize receives operation, caller and parameters before every operation', async t => {
  const asked: AuthorizationRequest[] = []
  const { runtime } = locked(t, request => (asked.push(request), true))
  for (const [operation, params, call] of served) {
    const outcome = await call(runtime, anna).then(
      () => 'answered',
      error => error.code
    )
    t.match(outcome, /^(?:answered|TaskNotFound)$/, operation)
    const request = asked.pop()
    t.match(request, { operation, principal: 'anna', claims: { scope: 'tasks:read' }, tenant: 'acme' })
    t.match(request?.params, 'message' in params ? { message: { parts: [{ text: 'x' }] } } : params)
    t.strictSame(asked, [])
  }
  const names = new Set<string>([
    ...served.map(([operation]) => operation),
    ...Object.values(OPERATIONS)
      .filter(({ name }) => name.includes('PushNotification'))
      .map(({ name }) => name)
  ])
  t.strictSame(
    names,
    new Set<string>([...Object.values(OPERATIONS).map(({ name }): OperationName => name), 'authorized']),
    'these are all'
  )
})

await t.test('an unidentified caller is anonymous without claims', async t => {
  const asked: AuthorizationRequest[] = []
  const { runtime } = locked(t, request => (asked.push(request), true))
  await runtime.listTasks({})
  t.match(asked, [{ operation: 'listTasks', principal: 'anonymous', claims: {}, tenant: '' }])
})

await t.test('a refusal is Forbidden for every operation, before anything is read or started', async t => {
  for (const authorize of [() => false, async () => false] satisfies Authorize[]) {
    const { store, calls } = watchedStore()
    const { runtime, log } = locked(t, authorize, { store })
    await rest()
    const before = calls()
    for (const [operation, , call] of served) {
      const error = await rejection(call(runtime, anna))
      t.match(error, { code: 'Forbidden', message: `You may not use ${operation} here.`, metadata: { operation } })
    }
    t.equal(calls(), before)
    t.strictSame(log, [])
  }
})

await t.test('a reason is sent to the client, and an empty one is omitted', async t => {
  const needs: Authorize = ({ operation, claims }) =>
    operation === 'listTasks' || claims['scope'] === 'tasks:write' || 'This needs the scope tasks:write.'
  const { runtime } = locked(t, needs)
  t.match(await rejection(runtime.cancelTask({ id: 'nobody' }, anna)), {
    code: 'Forbidden',
    message: 'This needs the scope tasks:write.'
  })
  t.match(await rejection(runtime.cancelTask({ id: 'nobody' }, { ...anna, claims: { scope: 'tasks:write' } })), {
    code: 'TaskNotFound'
  })
  t.match(await runtime.listTasks({}, anna), { totalSize: 0 })
  t.match(await rejection(locked(t, () => '').runtime.listTasks({}, anna)), {
    code: 'Forbidden',
    message: 'You may not use listTasks here.'
  })
})

await t.test('an authorize that times out refuses all requests with Overloaded, and nothing is read', async t => {
  const { store, calls } = watchedStore()
  const { runtime, log, clock } = locked(t, () => new Promise(() => {}), {
    store,
    limits: { advanced: { accessMs: 500 } }
  })
  const before = calls()
  for (const [operation, , call] of served) {
    const refused = rejection(call(runtime, anna))
    await rest()
    clock.increment(499)
    await rest()
    t.equal(log.length, 0)
    clock.increment(1)
    t.match(await refused, { code: 'Overloaded', retryAfterMs: 1000 }, operation)
    t.match(log.splice(0), [{ message: 'authorize failed', details: { operation } }])
  }
  t.equal(calls(), before)
})

await t.test('an authorize that throws, rejects or returns another value refuses, and is logged', async t => {
  const wrong: [authorize: unknown, message: string][] = [
    [
      () => {
        throw new Error('no directory: secret')
      },
      'no directory: secret'
    ],
    [() => Promise.reject(new Error('no directory: secret')), 'no directory: secret'],
    [() => undefined, 'authorize has to answer true, false or a reason, not undefined'],
    [async () => 1, 'authorize has to answer true, false or a reason, not number'],
    [() => ({}), 'authorize has to answer true, false or a reason, not object']
  ]
  for (const [authorize, message] of wrong) {
    const { runtime, log } = locked(t, authorize as Authorize)
    const error = await rejection(runtime.getTask({ id: 'nobody' }, anna))
    t.match(error, { code: 'Forbidden', message: 'You may not use getTask here.' })
    t.notMatch(JSON.stringify(error), 'secret')
    t.match(log, [
      { level: 'error', message: 'authorize failed', details: { operation: 'getTask', error: { message } } }
    ])
  }
})

await t.test('an invalid request is refused before authorize is called', async t => {
  const { runtime } = locked(t, () => t.fail('nobody was to be authorized'))
  t.match(await rejection(runtime.getTask({ id: 'x' }, { ...anna, version: '0.3' })), { code: 'VersionNotSupported' })
  t.match(await rejection(runtime.getTask({ id: '' }, anna)), { code: 'InvalidParams' })
  t.match(await rejection(runtime.authorized('', {}, anna)), { code: 'InvalidParams' })
  t.match(await rejection(runtime.getTask({ id: 'x', tenant: 'other' }, anna)), { code: 'InvalidParams' })
  for (const call of refused) t.match(await rejection(call(runtime, anna)), { code: 'PushNotificationNotSupported' })
  const plain = start(t, { work: echo }, { authorize: () => t.fail('nobody was to be authorized') })
  t.match(await rejection(plain.runtime.getExtendedAgentCard({}, anna)), { code: 'UnsupportedOperation' })
})

await t.test('a runtime that closes during an authorize starts nothing more', async t => {
  const answer = deferred<boolean>()
  const { runtime, clock } = locked(t, () => answer.promise)
  const calls = [
    runtime.sendMessage(say('x')),
    collect(runtime.sendStreamingMessage(say('x'))),
    runtime.getTask({ id: 'x' })
  ].map(rejection)
  await rest()
  const closing = runtime.close()
  clock.increment(5000)
  await closing
  answer.resolve(true)
  for (const error of await Promise.all(calls)) t.match(error, { code: 'Overloaded' })
  for (const call of refused) t.match(await rejection(call(runtime, {})), { code: 'Overloaded' })
})

await t.test('an authorize that is no function is refused when the runtime is created', async t => {
  t.throws(() => start(t, { work: echo }, { authorize: true as never }), {
    name: 'TypeError',
    message: /^authorize has to be a function/
  })
})

await t.test('an authorized stream has the same events as one without authorize', async t => {
  const { runtime } = locked(t, async () => true)
  const plain = start(t, { work: obedient })
  const told = async (runtime: Runtime) => (await collect(runtime.sendStreamingMessage(say('count 2')))).length
  t.equal(await told(runtime), await told(plain.runtime))
})

/** What one caller is told of an id: every operation that takes one, each with the id that its answer may name. */
const aboutTask: readonly [
  method:
    | 'SendMessage'
    | 'SendStreamingMessage'
    | 'GetTask'
    | 'CancelTask'
    | 'SubscribeToTask'
    | 'CreateTaskPushNotificationConfig'
    | 'GetTaskPushNotificationConfig'
    | 'ListTaskPushNotificationConfigs'
    | 'DeleteTaskPushNotificationConfig',
  params: (id: string) => object
][] = [
  ['SendMessage', taskId => ({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }], taskId } })],
  [
    'SendStreamingMessage',
    taskId => ({ message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }], taskId } })
  ],
  ['GetTask', id => ({ id })],
  ['CancelTask', id => ({ id })],
  ['SubscribeToTask', id => ({ id })],
  ['CreateTaskPushNotificationConfig', taskId => ({ taskId, url: 'https://example.com' })],
  ['GetTaskPushNotificationConfig', taskId => ({ taskId, id: 'p' })],
  ['ListTaskPushNotificationConfigs', taskId => ({ taskId })],
  ['DeleteTaskPushNotificationConfig', taskId => ({ taskId, id: 'p' })]
]

await t.test("another caller's task is answered byte for byte as a missing one, by every operation", async t => {
  const authenticate = ({ headers }: { headers: Readonly<Record<string, string | undefined>> }) => ({
    id: headers['x-me'] ?? ''
  })
  const { runtime, url } = await serve(t, { work: obedient }, { authenticate })
  const theirs = [
    await open(runtime, 'wait', {}, { principal: 'anna' }),
    await open(runtime, 'ask', {}, { principal: 'anna' }),
    await open(runtime, 'done', {}, { principal: 'anna' })
  ]
  await reaches(runtime, theirs[2]?.id ?? '', 'completed', { principal: 'anna' })
  const headers = { 'x-me': 'bob', 'a2a-version': '1.0' }
  for (const { id } of theirs) {
    const absent = `${id.slice(0, -1)}~`
    for (const reliable of [
      {},
      {
        'a2a-service-parameters': {
          'a2a-extensions': 'urn:taskchart:extension:reliability:1',
          'taskchart-after-generation': '1',
          'taskchart-if-generation-match': '1',
          'taskchart-current-generation': '1'
        }
      }
    ]) {
      for (const [method, params] of aboutTask) {
        const answers = []
        for (const name of [id, absent]) {
          const client = await JsonSocket.open(t, url, { headers })
          answers.push(await client.text(client.request(method, params(name), reliable)))
          t.strictSame(client.unread, [])
        }
        t.equal(answers[0]?.replaceAll(id, absent), answers[1], method)
        t.match(JSON.parse(answers[0] ?? ''), { error: { code: method.includes('Push') ? -32003 : -32001 } })
      }
    }
    const told = await Promise.all(
      [id, absent].map(async name =>
        JSON.stringify(toWireError((await rejection(runtime.authorized(name, {}, { principal: 'bob' }))) as A2AError))
      )
    )
    t.equal(told[0]?.replaceAll(id, absent), told[1])
  }
})

await t.test("another caller's tasks are in no list, reference or context", async t => {
  const { runtime } = start(t, {
    work: ({ referenceTasks, earlierArtifacts }) => ({ artifact: JSON.stringify([referenceTasks, earlierArtifacts]) })
  })
  const hers = taskIn(await runtime.sendMessage(say('x'), { principal: 'anna' }))
  const { id: taskId, contextId = '' } = hers
  const listed = await Promise.all(
    [contextId, 'absent'].map(contextId => runtime.listTasks({ contextId }, { principal: 'bob' }))
  )
  t.strictSame(listed[0], listed[1])
  const seen = async (call: CallContext, more: object) =>
    taskIn(await runtime.sendMessage({ message: userMessage('y', more) }, call)).artifacts?.[0]?.parts
  t.strictSame(
    await seen({ principal: 'bob' }, { referenceTaskIds: [taskId] }),
    await seen({ principal: 'bob' }, { referenceTaskIds: ['absent'], contextId: 'other' })
  )
  t.strictSame(
    await seen({ principal: 'bob' }, { contextId }),
    [{ text: '[[],[]]' }],
    'the context with this id is his own'
  )
  t.strictSame(
    await seen({ principal: 'anna', tenant: 'acme' }, { contextId }),
    [{ text: '[[],[]]' }],
    'so is that of another tenant'
  )
  t.not((await seen({ principal: 'anna' }, { contextId }))?.[0], undefined)
  t.equal((await runtime.listTasks({ contextId }, { principal: 'anna' })).totalSize, 2)
})

await t.test('an out-of-band authorization passes through authorize too', async t => {
  const asked: string[] = []
  const { runtime } = start(
    t,
    { work: async ({ ask }) => ({ artifact: JSON.stringify(await ask(authRequired('Log in.'))) }) },
    {
      authorize: ({ operation, principal }) => (
        asked.push(operation),
        operation !== 'authorized' || principal === 'broker'
      )
    }
  )
  const { id } = await open(runtime, 'x', {}, { principal: 'broker' })
  await reaches(runtime, id, 'auth-required', { principal: 'broker' })
  t.match(await rejection(runtime.authorized(id, {}, { principal: 'anna' })), {
    code: 'Forbidden',
    metadata: { operation: 'authorized' }
  })
  t.match(await runtime.authorized(id, { ok: true }, { principal: 'broker' }), { id })
  t.ok(asked.includes('authorized'))
})
