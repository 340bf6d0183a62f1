import t, { type Test } from 'tap'
import type { ListTasksRequest, ListTasksResponse, Task } from '../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import type { CallContext } from '../../../runtime/access/call-context.ts'
import type { Runtime, RuntimeOptions } from '../../../runtime/runtime-options.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import {
  open,
  reaches,
  refusal,
  rejection,
  say,
  start,
  taskIn,
  until,
  withGenerations,
  type Started
} from '../../fixtures/runtime/runtime-helpers.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'

/** The time at which the test's clock begins. */
const START = '2026-01-02T03:04:05.006Z'

const RESTING: Record<string, TaskState> = { wait: 'TASK_STATE_WORKING', ask: 'TASK_STATE_INPUT_REQUIRED' }

interface Listed extends Started {
  /** Opens a task and waits until it rests. */
  readonly rested: (text: string, contextId?: string, call?: CallContext) => Promise<Task>
}

function listed(t: Test, options: Partial<RuntimeOptions> = {}): Listed {
  const started = start(t, { work: obedient }, options)
  const { runtime } = started
  const rested = async (text: string, contextId?: string, call?: CallContext) => {
    const { id } = await open(runtime, text, contextId === undefined ? {} : { contextId }, call)
    const at = RESTING[text] ?? 'TASK_STATE_COMPLETED'
    return until(async () => {
      const task = await runtime.getTask({ id }, call)
      return task.status.state === at && task
    })
  }
  return { ...started, rested }
}

const idsOf = ({ tasks }: ListTasksResponse) => tasks.map(({ id }) => id)

/** Every page of a list, one after the other; `between` runs after each. */
async function walk(
  runtime: Runtime,
  params: ListTasksRequest,
  call?: CallContext,
  between: () => Promise<void> = async () => {}
): Promise<ListTasksResponse[]> {
  const pages: ListTasksResponse[] = []
  do {
    const pageToken = pages.at(-1)?.nextPageToken ?? ''
    pages.push(await runtime.listTasks({ ...params, pageToken }, call))
    await between()
  } while (pages.at(-1)?.nextPageToken !== '')
  return pages
}

await t.test('the caller’s tasks are listed as they are, the latest status first', async t => {
  const { runtime, clock, rested } = listed(t)
  t.strictSame(
    await runtime.listTasks({}),
    { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 },
    'an empty list has every member'
  )
  const asked = await rested('ask')
  clock.increment(1)
  const done = await rested('hello', asked.contextId)
  clock.increment(1)
  const waiting = await rested('wait')
  const { artifacts: _, ...shown } = done
  t.strictSame(await runtime.listTasks({}), {
    tasks: [waiting, shown, asked],
    nextPageToken: '',
    pageSize: 50,
    totalSize: 3
  })
  clock.increment(1)
  await runtime.sendMessage(say('now', { taskId: asked.id }))
  t.strictSame(
    idsOf(await runtime.listTasks({})),
    [asked.id, waiting.id, done.id],
    'a task with a new status moves to the front'
  )
})

await t.test('pages may change size and details on the way', async t => {
  const { runtime, clock, rested } = listed(t)
  for (let i = 0; i < 120; i += 1) {
    await rested('hello')
    clock.increment(i % 3 && 1)
  }
  const whole = (await walk(runtime, {})).flatMap(idsOf)
  const first = await runtime.listTasks({ pageSize: 3 })
  const second = await runtime.listTasks(
    { pageSize: 100, historyLength: 0, includeArtifacts: true, pageToken: first.nextPageToken },
    withGenerations
  )
  const third = await runtime.listTasks({ pageToken: second.nextPageToken })
  t.strictSame([first, second, third].flatMap(idsOf), whole)
})

