import type { ListTasksRequest, Task } from '../../../machines/protocol/objects.ts'
import { brief, say, textOf } from '../../fixtures/runtime/runtime-helpers.ts'
import { read, type Client } from '../client.ts'
import { byName } from '../column.ts'
import { row, type Row } from '../row.ts'
import { NO_LIST } from './reasons.ts'

/** §10.4: GetTask, ListTasks and CancelTask. */
export const reading: readonly Row[] = [
  row(
    65,
    'M',
    '3.1.3',
    'GetTask gives the task as it is, with its artifacts; TaskNotFound for an unknown one',
    async (t, { client }) => {
      const { id } = await client.opened('hold', 'working')
      const stream = client.subscribe(id)
      await read(stream, event => 'artifactUpdate' in event || ('task' in event && event.task.artifacts !== undefined))
      t.match(await client.get(id), {
        id,
        status: { state: 'TASK_STATE_WORKING' },
        artifacts: [{ parts: [{ text: 'begun' }] }]
      })
      await client.cancel(id)
      t.match(await client.get(id), { status: { state: 'TASK_STATE_CANCELED' } })
      t.equal((await client.refusal('GetTask', { id: 'made-up' })).reason, 'TASK_NOT_FOUND')
    }
  ),
  row(
    66,
    'M/S',
    '3.2.4',
    'GetTask gives no more history than historyLength, the newest, and with 0 none',
    async (t, { client }) => {
      const { id } = await client.task('ask')
      await client.task('blue', { taskId: id })
      const texts = async (length?: number) => (await client.get(id, length)).history?.map(textOf)
      const all = (await texts()) ?? []
      t.ok(all.length >= 2)
      t.same(await texts(1), all.slice(-1))
      t.same(await texts(100), all)
      t.notOk('history' in (await client.get(id, 0)))
    }
  ),
  row(67, 'S', '3.7', 'History is in the order of time, and holds what was sent', async (t, { client }) => {
    const { id } = await client.task('ask')
    const done = await client.task('blue', { taskId: id, metadata: { 'urn:x': [1] } })
    const sent = done.history?.filter(({ role }) => role === 'ROLE_USER')
    t.same(done.history?.map(textOf), ['ask', 'And then?', 'blue'])
    t.match(sent, [{ taskId: id }, { taskId: id, metadata: { 'urn:x': [1] } }])
  }),
  row(
    68,
    'M',
    '3.1.4, 13.1',
    "ListTasks gives the caller's own tasks alone",
    async (t, { serve }) => {
      const { open } = await serve(t, { authenticate: byName })
      const [ann, bob] = [await open({ credentials: 'ann' }), await open({ credentials: 'bob' })]
      const { id } = await ann.task('x')
      await bob.task('x')
      t.same(
        (await ann.list({})).tasks.map(task => task.id),
        [id]
      )
      t.equal((await ann.list({})).totalSize, 1)
    },
    NO_LIST
  ),
  row(
    69,
    'M',
    '3.1.4',
    'Over the pages of a list no task is missing, none comes twice',
    async (t, { client, clock }) => {
      const ids = await several(client, 'pages', 7, () => clock.increment(1))
      t.same(
        (await listed(client, { tenant: 'pages', pageSize: 3 })).map(({ id }) => id),
        ids.toReversed()
      )
    },
    NO_LIST
  ),
  row(
    70,
    'M',
    '3.1.4',
    'The list begins with the latest status',
    async (t, { client, clock }) => {
      const asked = await client.call('SendMessage', { ...say('ask'), tenant: 'latest' })
      const { id } = (asked.result as { task: Task }).task
      clock.increment(10)
      const [other] = await several(client, 'latest', 1, () => clock.increment(10))
      t.same(
        (await client.list({ tenant: 'latest' })).tasks.map(task => task.id),
        [other, id]
      )
      await client.call('SendMessage', { ...say('blue', { taskId: id }), tenant: 'latest' })
      t.same(
        (await client.list({ tenant: 'latest' })).tasks.map(task => task.id),
        [id, other]
      )
    },
    NO_LIST
  ),
  row(
    71,
    'M',
    '3.1.4',
    'nextPageToken is always there, empty at the end',
    async (t, { client }) => {
      await several(client, 'token', 2)
      t.match(await client.list({ tenant: 'token', pageSize: 1 }), { nextPageToken: /.+/ })
      t.equal((await client.list({ tenant: 'token', pageSize: 2 })).nextPageToken, '')
      t.equal((await client.list({ tenant: 'nobody' })).nextPageToken, '')
    },
    NO_LIST
  ),
  row(
    72,
    'M/S',
    '3.1.4',
    'A list has artifacts only where they are asked for, then always',
    async (t, { client }) => {
      await several(client, 'artifacts', 1)
      const has = async (more: ListTasksRequest) =>
        (await client.list({ tenant: 'artifacts', ...more })).tasks.map(task => 'artifacts' in task)
      t.same(await has({}), [false])
      t.same(await has({ includeArtifacts: false }), [false])
      t.same(await has({ includeArtifacts: true }), [true])
    },
    NO_LIST
  ),
  row(
    73,
    'M',
    '3.1.4',
    'A list is filtered by context, status and time, this inclusive, and by all of them',
    async (t, { client, clock }) => {
      const [context, tenant] = ['filtered', 'filters']
      clock.increment(1000)
      await several(client, tenant, 2, () => clock.increment(1000), context)
      const failed = (await client.call('SendMessage', { ...say('fail', { contextId: context }), tenant })).result as {
        task: Task
      }
      await several(client, tenant, 1)
      const since = failed.task.status.timestamp ?? ''
      const total = async (filters: ListTasksRequest) => (await client.list({ tenant, ...filters })).totalSize
      t.equal(await total({}), 4)
      t.equal(await total({ contextId: context }), 3)
      t.equal(await total({ status: 'TASK_STATE_FAILED' }), 1)
      t.equal(await total({ statusTimestampAfter: since }), 2)
      t.equal(await total({ contextId: context, status: 'TASK_STATE_COMPLETED', statusTimestampAfter: since }), 0)
      t.equal(await total({ contextId: context, status: 'TASK_STATE_FAILED', statusTimestampAfter: since }), 1)
    },
    NO_LIST
  ),
  row(
    74,
    'M',
    '3.1.4',
    'A page has 50 tasks unless another size from 1 to 100 is asked for, and says its size and that of all',
    async (t, { client }) => {
      await several(client, 'sizes', 51)
      const page = await client.list({ tenant: 'sizes' })
      t.match({ ...page, tasks: page.tasks.length }, { tasks: 50, pageSize: 50, totalSize: 51 })
      const whole = await client.list({ tenant: 'sizes', pageSize: 100 })
      t.match({ ...whole, tasks: whole.tasks.length }, { tasks: 51, pageSize: 100, totalSize: 51 })
      for (const pageSize of [0, -1, 101])
        t.equal((await client.refusal('ListTasks', { tenant: 'sizes', pageSize })).reason, 'INVALID_PARAMS')
    },
    NO_LIST
  ),
  row(
    75,
    'M/S',
    '3.3.2, 6.5',
    'A bad page size, status, length of history or page token is refused, and the field is named',
    async (t, { client }) => {
      for (const [field, value] of Object.entries({
        pageSize: 101,
        status: 'TASK_STATE_LOST',
        historyLength: -1,
        pageToken: 'x'
      })) {
        const { reason, message } = await client.refusal('ListTasks', { [field]: value })
        t.match({ reason, message }, { reason: 'INVALID_PARAMS', message: field })
      }
    },
    NO_LIST
  ),
  row(76, 'M', '3.1.5', 'CancelTask gives the canceled task; streams tell that and close', async (t, { client }) => {
    const { id } = await client.opened('wait', 'working')
    const stream = client.subscribe(id)
    await stream.next()
    t.match(await client.cancel(id), { id, status: { state: 'TASK_STATE_CANCELED' } })
    t.equal((await read(stream)).map(brief).at(-1), 'canceled')
  }),
  row(
    77,
    'M',
    '3.1.5',
    'A task that has ended cannot be canceled: TaskNotCancelable; an unknown one: TaskNotFound',
    async (t, { client }) => {
      for (const text of ['x', 'fail', 'reject']) {
        t.equal(
          (await client.refusal('CancelTask', { id: (await client.task(text)).id })).reason,
          'TASK_NOT_CANCELABLE',
          text
        )
      }
      t.equal((await client.refusal('CancelTask', { id: 'made-up' })).reason, 'TASK_NOT_FOUND')
    }
  ),
  row(
    78,
    'M',
    '3.3.1',
    'Canceling twice equals canceling once: the second gives the canceled task',
    async (t, { client }) => {
      const { id } = await client.opened('wait', 'working')
      const canceled = await client.cancel(id)
      t.same(await client.cancel(id), canceled)
    }
  ),
  row(79, 'M', '3.3.1', 'Reading changes nothing', async (t, { client, commits, store }) => {
    const { id } = await client.task('ask')
    const [before, stored] = [commits(), await store.readTask({ tenant: '', principal: 'anonymous' }, id)]
    t.same(await client.get(id), await client.get(id))
    await client.refusal('GetExtendedAgentCard', {})
    await client.refusal('GetTask', { id: 'made-up' })
    t.equal(commits(), before)
    t.same(await store.readTask({ tenant: '', principal: 'anonymous' }, id), stored)
  }),
  row(80, 'M', '3.1.1', 'A task that has ended never changes', async (t, { client, clock }) => {
    const done = await client.task('count 2')
    await client.refusal('SendMessage', say('more', { taskId: done.id }))
    await client.refusal('CancelTask', { id: done.id })
    await client.task('after', { referenceTaskIds: [done.id] })
    clock.increment(60_000)
    t.same(await client.get(done.id), done)
  })
]

/** Opens tasks of a tenant one after the other. Gives their ids. */
async function several(
  client: Client,
  tenant: string,
  count: number,
  between = () => {},
  contextId?: string
): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < count; n += 1) {
    const { result } = await client.call('SendMessage', {
      ...say('x', contextId === undefined ? {} : { contextId }),
      tenant
    })
    ids.push((result as { task: Task }).task.id)
    between()
  }
  return ids
}

/** All tasks of a list, page by page. */
async function listed(client: Client, params: ListTasksRequest): Promise<Task[]> {
  const { tasks, nextPageToken } = await client.list(params)
  return nextPageToken === '' ? tasks : [...tasks, ...(await listed(client, { ...params, pageToken: nextPageToken }))]
}
