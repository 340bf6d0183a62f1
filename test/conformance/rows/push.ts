import { webhooks } from '../../../adapters/push/webhooks.ts'
import type { TaskPushNotificationConfig } from '../../../machines/protocol/push.ts'
import { httpReceiver } from '../../fixtures/peers/http-receiver.ts'
import { rest, say, until } from '../../fixtures/runtime/runtime-helpers.ts'
import type { Client } from '../client.ts'
import { byName, type Column, type Test } from '../column.ts'
import { newer, row, type Row } from '../row.ts'

const CREATE = 'CreateTaskPushNotificationConfig'
const GET = 'GetTaskPushNotificationConfig'
const LIST = 'ListTaskPushNotificationConfigs'
const DELETE = 'DeleteTaskPushNotificationConfig'

/** Nothing listens there, and nothing need. */
const URL = 'http://127.0.0.1:4999/'

const OWN_BODY = newer('0.3 has a body of its own: see 163')

/** §10.5: push notifications. */
export const push: readonly Row[] = [
  row(
    81,
    'M',
    '3.3.4',
    'Without the capability every operation of push notifications is refused: PushNotificationNotSupported',
    async (t, { client, runtime, serve }) => {
      const turnedOff = await serve(t, { push: webhooks() }, { capabilities: { pushNotifications: false } })
      for (const [to, site] of [
        [client, runtime],
        [await turnedOff.open(), turnedOff.runtime]
      ] as const) {
        t.equal(site.agentCard([]).capabilities.pushNotifications, false)
        const { id: taskId } = await to.task('x')
        const [config, place] = [{ url: 'https://example.com/' }, { taskId, id: 'p' }]
        for (const [method, params] of [
          [CREATE, { ...config, taskId }],
          [GET, place],
          [LIST, { taskId }],
          [DELETE, place],
          ['SendMessage', say('x', {}, { taskPushNotificationConfig: config })]
        ] as const)
          t.equal((await to.refusal(method, params)).reason, 'PUSH_NOTIFICATION_NOT_SUPPORTED', method)
      }
    }
  ),
  row(
    82,
    'M',
    '3.1.7',
    'A configuration is kept, and comes back with its id; TaskNotFound for an unknown task',
    async (t, column) => {
      const { client, runtime } = await pushing(t, column)
      t.ok(runtime.agentCard([]).capabilities.pushNotifications)
      const { id: taskId } = await client.task('x')
      const created = await asked(client, CREATE, { taskId, url: URL })
      t.match(created, { taskId, url: URL })
      t.ok(created.id)
      t.match(await asked(client, CREATE, { taskId, id: 'mine', url: URL }), { id: 'mine' })
      t.equal((await client.refusal(CREATE, { taskId: 'nobody', url: URL })).reason, 'TASK_NOT_FOUND')
    }
  ),
  row(
    83,
    'M',
    '3.1.7',
    'A configuration lasts at least until the task ends, unless it is deleted before',
    async (t, column) => {
      const { client } = await pushing(t, column)
      const { id: taskId } = await client.opened('hold', 'working')
      await client.call(CREATE, { taskId, id: 'p', url: URL })
      t.match(await asked(client, GET, { taskId, id: 'p' }), { id: 'p', url: URL })
      await client.cancel(taskId)
      t.match(
        await asked(client, GET, { taskId, id: 'p' }),
        { id: 'p', url: URL },
        'taskchart stores it as long as the task'
      )
      await client.call(DELETE, { taskId, id: 'p' })
      t.equal((await client.refusal(GET, { taskId, id: 'p' })).reason, 'TASK_NOT_FOUND')
    }
  ),
  row(84, 'M', '3.1.8', 'A configuration is read again; a missing or foreign one is an error', async (t, column) => {
    const { open } = await column.serve(t, { push: webhooks({ allowLoopback: true }), authenticate: byName })
    const [anna, bob] = [await open({ credentials: 'anna' }), await open({ credentials: 'bob' })]
    const { id: taskId } = await anna.task('x')
    await anna.call(CREATE, { taskId, id: 'p', url: URL })
    t.match(await asked(anna, GET, { taskId, id: 'p' }), { id: 'p', taskId, url: URL })
    t.equal((await anna.refusal(GET, { taskId, id: 'other' })).reason, 'TASK_NOT_FOUND')
    const foreign = await bob.refusal(GET, { taskId, id: 'p' })
    const absent = await bob.refusal(GET, { taskId: 'nobody', id: 'p' })
    t.equal(foreign.message.replaceAll(taskId, 'nobody'), absent.message)
  }),
  row(85, 'M', '3.1.9', 'All configurations of a task are listed', async (t, column) => {
    const { client } = await pushing(t, column)
    const { id: taskId } = await client.task('x')
    t.match((await client.call(LIST, { taskId })).result, { configs: [] })
    for (const id of ['a', 'b']) await client.call(CREATE, { taskId, id, url: URL })
    t.match((await client.call(LIST, { taskId })).result, {
      configs: [
        { id: 'a', url: URL },
        { id: 'b', url: URL }
      ]
    })
  }),
  row(
    86,
    'M',
    '3.1.10',
    'A deleted configuration gets nothing more; deleting twice equals deleting once',
    async (t, column) => {
      const { client } = await pushing(t, column)
      const [deleted, kept] = [await httpReceiver(t), await httpReceiver(t)]
      const { id: taskId } = await client.opened('hold', 'working')
      await client.call(CREATE, { taskId, id: 'deleted', url: deleted.url })
      await client.call(CREATE, { taskId, id: 'kept', url: kept.url })
      for (let twice = 0; twice < 2; twice += 1)
        t.same((await client.call(DELETE, { taskId, id: 'deleted' })).result, {})
      await client.cancel(taskId)
      await until(() => kept.got.length === 1)
      t.equal(deleted.got.length, 0)
      t.equal((await client.refusal(DELETE, { taskId: 'nobody', id: 'deleted' })).reason, 'TASK_NOT_FOUND')
    }
  ),
  row(
    87,
    'M',
    '4.3.3',
    'What is pushed is a StreamResponse with one member',
    async (t, column) => {
      const { client } = await pushing(t, column)
      const { url, got } = await httpReceiver(t)
      await client.task('count 1', {}, { taskPushNotificationConfig: { url } })
      await until(() => got.at(-1)?.body.includes('COMPLETED'))
      for (const { body, headers } of got) {
        const members = Object.keys(JSON.parse(body) as object)
        t.ok(members.length === 1 && ['statusUpdate', 'artifactUpdate'].includes(members[0] ?? ''), body)
        t.equal(headers['content-type'], 'application/a2a+json')
      }
    },
    OWN_BODY
  ),
  row(88, 'M', '4.3.3, 13.2', 'Credentials are sent as configured', async (t, column) => {
    const { client } = await pushing(t, column)
    const { url, got } = await httpReceiver(t)
    await client.task(
      'x',
      {},
      { taskPushNotificationConfig: { url, token: 'tok', authentication: { scheme: 'Basic', credentials: 'YTpi' } } }
    )
    await until(() => got.length > 0)
    t.match(got[0]?.headers, { authorization: 'Basic YTpi', 'x-a2a-notification-token': 'tok' })
  }),
  row(89, 'M', '4.3.3', 'Each update is delivered at least once to each webhook', async (t, column) => {
    const { client, store } = await pushing(t, column)
    const [first, second] = [
      await httpReceiver(t),
      await httpReceiver(t, (_, response) => response.writeHead(500).end())
    ]
    const { id: taskId } = await client.opened('hold', 'working')
    await client.call(CREATE, { taskId, url: first.url })
    await client.call(CREATE, { taskId, url: second.url })
    await client.cancel(taskId)
    await until(() => first.got.length === 1 && second.got.length === 1)
    await until(
      async () => (await store.readOpenWebhooks(2, 0)).map(({ row: { webhook } }) => webhook.url).join() === second.url
    )
    t.pass('the other one is retried')
  }),
  row(
    90,
    'S',
    '4.3.3, 13.2',
    'It is retried with growing pauses, each attempt for 10 to 30 seconds',
    async (t, column) => {
      const { client, clock, runtime } = await pushing(t, column)
      const timeoutMs = runtime.settings.limits.webhookTimeoutMs
      t.ok(timeoutMs >= 10_000 && timeoutMs <= 30_000)
      const tries: number[] = []
      const { url } = await httpReceiver(t, (_, response) => {
        tries.push(clock.now())
        response.writeHead(tries.length < 5 ? 503 : 200).end()
      })
      const { id: taskId } = await client.opened('hold', 'working')
      await client.call(CREATE, { taskId, url })
      await client.cancel(taskId)
      await until(() => {
        if (tries.length > 0) clock.increment(10)
        return tries.length === 5
      })
      const pauses = tries.slice(1).map((at, i) => at - (tries[i] ?? 0))
      t.ok(
        pauses.every((pause, i) => pause > (pauses[i - 1] ?? 0)),
        pauses.join()
      )
    }
  ),
  row(91, 'S', '13.2', 'Private, loopback and link-local addresses are refused', async (t, column) => {
    const site = await column.serve(t, { push: webhooks() })
    const client = await site.open()
    const { id: taskId } = await client.task('x')
    for (const url of [
      'https://127.0.0.1/',
      'https://localhost/',
      'https://10.0.0.1/',
      'https://192.168.1.1/',
      'https://172.16.0.1/',
      'https://169.254.169.254/',
      'https://[::1]/',
      'https://[fe80::1]/',
      'http://93.184.216.34/'
    ]) {
      t.equal((await client.refusal(CREATE, { taskId, url })).reason, 'INVALID_PARAMS', url)
    }
    t.match(await asked(client, CREATE, { taskId, url: 'https://93.184.216.34/' }), { url: 'https://93.184.216.34/' })
  }),
  row(
    92,
    'M',
    '3.5.1',
    'Push notifications are equal whatever binding configured them: the events of the stream, in their order',
    async (t, column) => {
      const { client, store } = await pushing(t, column)
      const { url, got } = await httpReceiver(t)
      const { id } = await client.task('count 3', {}, { taskPushNotificationConfig: { url } })
      await until(() => got.at(-1)?.body.includes('COMPLETED'))
      const events = await store.readEvents({ tenant: '', principal: 'anonymous' }, id, 0, 100)
      t.same(
        got.map(({ body }) => JSON.parse(body)),
        events.map(({ update }) => update)
      )
    },
    OWN_BODY
  ),
  row(93, 'M', '3.2.2, 6.6', 'A configuration in SendMessage belongs to its task', async (t, column) => {
    const { client } = await pushing(t, column)
    const { url, got } = await httpReceiver(t)
    const { id: taskId } = await client.task('x', {}, { taskPushNotificationConfig: { id: 'p', url } })
    t.match(await asked(client, GET, { taskId, id: 'p' }), { id: 'p', taskId, url })
    await until(() => got.length > 0)
    t.match(got[0]?.body.toLowerCase(), 'submitted', 'starting with its first update')
  }),
  row(94, 'S', '13.2', 'Secrets of configurations are not read again, and not logged', async (t, column) => {
    const { client, log } = await pushing(t, column)
    const { url, got } = await httpReceiver(t, (_, response) => response.writeHead(404).end())
    const { id: taskId } = await client.opened('hold', 'working')
    const created = await asked(client, CREATE, {
      taskId,
      id: 'p',
      url,
      token: 'hidden',
      authentication: { scheme: 'Bearer', credentials: 'hidden' }
    })
    t.match(created, { token: 'hidden' }, 'but given back once')
    await client.cancel(taskId)
    await until(() => got.length > 0)
    await rest()
    t.notMatch(
      JSON.stringify([
        await asked(client, GET, { taskId, id: 'p' }),
        (await client.call(LIST, { taskId })).result,
        log
      ]),
      'hidden'
    )
  })
]

/** An agent that pushes, also to this machine. */
async function pushing(t: Test, { serve }: Column) {
  const site = await serve(t, { push: webhooks({ allowLoopback: true }) })
  return { ...site, client: await site.open() }
}

async function asked(
  client: Client,
  method: typeof CREATE | typeof GET,
  params: object
): Promise<TaskPushNotificationConfig> {
  return (await client.call(method, params)).result as TaskPushNotificationConfig
}