await t.test('filters', async t => {
  const { runtime, clock, rested } = listed(t)
  const all: Task[] = []
  for (let i = 0; i < 36; i += 1) {
    all.push(await rested(['wait', 'ask', 'hello'][i % 3] ?? '', `context ${i % 4}`))
    clock.increment(i % 2)
  }

  await t.test('list exactly what matches all of them, page by page', async t => {
    const times = [undefined, START, all[17]?.status.timestamp, all[35]?.status.timestamp, '2026-01-02T03:04:06Z']
    for (const contextId of [undefined, 'context 1', 'context 2', 'context']) {
      for (const status of [undefined, 'TASK_STATE_WORKING', 'TASK_STATE_COMPLETED', 'TASK_STATE_FAILED'] as const) {
        for (const statusTimestampAfter of times) {
          const filters = {
            ...(contextId && { contextId }),
            ...(status && { status }),
            ...(statusTimestampAfter && { statusTimestampAfter })
          }
          const expected = all.filter(
            task =>
              (!contextId || task.contextId === contextId) &&
              (!status || task.status.state === status) &&
              Date.parse(task.status.timestamp ?? '') >= Date.parse(statusTimestampAfter ?? START)
          )
          const pages = await walk(runtime, { ...filters, pageSize: 5 })
          t.strictSame(new Set(pages.flatMap(idsOf)), new Set(expected.map(({ id }) => id)), JSON.stringify(filters))
          t.equal(pages.flatMap(idsOf).length, expected.length)
          t.ok(pages.every(({ totalSize }) => totalSize === expected.length))
        }
      }
    }
  })

  await t.test('that are empty or unspecified count as none', async t => {
    const filters = {
      contextId: '',
      pageToken: '',
      status: 'TASK_STATE_UNSPECIFIED',
      statusTimestampAfter: null,
      pageSize: null
    }
    t.equal((await runtime.listTasks(filters as unknown as ListTasksRequest)).totalSize, 36)
  })

  await t.test('accept a time inclusively, to the millisecond, in any format', async t => {
    const newest = Math.max(...all.map(({ status }) => Date.parse(status.timestamp ?? '')))
    const count = all.filter(({ status }) => Date.parse(status.timestamp ?? '') === newest).length
    const utc = new Date(newest).toISOString()
    const local = (hours: number) => new Date(newest + hours * 3_600_000).toISOString().slice(0, -1)
    for (const same of [
      utc,
      utc.replace('Z', '000000Z'),
      utc.replace('Z', '999999Z'),
      utc.toLowerCase(),
      `${local(2)}+02:00`,
      `${local(-9)}-09:00`,
      `${local(14)}000+14:00`
    ]) {
      t.equal((await runtime.listTasks({ statusTimestampAfter: same })).totalSize, count, same)
    }
    for (const later of [new Date(newest + 1).toISOString(), `${local(2)}+01:59`, '9999-12-31T23:59:59.999Z']) {
      t.equal((await runtime.listTasks({ statusTimestampAfter: later })).totalSize, 0, later)
    }
    t.equal((await runtime.listTasks({ statusTimestampAfter: '0001-01-01T00:00:00Z' })).totalSize, 36)
  })
})

await t.test('a listed task has the requested details', async t => {
  const { runtime, rested } = listed(t)
  const asked = await rested('ask')
  await runtime.sendMessage(say('first', { taskId: asked.id }))
  await rested('wait')

  await t.test('a listed task has the newest messages, all of them without a length', async t => {
    const lengthsOf = async (params: ListTasksRequest) =>
      (await runtime.listTasks({ ...params, status: 'TASK_STATE_COMPLETED' })).tasks.map(
        ({ history }) => history?.length
      )
    t.same(await lengthsOf({}), [3])
    t.same(await lengthsOf({ historyLength: 9 }), [3])
    t.same(await lengthsOf({ historyLength: 2 }), [2])
    t.same(await lengthsOf({ historyLength: 0 }), [undefined])
    const { tasks } = await runtime.listTasks({ historyLength: 1, status: 'TASK_STATE_COMPLETED' })
    t.match(tasks, [{ history: [{ parts: [{ text: 'first' }] }] }])
    const page = await runtime.listTasks({ status: 'TASK_STATE_COMPLETED', includeArtifacts: true })
    t.strictSame(page.tasks, [await runtime.getTask({ id: asked.id })], 'complete, as GetTask returns it')
  })
})

await t.test('a page token', async t => {
  const store = memoryStore()
  const shared = { ...store, close: async () => {} }
  const { runtime, clock, rested } = listed(t, { store: shared })
  const anna = { principal: 'anna' }
  const contextId = 'c'
  for (const text of ['wait', 'hello', 'hello', 'wait']) {
    await rested(text, contextId, anna)
    await rested(text, contextId, { principal: 'bob' })
    clock.increment(1)
  }
  const filters: ListTasksRequest = { contextId, status: 'TASK_STATE_WORKING', statusTimestampAfter: START }
  const { nextPageToken: token } = await runtime.listTasks({ ...filters, pageSize: 1 }, anna)
  const refusedWith = (pageToken: string, params: ListTasksRequest = filters, call: CallContext = anna) =>
    refusal(runtime.listTasks({ ...params, pageToken }, call))
  const asRefused = {
    code: 'InvalidParams',
    message: /^Invalid parameters: pageToken must be .*Leave it out to begin again$/
  }

  await t.test('is valid for the same list repeatedly, however the filters are written', async t => {
    const page = await runtime.listTasks({ ...filters, pageToken: token }, anna)
    t.match(page, { tasks: [{ status: { state: 'TASK_STATE_WORKING' } }], nextPageToken: '', totalSize: 2 })
    t.strictSame(await runtime.listTasks({ ...filters, pageToken: token }, anna), page)
    t.strictSame(
      await runtime.listTasks(
        { ...filters, statusTimestampAfter: '2026-01-02T05:04:05.006+02:00', pageToken: token },
        anna
      ),
      page
    )
  })

  await t.test('is valid after a restart', async t => {
    const before = await runtime.listTasks({ ...filters, pageToken: token }, anna)
    const { runtime: again } = listed(t, { store: shared })
    const after = await again.listTasks({ ...filters, pageToken: token }, anna)
    t.strictSame(idsOf(after), idsOf(before))
  })

  await t.test('is refused for another caller or other filters', async t => {
    for (const caller of [
      { principal: 'bob' },
      { principal: 'ann' },
      {},
      { ...anna, tenant: 'a' },
      { tenant: 'anna', principal: '' }
    ]) {
      t.match(await refusedWith(token, filters, caller), asRefused, JSON.stringify(caller))
    }
    const { contextId: _, ...noContext } = filters
    const others: ListTasksRequest[] = [
      {},
      noContext,
      { ...filters, contextId: 'cc' },
      { ...filters, status: 'TASK_STATE_COMPLETED' },
      { ...filters, statusTimestampAfter: '2026-01-02T03:04:05.005Z' }
    ]
    for (const other of others) t.match(await refusedWith(token, other), asRefused, JSON.stringify(other))
    const { nextPageToken: theirs } = await runtime.listTasks({ ...filters, pageSize: 1 }, { principal: 'bob' })
    t.match(await refusedWith(theirs), asRefused)
  })

  await t.test('is refused if a character is changed, or if it was made up', async t => {
    for (let i = 0; i < token.length; i += 1) {
      t.match(
        await refusedWith(`${token.slice(0, i)}${token[i] === 'A' ? 'B' : 'A'}${token.slice(i + 1)}`),
        asRefused,
        `character ${i}`
      )
    }
    const text = (place: string) => token.slice(0, 43) + Buffer.from(place).toString('base64url')
    const madeUp = [
      token.slice(0, -1),
      `${token}A`,
      ` ${token}`,
      `${token}=`,
      token.toLowerCase(),
      token.slice(43),
      token.slice(0, 43),
      encodeURIComponent(`${token}/`),
      text('2026-01-02T03:04:05.006Z x'),
      text(''),
      text(' '),
      text('x'),
      '0',
      'null',
      '{}',
      '../../etc/passwd',
      '\u0000',
      'é',
      '😀'.repeat(100),
      '[',
      'A'.repeat(10_000)
    ]
    for (const each of madeUp) t.match(await refusedWith(each), asRefused, each.slice(0, 60))
  })

  await t.test('is refused by field, with what to do', async t => {
    const error = await rejection(runtime.listTasks({ pageToken: 'x' }))
    const description =
      'must be the nextPageToken of an answer to the same caller, with the same contextId, status and statusTimestampAfter. Leave it out to begin again'
    t.match(error, { code: 'InvalidParams', violations: [{ field: 'pageToken', description }] })
  })

  await t.test('reveals nothing of other callers', async t => {
    const text = Buffer.from(token.slice(43), 'base64url').toString()
    const {
      tasks: [last]
    } = await runtime.listTasks({ ...filters, pageSize: 1 }, anna)
    t.equal(text, `${last?.status.timestamp} ${last?.id}`)
  })
})

await t.test('no task is repeated or missed while others move and arrive', async t => {
  const { runtime, clock, rested } = listed(t)
  for (let i = 0; i < 40; i += 1) {
    await rested(i % 2 ? 'ask' : 'wait')
    clock.increment(i % 3)
  }
  const { tasks: before } = await runtime.listTasks({ pageSize: 100 })
  const moved = new Set<string>()
  let step = 0
  const moveSome = async () => {
    clock.increment(step % 2)
    const unseen = before[39 - step]
    const seen = before[3 * step]
    for (const task of [unseen, seen]) {
      if (!task || moved.has(task.id)) continue
      moved.add(task.id)
      if (task.status.state === 'TASK_STATE_WORKING') await runtime.cancelTask({ id: task.id })
      else await runtime.sendMessage(say('an answer', { taskId: task.id }))
    }
    await rested('wait')
    step += 1
  }
  const pages = await walk(runtime, { pageSize: 4 }, undefined, moveSome)
  const shown = pages.flatMap(idsOf)
  t.equal(new Set(shown).size, shown.length)
  for (const { id } of before) if (!moved.has(id)) t.ok(shown.includes(id), id)
  t.ok(
    moved.size > 10 && [...moved].some(id => shown.includes(id)) && [...moved].some(id => !shown.includes(id)),
    'some of both kinds moved'
  )

  const [newest] = before
  const { tasks: since } = await runtime.listTasks({
    pageSize: 100,
    ...(newest?.status.timestamp && { statusTimestampAfter: newest.status.timestamp })
  })
  const { tasks: now } = await runtime.listTasks({ pageSize: 100 })
  const known = new Set([...shown, ...since.map(({ id }) => id)])
  t.same(
    now.filter(({ id }) => !known.has(id)),
    [],
    'moved tasks are in a list of changes since the first page'
  )
})

await t.test('a list is refused for its version, then its tenant and parameters, and after closing', async t => {
  const { runtime } = listed(t)
  await t.rejects(runtime.listTasks({ pageSize: 0 }, { version: '' }), { code: 'VersionNotSupported' })
  t.match(await rejection(runtime.listTasks({ pageSize: 0, pageToken: 'x' })), {
    code: 'InvalidParams',
    violations: [{ field: 'pageSize' }]
  })
  await runtime.close()
  await t.rejects(runtime.listTasks({}), { code: 'Overloaded' })
})

await t.test('a list changes nothing, and an error of its store is hidden from the caller', async t => {
  const store = memoryStore()
  let commits = 0
  let isBroken = false
  const { runtime, rested, log } = listed(t, {
    store: {
      ...store,
      commit: commit => ((commits += 1), store.commit(commit)),
      listTasks: (...args) => (isBroken ? Promise.reject(new Error('disk /dev/sda1')) : store.listTasks(...args))
    }
  })
  const { id } = await rested('ask')
  await reaches(runtime, id, 'input-required')
  const before = commits
  t.equal((await runtime.listTasks({})).totalSize, 1)
  t.equal(commits, before)
  isBroken = true
  t.match(await refusal(runtime.listTasks({})), { code: 'InternalError', message: 'Internal error' })
  t.match(log, [{ message: 'an operation failed', details: { operation: 'listTasks' } }])
  t.equal(taskIn(await runtime.sendMessage(say('x', { taskId: id }))).status.state, 'TASK_STATE_COMPLETED')
})
