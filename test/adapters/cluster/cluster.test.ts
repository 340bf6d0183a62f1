import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { Following } from '../../../adapters/cluster/following.ts'
import { ClusterNode } from '../../../adapters/cluster/node.ts'
import { proofOf } from '../../../adapters/cluster/link/frames.ts'
import { NodeLink, LinkLost } from '../../../adapters/cluster/link/link.ts'
import { webSockets } from '../../../adapters/cluster/link/network.ts'
import { LinkServer } from '../../../adapters/cluster/link/link-server.ts'
import { wantedOwners, type Placement } from '../../../adapters/cluster/placement/placement.ts'
import { SharedClock, steadyClock } from '../../../adapters/cluster/placement/postgres-placement.ts'
import { Shards } from '../../../adapters/cluster/shards.ts'
import { dialect01 } from '../../../adapters/legacy/index.ts'
import { TASK_OF_01 } from '../../../adapters/legacy/v01-answers.ts'
import type { Message, StreamResponse } from '../../../machines/protocol/objects.ts'
import {
  accepted,
  authRequired,
  createRuntime,
  defineAgent,
  inputRequired,
  progress,
  reply,
  type WorkFunction
} from '../../../runtime/index.ts'
import { createNode } from '../../../runtime/runtime.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { CallContext } from '../../../runtime/access/call-context.ts'
import type { ClusterMember } from '../../../runtime/operations/cluster.ts'
import { NOT_OWNER, type Store, type TaskEvent } from '../../../runtime/store/store.ts'
import type { FeedListener } from '../../../runtime/streams/task-tail.ts'
import { LARGE_BYTES } from '../../../runtime/streams/task-stream.ts'
import { echo, steeredWork } from '../../fixtures/runtime/agents.ts'
import { testCluster, type TestCluster, type TestNode } from '../../fixtures/cluster/cluster-nodes.ts'
import { cuttingProxy } from '../../fixtures/network/cutting-proxy.ts'
import { MemoryPlaces } from '../../fixtures/cluster/memory-placement.ts'
import { receivers } from '../../fixtures/runtime/receiver.ts'
import {
  brief,
  collect,
  deferred,
  generationOf,
  reaches,
  recordingLogger,
  refusal,
  rejection,
  rest,
  say,
  taskIn,
  textOf,
  until,
  withGenerations,
  type Deferred
} from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'
import { servedRuntime, type ServedRuntime } from '../../../runtime/runtime-options.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'
import { callDialect } from '../../fixtures/servers/dialect-calls.ts'
import { formatText, parseFormat } from '../../../adapters/cluster/placement/statements.ts'
import { OwnerSelection } from '../../../adapters/cluster/placement/joining.ts'
import { isNewer } from '../../../runtime/contexts/newer-tasks.ts'

const card = { name: 'Test' }
const scope = { tenant: '', principal: 'anonymous' }

/** Asks, and says what it was told. */
const asks: WorkFunction = async ({ ask }) => ({ artifact: textOf(await ask(inputRequired('Which day?'))) ?? '' })

/** Two nodes with shards, and one without. */
async function three(cluster: TestCluster): Promise<[one: TestNode, two: TestNode, front: TestNode]> {
  return [await cluster.add(), await cluster.add(), await cluster.add({ mayOwn: false })]
}

/** An agent that says its numbers, one for each gate that opens. */
function counting(gates: readonly Deferred<void>[]) {
  return defineAgent({
    card,
    work: async function* ({ step }) {
      for (const [i, gate] of gates.entries()) {
        await step(`gate ${i}`, async () => gate.promise)
        yield progress(String(i))
      }
    }
  })
}

const gates = (count: number) => Array.from({ length: count }, () => deferred())

await t.test('a node without shards serves tasks of the others', async t => {
  const cluster = testCluster(t, defineAgent({ card, work: asks }))
  const [one, two, { runtime: front, node }] = await three(cluster)
  t.strictSame([one.node.shards.owned.length + two.node.shards.owned.length, node.shards.owned.length], [8, 0])

  await t.test('the task of a message, its question, its answer, and its stream on every node', async t => {
    const task = taskIn(await front.sendMessage(say('a trip')))
    t.equal(task.status.state, 'TASK_STATE_INPUT_REQUIRED')
    const streams = [one.runtime, two.runtime, front].map(runtime =>
      collect(runtime.subscribeToTask({ id: task.id }, withGenerations))
    )
    t.equal(taskIn(await front.sendMessage(say('Monday', { taskId: task.id }))).status.state, 'TASK_STATE_COMPLETED')
    const [first, ...others] = (await Promise.all(streams)).map(events =>
      events.map(event => [generationOf(event), brief(event)])
    )
    t.ok(first && first.length > 2)
    for (const other of others) t.strictSame(other, first)
  })
  await t.test('a stream, which begins with the task as its message has opened it', async t => {
    const events = async (runtime: TestNode['runtime']) =>
      (await collect(runtime.sendStreamingMessage(say('x'), withGenerations))).map(event => [
        generationOf(event),
        brief(event)
      ])
    const [there] = await Promise.all([front, one.runtime].map(events))
    t.strictSame(there, await events(one.runtime))
    t.strictSame(
      there?.map(([, event]) => event),
      ['task:submitted', 'working', 'input-required: Which day?']
    )
    t.equal(
      taskIn(await front.sendMessage(say('y', {}, { returnImmediately: true }))).status.state,
      'TASK_STATE_SUBMITTED'
    )
  })
  await t.test('a stream, which begins with the task as its answer has left it, also if the task is large', async t => {
    for (const length of [1, LARGE_BYTES + 1]) {
      const { id: taskId } = taskIn(await front.sendMessage(say('x'.repeat(length))))
      const [first, ...others] = await collect(
        front.sendStreamingMessage(say('Monday', { taskId }, { historyLength: 1 }))
      )
      t.strictSame(
        [brief(first as StreamResponse), ...others.map(brief)],
        ['task:working', 'artifact: Monday', 'completed']
      )
      t.equal(taskIn(first).history?.map(textOf).join(), 'Monday')
    }
  })
  await t.test('refusals with all of their details', async t => {
    const ended = taskIn(await front.sendMessage(say('x')))
    await front.cancelTask({ id: ended.id })
    t.match(
      await rejection(
        front.sendMessage(say('late', {}, { taskPushNotificationConfig: { url: 'https://a.example/' } }))
      ),
      { code: 'PushNotificationNotSupported' }
    )
    const [here, there] = await Promise.all(
      [one.runtime, front].map(runtime => refusal(runtime.sendMessage(say('y', { taskId: ended.id }))))
    )
    t.match(there, { code: 'UnsupportedOperation', message: here?.message, metadata: here?.metadata })
    t.match(await refusal(front.cancelTask({ id: 'unknown' })), { code: 'TaskNotFound' })
    t.match(await refusal(front.cancelTask({ id: 'unknown~1' })), { code: 'TaskNotFound' })
    t.match(await refusal(front.sendMessage(say('y', { taskId: 'unknown' }))), { code: 'TaskNotFound' })
  })
  await t.test('conditions, long polls and lists', async t => {
    const task = taskIn(await front.sendMessage(say('x'), withGenerations))
    const generation = 4
    const metadata = { taskId: task.id, expectedGeneration: '1', currentGeneration: '4' }
    const conditional = { ...withGenerations, conditions: { ifGenerationMatch: 1 } }
    for (const refused of [
      front.cancelTask({ id: task.id }, conditional),
      front.sendMessage(say('y', { taskId: task.id }), conditional)
    ])
      t.match(await refusal(refused), { code: 'TaskGenerationMismatch', metadata })
    const polled = front.getTask({ id: task.id }, { ...withGenerations, conditions: { currentGeneration: generation } })
    t.equal(
      (await front.cancelTask({ id: task.id }, { ...withGenerations, conditions: { ifGenerationMatch: generation } }))
        .status.state,
      'TASK_STATE_CANCELED'
    )
    t.equal((await polled).status.state, 'TASK_STATE_CANCELED')
    t.equal((await front.listTasks({})).totalSize, (await two.runtime.listTasks({})).totalSize)
    const own = taskIn(await one.runtime.sendMessage(say('x')))
    t.equal((await one.runtime.cancelTask({ id: own.id })).status.state, 'TASK_STATE_CANCELED')
  })
  await t.test("a context of the client's own id", async t => {
    const opened = taskIn(await front.sendMessage(say('x', { contextId: 'mine' })))
    t.equal(taskIn(await one.runtime.sendMessage(say('y', { contextId: 'mine' }))).contextId, opened.contextId)
    t.equal((await two.runtime.listTasks({ contextId: 'mine' })).totalSize, 2)
  })
})

await t.test('a resent message is processed once, whichever node gets it', async t => {
  const cluster = testCluster(t, defineAgent({ card, work: echo }))
  const nodes = await three(cluster)
  const message = say('x')
  const tasks = await Promise.all(nodes.map(({ runtime }) => runtime.sendMessage(message, withGenerations)))
  t.equal(new Set(tasks.map(answer => taskIn(answer).id)).size, 1)
})

/** What is read of the tasks of 0.1. */
interface Json {
  readonly id: string
  readonly sessionId: string
  readonly status: { readonly state: string; readonly message?: object }
  readonly history?: object
  readonly metadata?: { readonly [TASK_OF_01]?: { readonly taskId?: string; readonly follows?: string } }
}

/** Calls a method of 0.1 on a node. */
const call01 = ({ runtime }: TestNode, method: string, params: object) =>
  callDialect<Json>(dialect01(runtime), method, params)

/** Sends a message under a client's id on a node. */
const send01 = (node: TestNode, id: string, text: string, more: object = {}) =>
  call01(node, 'tasks/send', { id, message: { role: 'user', parts: [{ type: 'text', text }] }, ...more })

/** The ids of a task of 0.1 in the runtime. */
const ownIds = ({ metadata }: Json) => metadata?.[TASK_OF_01] ?? {}

await t.test("a client's id of a task means the same on every node", async t => {
  const cluster = testCluster(t, defineAgent({ card, work: echo }))
  const nodes = await three(cluster)
  const first = await send01(nodes[2], 'my task', 'a')
  const second = await send01(nodes[2], 'my task', 'b')
  t.strictSame([second.sessionId, ownIds(second).follows], [first.sessionId, ownIds(first).taskId])
  t.equal(ownIds(await call01(nodes[0], 'tasks/get', { id: 'my task' })).taskId, ownIds(second).taskId)
  t.equal((await send01(nodes[1], 'in a context', 'c', { sessionId: 'other' })).sessionId, 'other')
  t.match(await refusal(send01(nodes[2], ownIds(first).taskId ?? '', 'd')), { code: 'UnsupportedOperation' })
})

await t.test("an agent's answer without a task arrives, and has a name", async t => {
  const cluster = testCluster(t, defineAgent({ card, negotiate: () => reply('hello') }))
  const [, , front] = await three(cluster)
  for (const text of ['x', 'y'])
    t.match(await send01(front, 'talk', text), { status: { message: { parts: [{ text: 'hello' }] } } })
})

await t.test('messages under one id from two nodes are processed one after the other, in one session', async t => {
  const asked = deferred()
  const answer = deferred()
  const texts: (string | undefined)[] = []
  const negotiate = async ({ message }: { readonly message: Message }) => {
    texts.push(textOf(message))
    asked.resolve()
    await answer.promise
    return reply('hello')
  }
  const store = memoryStore()
  let reads = 0
  const readSend: Store['readSend'] = async (...asked) => ((reads += 1), store.readSend(...asked))
  const cluster = testCluster(t, defineAgent({ card, negotiate }), { store: { ...store, readSend } })
  await cluster.add()
  const fronts = [await cluster.add({ mayOwn: false }), await cluster.add({ mayOwn: false })] as const
  const first = send01(fronts[0], 'talk', 'a')
  await asked.promise
  const before = reads
  const second = send01(fronts[1], 'talk', 'b')
  await until(async () => reads > before, 'a node that addresses the second before the answer to the first')
  answer.resolve()
  const [{ sessionId }, later] = await Promise.all([first, second])
  t.equal(later.sessionId, sessionId)
  t.strictSame(texts, ['a', 'b'])
})

await t.test('what a name refers to is canceled on its node: a negotiation, a task, and what is no name', async t => {
  const cluster = testCluster(
    t,
    defineAgent({
      card,
      work: steeredWork().work,
      negotiate: ({ message }) => (textOf(message) === 'hello' ? reply('hi') : accepted())
    })
  )
  const nodes = await three(cluster)
  const cancel = (node: TestNode, id: string) => call01(node, 'tasks/cancel', { id })
  for (const [index, name] of [
    [0, 'a'],
    [1, 'b'],
    [2, 'c'],
    [0, 'd']
  ] as const) {
    const node = nodes[index]
    const { sessionId } = await send01(node, name, 'hello')
    const [next, last] = [nodes[(index + 1) % 3], nodes[(index + 2) % 3]] as [TestNode, TestNode]
    const canceled = await cancel(next, name)
    t.match(canceled, {
      sessionId,
      status: { state: 'canceled' },
      history: [{ parts: [{ text: 'hello' }] }, { parts: [{ text: 'hi' }] }]
    })
    t.strictSame(await cancel(node, name), canceled)
    const { taskId = '' } = ownIds(canceled)
    t.equal(ownIds(await call01(node, 'tasks/get', { id: name })).taskId, taskId)
    t.match((await node.runtime.getTask({ id: taskId })).history, [
      { parts: [{ text: 'The client has canceled the negotiation.' }] }
    ])
    const working = send01(node, name, 'work')
    await until(async () => (await node.runtime.listTasks({ status: 'TASK_STATE_WORKING' })).totalSize === 1)
    t.match(await cancel(last, name), {
      sessionId,
      status: { state: 'canceled' },
      history: [{ parts: [{ text: 'hello' }] }, { parts: [{ text: 'hi' }] }, { parts: [{ text: 'work' }] }]
    })
    t.match(await working, { status: { state: 'canceled' } })
  }
  const { id } = taskIn(
    await nodes[0].runtime.sendMessage({ ...say('work'), configuration: { returnImmediately: true } })
  )
  t.match(await cancel(nodes[1], id), { id, status: { state: 'canceled' } })
  t.match(await refusal(cancel(nodes[2], 'nobody')), { code: 'TaskNotFound' })
})

await t.test('an authorization, an invalid output, and work that needs a task of another node', async t => {
  const cluster = testCluster(
    t,
    defineAgent({
      card,
      work: async work => {
        const text = textOf(work.message)
        if (text === 'login') return { artifact: JSON.stringify(await work.ask(authRequired('Log in'))) }
        if (text === 'invalid') return { artifact: { parts: [] } }
        if (text === 'fails') throw new Error('no')
        if (text === 'asks') return asks(work)
        return {
          artifact: (await work.prerequisites()).map(({ artifacts = [] }) => artifacts.map(textOf).join()).join()
        }
      }
    })
  )
  const [one, two, { runtime: front }] = await three(cluster)
  const login = taskIn(await front.sendMessage(say('login')))
  t.equal(login.status.state, 'TASK_STATE_AUTH_REQUIRED')
  t.match(await front.authorized(login.id, 'token'), { id: login.id })
  await reaches(front, login.id, 'completed')
  t.match(await refusal(front.authorized(login.id, 'token')), { code: 'UnsupportedOperation' })
  for (const word of ['invalid', 'fails'])
    t.equal(taskIn(await front.sendMessage(say(word))).status.state, 'TASK_STATE_FAILED', word)
  const asked = taskIn(await one.runtime.sendMessage(say('asks')))
  const waiting = taskIn(
    await two.runtime.sendMessage(say('after', { referenceTaskIds: [asked.id] }, { returnImmediately: true }))
  )
  t.not(asked.id.split('~')[1], waiting.id.split('~')[1])
  await front.sendMessage(say('Monday', { taskId: asked.id }))
  t.equal(textOf((await reaches(front, waiting.id, 'completed')).artifacts?.[0]), 'Monday')
})

await t.test('webhooks post once, from the node of the task, also after it has moved', async t => {
  const opened = gates(3)
  const cluster = testCluster(t, counting(opened))
  const push = receivers()
  const one = await cluster.add({ push })
  const { runtime: front } = await cluster.add({ push, mayOwn: false })
  const task = taskIn(
    await front.sendMessage(
      say('go', {}, { returnImmediately: true, taskPushNotificationConfig: { url: 'https://a.example/' } })
    )
  )
  const config = await front.createTaskPushNotificationConfig({ taskId: task.id, url: 'https://b.example/' })
  opened[0]?.resolve()
  await until(() => push.heard.filter(line => line.includes('0')).length === 2)
  await cluster.add({ push })
  await cluster.places.dies(one.address, { isTold: true })
  t.strictSame(await front.deleteTaskPushNotificationConfig({ taskId: task.id, id: String(config.id) }), {})
  for (const gate of opened) gate.resolve()
  await until(() => push.heard.some(line => line.includes('completed')))
  const ofA = push.heard.filter(line => line.startsWith('https://a.example/'))
  t.equal(new Set(ofA).size, ofA.length)
})

await t.test('a stream continues without a gap or a repeat while its shard moves', async t => {
  const opened = gates(6)
  const cluster = testCluster(t, counting(opened))
  const one = await cluster.add()
  const { runtime: front } = await cluster.add({ mayOwn: false })
  const task = taskIn(await front.sendMessage(say('go', {}, { returnImmediately: true })))
  const seen: string[] = []
  const reading = (async () => {
    for await (const event of front.subscribeToTask({ id: task.id })) seen.push(brief(event))
  })()
  const says = (i: number) => until(() => seen.some(line => line.includes(String(i))))
  await until(() => seen.length > 0)
  opened[0]?.resolve()
  await says(0)
  const two = await cluster.add()
  opened[1]?.resolve()
  await says(1)
  await cluster.places.dies(one.address, { isTold: true })
  opened[2]?.resolve()
  await says(2)
  t.equal(two.node.shards.owned.length, 8)
  await two.runtime.close()
  const last = await cluster.add()
  for (const gate of opened) gate.resolve()
  await reading
  t.equal(last.node.shards.owned.length, 8)
  t.equal(seen.filter(line => /\d/.test(line)).length, new Set(seen).size - 2, seen.join())
})

await t.test(
  'a node that has lost a shard writes nothing to it, and its callers get the answer of the next owner',
  async t => {
    const cluster = testCluster(t, defineAgent({ card, work: asks }))
    const one = await cluster.add()
    const task = taskIn(await one.runtime.sendMessage(say('x')))
    const commit = (expected: number) =>
      one.node.store.commit({
        key: { ...scope, contextId: 'c' },
        expected,
        atMs: 0,
        snapshot: '',
        tasks: [],
        log: [],
        journal: [],
        sends: [],
        webhooks: []
      })
    t.equal(await commit(0), true)
    await cluster.places.dies(one.address, { isTold: true })
    t.equal(await rejection(commit(1)), NOT_OWNER)
    const late = one.runtime.sendMessage(say('Monday', { taskId: task.id }))
    const two = await cluster.add()
    t.equal(taskIn(await late).status.state, 'TASK_STATE_COMPLETED')
    t.equal((await two.runtime.getTask({ id: task.id })).status.state, 'TASK_STATE_COMPLETED')
  }
)

await t.test(
  'a message whose commit is under way while its context moves is sent again to the next owner, if it may be',
  async t => {
    const written = memoryStore()
    const answered = deferred()
    let commits = 0
    const store: Store = {
      ...written,
      commit: async rows => {
        const isWritten = await written.commit(rows)
        // Others store definitions.
        if (rows.tasks.length === 0) return isWritten
        commits += 1
        await answered.promise
        return isWritten
      }
    }
    const cluster = testCluster(t, defineAgent({ card, work: echo }), { store })
    const one = await cluster.add()
    const front = await cluster.add({ mayOwn: false })
    const sent = [front, one].map(
      ({ runtime }) => [runtime.sendMessage(say('a'), withGenerations), refusal(runtime.sendMessage(say('b')))] as const
    )
    await until(() => commits === 4)
    await cluster.places.dies(one.address, { isTold: true })
    for (const [, once] of sent) t.match(await once, { code: 'Overloaded', message: /not known/ })
    const two = await cluster.add()
    answered.resolve()
    for (const [again] of sent) t.match(taskIn(await again).status, { state: 'TASK_STATE_COMPLETED' })
    t.equal((await front.runtime.listTasks({})).totalSize, 4, 'each message has one task')
    t.equal(two.node.shards.owned.length, 8)
  }
)

await t.test(
  'a node that has lost a shard sends its watchers to the next owner, and tells them nothing any more',
  async t => {
    const cluster = testCluster(t, defineAgent({ card, work: asks }))
    const one = await cluster.add()
    const { id } = taskIn(await one.runtime.sendMessage(say('x')))
    const link = new NodeLink(one.address, 'a secret')
    t.teardown(() => link.close())
    const heard: object[] = []
    link.request(
      { watch: id, shard: Number(one.node.shards.ofTask(id)), scope },
      answer => void heard.push(Object(answer))
    )
    await until(() => heard.length === 1)
    const here = collect(one.runtime.subscribeToTask({ id }))
    await rest()
    await cluster.add()
    await cluster.places.dies(one.address, { isTold: true })
    await one.runtime.sendMessage(say('Monday', { taskId: id }))
    t.match(
      (await here).map(brief),
      ['task:input-required', 'working', 'artifact: Monday', 'completed'],
      'the events of the next owner arrive here'
    )
    t.match(heard, [{ advanced: 4 }, { moved: true }])
    t.equal(heard.length, 2)
  }
)

await t.test('the answer to a message has what reached its task on the next owner', async t => {
  const gate = deferred()
  const cluster = testCluster(
    t,
    defineAgent({ card, messages: 'queue', work: async () => gate.promise.then(() => ({ artifact: 'done' })) })
  )
  const one = await cluster.add()
  const answered = one.runtime.sendMessage(say('first'))
  const { id } = await until(async () => (await one.runtime.listTasks({ status: 'TASK_STATE_WORKING' })).tasks[0])
  await cluster.add()
  await cluster.places.dies(one.address, { isTold: true })
  await one.runtime.sendMessage(say('second', { taskId: id }, { returnImmediately: true }))
  gate.resolve()
  t.strictSame(taskIn(await answered).history?.map(textOf), ['first', 'second'])
})

await t.test('a context that moves while it is loaded is loaded by the next owner', async t => {
  const inner = memoryStore()
  const [loading, moved] = [deferred(), deferred()]
  let isSlow = false
  const store: Store = {
    ...inner,
    loadContext: async (...args) => {
      const stored = await inner.loadContext(...args)
      if (isSlow) await (loading.resolve(), moved.promise)
      return stored
    }
  }
  const cluster = testCluster(t, defineAgent({ card, work: asks }), { store })
  const one = await cluster.add()
  const { runtime: front } = await cluster.add({ mayOwn: false })
  const task = taskIn(await front.sendMessage(say('x')))
  await cluster.places.dies(one.address, { isTold: true, comesBack: true })
  isSlow = true
  const answered = front.sendMessage(say('Monday', { taskId: task.id }))
  await loading.promise
  await cluster.places.dies(one.address, { isTold: true })
  isSlow = false
  moved.resolve()
  await cluster.add()
  t.equal(taskIn(await answered).status.state, 'TASK_STATE_COMPLETED')
})

await t.test('a shard that comes back to the same node is no recovery', async t => {
  const opened = gates(1)
  const cluster = testCluster(t, counting(opened))
  const one = await cluster.add({ limits: { advanced: { recoveries: 1 } } })
  const task = taskIn(await one.runtime.sendMessage(say('go', {}, { returnImmediately: true })))
  const events = collect(one.runtime.subscribeToTask({ id: task.id }))
  for (let i = 0; i < 4; i += 1) await cluster.places.dies(one.address, { isTold: true, comesBack: true })
  opened[0]?.resolve()
  t.ok((await events).length > 1)
  t.equal((await reaches(one.runtime, task.id, 'completed')).status.state, 'TASK_STATE_COMPLETED')
})

await t.test('a context whose commit failed is not lost with the session', async t => {
  const inner = memoryStore()
  let isBroken = false
  const store: Store = {
    ...inner,
    commit: async commit => (isBroken ? Promise.reject(new Error('no room')) : inner.commit(commit))
  }
  const opened = gates(1)
  const cluster = testCluster(t, counting(opened), { store })
  const one = await cluster.add({ limits: { advanced: { recoveries: 1 } } })
  const task = taskIn(await one.runtime.sendMessage(say('go', {}, { returnImmediately: true })))
  isBroken = true
  opened[0]?.resolve()
  await until(() => cluster.log.some(({ message }) => message === 'a commit failed'))
  isBroken = false
  await cluster.places.dies(one.address, { isTold: true, comesBack: true })
  t.equal((await reaches(one.runtime, task.id, 'completed')).status.state, 'TASK_STATE_COMPLETED')
})

await t.test('a quota of open tasks holds for all nodes together', async t => {
  const limits = { perPrincipal: { openTasks: 6 } }
  const cluster = testCluster(t, defineAgent({ card, work: asks }))
  const nodes = [
    await cluster.add({ limits }),
    await cluster.add({ limits }),
    await cluster.add({ limits, mayOwn: false })
  ]
  const open = async () =>
    (
      await cluster.store.listTasks(scope, { limit: 100, historyLength: 0, state: 'TASK_STATE_INPUT_REQUIRED' })
    ).tasks.map(({ task }) => task.id)
  const sent = await Promise.allSettled(
    Array.from({ length: 24 }, (_, i) => (nodes[i % 3] as TestNode).runtime.sendMessage(say('x')))
  )
  for (const outcome of sent)
    if (outcome.status === 'rejected')
      t.match(outcome.reason, {
        code: 'RateLimited',
        retryAfterMs: 1000,
        metadata: { quota: 'perPrincipal.openTasks' }
      })
  t.ok((await open()).length <= 8, 'one more a node that opens tasks')
  for (const { runtime } of nodes)
    t.match(await rejection(until(async () => (await runtime.sendMessage(say('y'))) && false)), { code: 'RateLimited' })
  await t.test('also after they have moved and ended elsewhere', async t => {
    await cluster.places.dies(String(nodes[0]?.address), { isTold: true, comesBack: true })
    const ids = await open()
    for (const id of ids) await nodes[2]?.runtime.cancelTask({ id })
    for (const { runtime } of nodes)
      t.equal(taskIn(await runtime.sendMessage(say('z'))).status.state, 'TASK_STATE_INPUT_REQUIRED')
  })
  await t.test('large ones are read once in a while', async t => {
    let counts = 0
    const inner = memoryStore()
    const many = testCluster(t, defineAgent({ card, work: asks }), {
      store: { ...inner, countOpen: whose => ((counts += 1), inner.countOpen(whose)) }
    })
    const { runtime } = await many.add({ limits: { perTenant: { openTasks: 4096 } } })
    for (let i = 0; i < 8; i += 1) await runtime.sendMessage(say('x'))
    t.equal(counts, 3, 'that of the tenant again, because it had room for four more')
  })
})

await t.test("an anonymous caller's connection has its share on every node", async t => {
  const limits = { liveContexts: 8 }
  const cluster = testCluster(t, defineAgent({ card, work: async ({ sleep }) => sleep(1e9) }))
  await cluster.add({ limits })
  const { runtime } = await cluster.add({ limits, mayOwn: false })
  const [first, second] = [{}, {}]
  const send = (connection: object) => runtime.sendMessage(say('x', {}, { returnImmediately: true }), { connection })
  await Promise.all([send(first), send(first)])
  t.match(await refusal(send(first)), { code: 'RateLimited', metadata: { share: 'perConnection.liveContexts' } })
  t.ok(taskIn(await send(second)))
})

await t.test('an erasure ends the tasks on all nodes', async t => {
  const cluster = testCluster(t, defineAgent({ card, work: asks }))
  const [one, two, { runtime: front }] = await three(cluster)
  const anna: CallContext = { principal: 'anna' }
  const tasks = await Promise.all(
    [one, two].map(async ({ runtime }) => taskIn(await runtime.sendMessage(say('x'), anna)))
  )
  const streams = tasks.map(async ({ id }) => refusal(collect(front.subscribeToTask({ id }, anna))))
  await Promise.all(tasks.map(({ id }) => until(async () => (await front.getTask({ id }, anna)).id)))
  t.equal(await front.erase({ principal: 'anna' }), true)
  for (const error of await Promise.all(streams)) t.equal(error.code, 'TaskNotFound')
  t.equal(await front.erase({ principal: 'anna' }), false)
  t.equal(taskIn(await front.sendMessage(say('again'), anna)).status.state, 'TASK_STATE_INPUT_REQUIRED')
})

await t.test('tasks continue on all nodes after an erasure that the store refuses', async t => {
  const inner = memoryStore()
  const gate = deferred()
  const begun: string[] = []
  const store: Store = { ...inner, erase: () => Promise.reject(new Error('disk')) }
  const agent = defineAgent({
    card,
    work: async ({ taskId }) => {
      begun.push(taskId)
      await gate.promise
      return { artifact: 'done' }
    }
  })
  const cluster = testCluster(t, agent, { store })
  const [one, two, { runtime: front }] = await three(cluster)
  const anna: CallContext = { principal: 'anna' }
  const tasks = await Promise.all(
    [one, two].map(async ({ runtime }) =>
      taskIn(await runtime.sendMessage(say('x', {}, { returnImmediately: true }), anna))
    )
  )
  await until(() => begun.length === 2)
  t.match(await rejection(front.erase({ principal: 'anna' })), { message: 'disk' })
  await until(() => begun.length === 4)
  gate.resolve()
  for (const { id } of tasks) await reaches(front, id, 'completed', anna)
  t.strictSame(new Set(begun.slice(2)), new Set(tasks.map(({ id }) => id)))
})

/** A connection to a node that has proved to be one, with the frames that it has received. */
async function provedSocket(
  address: string,
  secret: string
): Promise<WebSocket & { readonly heard: Record<string, unknown>[] }> {
  const socket = Object.assign(new WebSocket(address), { heard: [] as Record<string, unknown>[] })
  const [greeting] = await once(socket, 'message')
  const { number } = JSON.parse(String(greeting)) as { readonly number: string }
  socket.on('message', (data: Buffer) => socket.heard.push(JSON.parse(data.toString()) as Record<string, unknown>))
  socket.send(JSON.stringify({ number: 'n', proof: proofOf(secret, 'caller', [number, 'n']) }))
  await until(() => socket.heard.length === 1, 'the proof of the node')
  return socket
}

await t.test('the link between nodes', async t => {
  const cluster = testCluster(t, defineAgent({ card, work: asks }))
  const one = await cluster.add()

  await t.test('does not accept a node with another secret', async t => {
    const link = new NodeLink(one.address, 'another secret')
    const lost = await rejection(link.call({ change: 'cancel', shard: 0, request: {} }))
    t.ok(lost instanceof LinkLost && !lost.wasSent)
    const socket = new WebSocket(one.address)
    await once(socket, 'message')
    socket.send('no JSON')
    const [code] = (await once(socket, 'close')) as [number]
    t.equal(code, 4400)
  })
  await t.test('survives every frame of a stranger, and of a node', async t => {
    const values: unknown[] = [
      null,
      true,
      0,
      -1,
      1.5,
      1e21,
      '',
      'x',
      [],
      {},
      { toString: 1 },
      { id: { toString: 1 } },
      [{ toString: null, valueOf: null }]
    ]
    const names = [
      'number',
      'proof',
      'id',
      'change',
      'shard',
      'request',
      'watch',
      'scope',
      'withhold',
      'erased',
      'stop'
    ]
    const frames = [
      '',
      '{',
      ...values.map(value => JSON.stringify(value)),
      ...names.flatMap(name => values.map(value => JSON.stringify({ id: 1, number: 'n', proof: 'p', [name]: value })))
    ]
    for (const frame of frames) {
      const socket = new WebSocket(one.address)
      await once(socket, 'message')
      socket.send(frame)
      socket.send(frame)
      const [code] = (await once(socket, 'close')) as [number]
      t.ok([4400, 4401].includes(code), `${frame} closes with ${code}`)
    }
    const node = await provedSocket(one.address, 'a secret')
    t.teardown(() => node.terminate())
    const requests = [
      { change: 'cancel', shard: 0, request: {} },
      { watch: 'x~0', shard: 0, scope },
      { withhold: scope },
      { stop: true },
      { erased: false }
    ]
    const asked = requests.flatMap(request =>
      Object.keys(request).flatMap(name => values.map(value => ({ ...request, [name]: value })))
    )
    for (const [i, request] of asked.entries()) node.send(JSON.stringify({ id: 100 + i, ...request }))
    node.send(JSON.stringify({ id: 1, change: 'nothing', shard: 0, request: {} }))
    await until(() => node.heard.some(({ id }) => id === 1), 'the answer to the last')
    t.match(
      node.heard.find(({ id }) => id === 1),
      { error: { message: /does not know the request/ } }
    )
    node.send('{"id":"1"}')
    t.match(await once(node, 'close'), [4400])
    t.equal(one.node.shards.owned.length, 8, 'the node is alive')
  })
  await t.test('lets no page in, and nobody under another name', async t => {
    for (const headers of [
      { origin: 'http://127.0.0.1' },
      { origin: one.address.replace('ws', 'http') },
      { host: 'evil.example' }
    ]) {
      const socket = new WebSocket(one.address, { headers })
      t.match(await once(socket, 'error'), [{ message: 'host' in headers ? /421/ : /403/ }], JSON.stringify(headers))
    }
  })
  await t.test('reads little of a stranger, and has few of them', async t => {
    const socket = new WebSocket(one.address)
    await once(socket, 'message')
    socket.send(`"${'x'.repeat(300_000)}"`)
    t.match(await once(socket, 'close'), [1006])
    const many = Array.from({ length: 70 }, () => new WebSocket(one.address))
    t.teardown(() => many.forEach(each => each.terminate()))
    const ends = await Promise.all(
      many.map(
        each =>
          new Promise(resolve =>
            each
              .on('message', () => resolve('greeted'))
              .on('close', () => resolve('closed'))
              .on('error', () => {})
          )
      )
    )
    t.equal(ends.filter(end => end === 'closed').length, 6)
  })
  await t.test('does not accept a server with another secret', async t => {
    const port = await unusedPort()
    const server = new WebSocketServer({ host: '127.0.0.1', port })
    t.teardown(() => server.close())
    server.on('connection', socket => {
      socket.send(JSON.stringify({ number: 'x' }))
      socket.on('message', () => socket.send(JSON.stringify({ proof: 'y' })))
    })
    const link = new NodeLink(`ws://127.0.0.1:${port}`, 'a secret')
    t.match(await rejection(link.call({ change: 'cancel', shard: 0, request: {} })), { wasSent: false })
    link.close()
  })
  await t.test('ends at once if it is closed while it connects', async t => {
    const server = createServer()
    t.teardown(() => server.close())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const clock = new TestClock()
    const link = new NodeLink(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, 'a secret', {
      network: webSockets,
      clock
    })
    const lost = rejection(link.call({ change: 'cancel', shard: 0, request: {} }))
    const [silent] = (await once(server, 'connection')) as [Socket]
    link.close()
    await rest()
    t.equal(clock.size, 0)
    silent.destroy()
    t.match(await lost, { wasSent: false })
  })
  await t.test('ends what is asked and not wanted any more', async t => {
    const link = new NodeLink(one.address, 'a secret')
    t.teardown(() => link.close())
    const heard: unknown[] = []
    link
      .request({ watch: 'x~0', shard: 0, scope: { tenant: '', principal: '' } }, answer => void heard.push(answer))
      .stop()
    const asked = link.request(
      { watch: 'x~0', shard: 99, scope: { tenant: '', principal: '' } },
      answer => void heard.push(answer)
    )
    await until(() => heard.length === 1)
    t.strictSame(heard, [{ id: 2, moved: true }])
    asked.stop()
    link.request(
      { watch: 'x~0', shard: one.node.shards.owned[0] ?? 0, scope: { tenant: '', principal: '' } },
      answer => void heard.push(answer)
    )
    t.match(await rejection(link.call({ change: 'nothing' as 'cancel', shard: 0, request: {} })), {
      name: 'Error',
      message: /does not know/
    })
  })
  await t.test('ends a call that is aborted', async t => {
    const { runtime: front } = await cluster.add({ mayOwn: false })
    const abort = new AbortController()
    abort.abort(new Error('gone'))
    t.match(await rejection(front.cancelTask({ id: 'x~1' }, { signal: abort.signal })), { message: 'gone' })
  })
})

await t.test('a node that cannot be asked is reported once, and its callers are refused at once', async t => {
  const { logger, log } = recordingLogger()
  /** A node whose neighbour owns everything and behaves so. */
  const beside = async (t: Test, address: string, clock: TestClock) => {
    const places = new MemoryPlaces(2)
    places.placement().join({
      address,
      version: { format: 1, agent: '' },
      gained() {},
      giving: async () => {},
      lost() {},
      changed() {}
    })
    const node = new ClusterNode({
      placement: places.placement({ mayOwn: false }),
      store: memoryStore(),
      address: `ws://127.0.0.1:${await unusedPort()}`,
      secret: 'a secret',
      logger,
      clock
    })
    const runtime = servedRuntime(
      createNode({
        agent: defineAgent({ card, work: asks }),
        store: node.store,
        cluster: node,
        logger
      }),
      'a test'
    )
    t.teardown(() => runtime.close())
    t.match((await runtime.metrics.read()).find(({ name }) => name === 'taskchart.cluster.refusals')?.values, [
      { value: 0 },
      { value: 0 },
      { value: 0 }
    ])
    await node.open()
    await places.rebalance()
    return runtime
  }
  const reports = () => log.filter(({ message }) => message.startsWith('another node'))
  const refused = async (runtime: ServedRuntime) =>
    t.match(await refusal(runtime.sendMessage(say('x'))), { code: 'Overloaded', message: /cannot be asked now/ })

  await t.test('because it has another secret', async t => {
    const clock = new TestClock()
    const port = await unusedPort()
    const server = await LinkServer.listen(
      { host: '127.0.0.1', port },
      {} as ClusterMember,
      new Shards(2),
      'another secret'
    )
    t.teardown(() => server.close())
    const runtime = await beside(t, `ws://127.0.0.1:${port}`, clock)
    await refused(runtime)
    await refused(runtime)
    t.strictSame(
      reports().map(({ message }) => message),
      ['another node has another secret: its tasks cannot be used through this node']
    )
    t.equal(server.refused, 1, 'it is not asked again at once')
    clock.increment(1000)
    await refused(runtime)
    t.equal(server.refused, 2)
    t.equal(reports().length, 1)
  })
  await t.test('because it is no node', async t => {
    log.splice(0)
    for (const frame of ['hello', 'null', '{"number":{"toString":1}}']) {
      const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
      t.teardown(() => server.close())
      server.on('connection', socket => socket.send(frame))
      await once(server, 'listening')
      await refused(await beside(t, `ws://127.0.0.1:${(server.address() as AddressInfo).port}`, new TestClock()))
    }
    t.match(
      reports().map(({ message }) => message),
      Array.from({ length: 3 }, () => /is no node of this version/)
    )
  })
  await t.test('because it cannot be reached for longer than a node may be silent', async t => {
    log.splice(0)
    const clock = new TestClock()
    const runtime = await beside(t, `ws://127.0.0.1:${await unusedPort()}`, clock)
    const first = refusal(runtime.sendMessage(say('x')))
    let isRefused = false
    void first.then(() => (isRefused = true))
    await until(() => (clock.increment(20), isRefused), 'it is refused')
    t.match(await first, { code: 'Overloaded', message: /cannot be asked now/ })
    clock.increment(1000)
    await refused(runtime)
    t.match(reports(), [{ message: /cannot be reached/ }])
  })
})

await t.test('a node that serves its shards', async t => {
  const shards = new Shards(2)
  shards.add([0])
  let listener: FeedListener | undefined
  let isAway = false
  const ended: unknown[] = []
  const port = await unusedPort()
  const server = await LinkServer.listen(
    { host: '127.0.0.1', port },
    {
      listen(taskId, given) {
        listener = given
        return () => void ended.push(taskId)
      },
      generationOf: async () => (isAway ? Promise.reject(new Error('away')) : 7),
      run: async (name, _, __, signal) =>
        name === 'cancel' ? Promise.reject(NOT_OWNER) : once(signal, 'abort').then(() => ended.push('call')),
      async withhold(_, withheld, erased) {
        withheld()
        ended.push(await erased)
      }
    } satisfies Partial<ClusterMember> as Partial<ClusterMember> as ClusterMember,
    shards,
    'a secret'
  )
  t.teardown(() => server.close())
  const link = new NodeLink(`ws://127.0.0.1:${port}`, 'a secret')
  const heard: unknown[] = []
  const watch = (taskId: string) => link.request({ watch: taskId, shard: 0, scope }, answer => void heard.push(answer))

  await t.test('sends a slow watcher to the store', async t => {
    watch('a~0')
    await until(() => heard.length === 1)
    const event = (generation: number, text: string) =>
      ({ taskId: 'a~0', generation, update: { text } }) as unknown as TaskEvent
    listener?.onEntries([event(8, 'x'.repeat(8 * 1024 * 1024))])
    listener?.onEntries([event(9, ''), { taskId: 'a~0', generation: 10 }])
    listener?.onGap(11)
    listener?.onClosed(undefined)
    await until(() => heard.length === 5)
    t.match(heard, [
      { advanced: 7 },
      { told: [{ generation: 8 }] },
      { advanced: 10 },
      { advanced: 11 },
      { moved: true }
    ])
  })
  await t.test('sends a watcher away while the store fails', async t => {
    isAway = true
    watch('b~0')
    await until(() => ended.length === 1)
    await until(() => heard.length === 6)
    t.match([heard[5], ended], [{ moved: true }, ['b~0']])
    isAway = false
  })
  await t.test('says that it has lost a shard during a call', async t => {
    t.equal(await rejection(link.call({ change: 'cancel', shard: 0, request: {} })), NOT_OWNER)
  })
  await t.test('ends everything when the other node is gone', async t => {
    watch('c~0')
    link.request({ withhold: scope }, answer => void heard.push(answer))
    const lost = rejection(link.call({ change: 'send', shard: 0, request: {} }))
    await until(() => heard.length === 8)
    link.close()
    t.match(await lost, { wasSent: true })
    await until(() => ended.length === 4)
    t.strictSame(new Set(ended.slice(1)), new Set(['c~0', 'call', false]))
  })
})

await t.test('a followed task of a shard that has come here is read again until the store answers', async t => {
  const clock = new TestClock()
  const shards = new Shards(1)
  const advanced: number[] = []
  let reads = 0
  let isAway = true
  const member: Partial<ClusterMember> = {
    async generationOf() {
      reads += 1
      return isAway ? Promise.reject(new Error('away')) : 4
    },
    advance: (_, generation) => void advanced.push(generation)
  }
  const linkTo = (address: string) => new NodeLink(address, '')
  const following = new Following({
    member: member as ClusterMember,
    shards,
    placement: new MemoryPlaces(1).placement(),
    clock,
    linkTo,
    shardOfTask: async () => 0
  })
  const leave = following.follow('x~0', scope)
  shards.add([0])
  following.gained([0])
  isAway = false
  await until(() => {
    clock.increment(50)
    return advanced.length > 0
  })
  t.strictSame([advanced, reads], [[4], 2])
  isAway = true
  following.gained([0])
  leave()
  await new Promise(setImmediate)
  clock.increment(1000)
  t.equal(reads, 3, 'nobody listens any more')
})

await t.test('the listeners of a task read the store while its node cannot be asked', async t => {
  const clock = new TestClock()
  const advanced: number[] = []
  let asked = 0
  let isAway = false
  const member: Partial<ClusterMember> = {
    generationOf: async () => (isAway ? Promise.reject(new Error('away')) : 4),
    advance: (_, generation) => void advanced.push(generation)
  }
  const link: Partial<NodeLink> = {
    fault: 'has another secret',
    request: (_, heard) => {
      asked += 1
      setImmediate(() => heard('unsent'))
      return { stop() {}, sendErased() {} }
    }
  }
  const placement: Partial<Placement> = { ownerOf: () => 'ws://elsewhere' }
  const following = new Following({
    member: member as ClusterMember,
    shards: new Shards(1),
    placement: placement as Placement,
    clock,
    linkTo: () => link as NodeLink,
    shardOfTask: async () => 0
  })
  const leave = following.follow('x~0', scope)
  await until(() => advanced.length === 1)
  isAway = true
  clock.increment(999)
  t.equal(asked, 1, 'not asked again at once')
  clock.increment(1)
  await until(() => asked === 2)
  isAway = false
  clock.increment(1000)
  await until(() => (clock.increment(1000), advanced.length === 2))
  leave()
})

await t.test('a node needs its runtime before it opens', async t => {
  const cluster = testCluster(t, defineAgent({ card, work: asks }))
  const node = new ClusterNode({
    placement: cluster.places.placement(),
    store: memoryStore(),
    address: 'ws://127.0.0.1:1',
    secret: ''
  })
  t.match(await rejection(node.open()), { name: 'TypeError' })
})

await t.test('a cut link', async t => {
  const gate = deferred()
  let asked = 0
  const port = await unusedPort()
  const proxy = await cuttingProxy(port)
  t.teardown(() => proxy.close())
  const cluster = testCluster(
    t,
    defineAgent({
      card,
      negotiate: async ({ message }) => {
        asked += 1
        await gate.promise
        return textOf(message) === 'task' ? accepted({}) : reply('hello')
      },
      work: asks
    })
  )
  await cluster.add({ address: `ws://127.0.0.1:${proxy.port}`, listen: { host: '127.0.0.1', port } })
  const { runtime: front } = await cluster.add({ mayOwn: false })

  await t.test('a call that is aborted ends on the other node too', async t => {
    const abort = new AbortController()
    const aborted = rejection(front.sendMessage(say('w'), { signal: abort.signal }))
    await until(() => asked === 1)
    abort.abort(new Error('gone'))
    t.match(await aborted, { message: 'gone' })
  })
  await t.test('ends a message whose outcome is unknown', async t => {
    const sent = refusal(front.sendMessage(say('x', { contextId: 'c' })))
    const again = front.sendMessage(say('y', { contextId: 'd' }), withGenerations)
    const abort = new AbortController()
    const aborted = rejection(front.sendMessage(say('z'), { signal: abort.signal }))
    await until(() => asked >= 4)
    proxy.cutAll()
    t.match(await sent, { code: 'Overloaded', message: /unknown/ })
    abort.abort(new Error('gone'))
    t.match(await aborted, { name: /Error/ })
    gate.resolve()
    t.match(await again, { message: { parts: [{ text: 'hello' }] } })
  })
  await t.test('interrupts no stream', async t => {
    const opened = taskIn(await front.sendMessage(say('task')))
    const events = collect(front.subscribeToTask({ id: opened.id }))
    await until(async () => {
      proxy.cutAll()
      return (await front.getTask({ id: opened.id })).status.state === 'TASK_STATE_INPUT_REQUIRED'
    })
    const answered = await until(async () =>
      front.sendMessage(say('Monday', { taskId: opened.id })).catch(() => undefined)
    )
    t.equal(taskIn(answered).status.state, 'TASK_STATE_COMPLETED')
    t.equal((await events).length, 4)
  })
})

await t.test(
  'tasks from before the cluster are followed, posted and changed, also when the store fails for a moment',
  async t => {
    const inner = memoryStore()
    let failures = 0
    const store: Store = {
      ...inner,
      readTask: async (...args) => {
        if (args[2]?.within === undefined && failures > 0) throw new TypeError(`failure ${(failures -= 1)}`)
        return inner.readTask(...args)
      }
    }
    const push = receivers()
    const agent = defineAgent({ card, work: asks })
    const before = servedRuntime(createRuntime({ agent, push, store: { ...store, close: async () => {} } }), 'a test')
    const old = taskIn(
      await before.sendMessage(say('x', {}, { taskPushNotificationConfig: { url: 'https://a.example/' } }))
    )
    await until(() => push.heard.length >= 2)
    await before.close()
    const cluster = testCluster(t, agent, { store })
    const one = await cluster.add({ push })
    const { runtime: front } = await cluster.add({ push, mayOwn: false })
    failures = 1
    const events = collect(front.subscribeToTask({ id: old.id }))
    await until(() => failures === 0)
    const eventsHere = collect(one.runtime.subscribeToTask({ id: old.id }))
    failures = 2
    await cluster.places.dies(one.address, { isTold: true, comesBack: true })
    await until(() => failures === 0)
    t.equal(taskIn(await front.sendMessage(say('Monday', { taskId: old.id }))).status.state, 'TASK_STATE_COMPLETED')
    t.equal((await events).length, (await eventsHere).length)
    failures = 1
    t.match(await rejection(front.sendMessage(say('y'))), { code: 'InternalError', cause: { message: 'failure 0' } })
    await until(() => push.heard.some(line => line.includes('completed')))
  }
)

await t.test('a change waits for an owner, and is refused if there is none', async t => {
  const cluster = testCluster(t, defineAgent({ card, work: asks }))
  const clock = new TestClock()
  const { runtime } = await cluster.add({ mayOwn: false, clock })
  let error: { code: string } | undefined
  void refusal(runtime.sendMessage(say('x'))).then(refused => (error = refused))
  await until(() => {
    clock.increment(1000)
    return error
  })
  t.match(error, { code: 'Overloaded', message: /No node/ })
})

await t.test('a change that waits for an owner ends when its node leaves', async t => {
  const cluster = testCluster(t, defineAgent({ card, work: asks }))
  const clock = new TestClock()
  const { runtime } = await cluster.add({ mayOwn: false, clock })
  const error = refusal(runtime.sendMessage(say('x')))
  await until(() => clock.pending > 0)
  await runtime.close()
  t.match(await error, { code: 'Overloaded' })
  t.equal(clock.pending, 0)
})

await t.test('a change that waits for an owner is not forwarded when its node has left', async t => {
  const cluster = testCluster(t, defineAgent({ card, work: asks }))
  const clock = new TestClock()
  const { runtime } = await cluster.add({ mayOwn: false, clock })
  const error = refusal(runtime.sendMessage(say('x')))
  await until(() => clock.pending > 0)
  const owner = await cluster.add()
  await runtime.close()
  t.match(await error, { code: 'Overloaded', message: /No node/ })
  t.equal(clock.pending, 0, 'no connection is opened any more')
  t.equal((await owner.runtime.listTasks({})).totalSize, 0)
})

await t.test('the time that nodes share is that of the database, as exactly as a round trip is short', async t => {
  let ownMs = 1000
  const clock = new SharedClock({ ...steadyClock, now: () => ownMs })
  t.equal(clock.now(), 1000)
  const saw = (theirMs: number, tookMs: number) => {
    ownMs += tookMs
    clock.saw(theirMs, ownMs - tookMs)
    return clock.now() - ownMs
  }
  t.equal(saw(121_000, 0), 120_000, 'two minutes ahead')
  t.equal(saw(121_080, 100), 120_000, 'which may still be so')
  t.equal(saw(121_000, 100), 119_900, 'the clock of the database was set back')
  ownMs += 0.7
  t.equal(clock.now(), 121_100, 'whole milliseconds')
  t.ok(Math.abs(steadyClock.now() - Date.now()) < 60_000)
})

await t.test('a page of wakes is full as long as there are more', async t => {
  const cluster = testCluster(t, defineAgent({ card, work: async ({ sleep }) => sleep(1e9) }), { shards: 4 })
  const [one, two] = [await cluster.add(), await cluster.add()]
  for (let i = 0; i < 12; i += 1)
    await one.runtime.sendMessage(say('x', { contextId: `c${i}` }, { returnImmediately: true }))
  await Promise.all([one.runtime.settled(), two.runtime.settled()])
  const all = await Promise.all([one, two].map(({ node }) => node.store.readWakes(3, { atMs: -1, taskId: '' })))
  const rest = await Promise.all([one, two].map(({ node }) => node.store.readWakes(12, { atMs: -1, taskId: '' })))
  for (const [i, wakes] of all.entries()) t.strictSame(wakes, rest[i]?.slice(0, 3))
  t.equal(rest.flat().length, 12)
})

await t.test('nodes share the shards evenly, in any order of the nodes, and few move when one comes', async t => {
  const nodes = Array.from({ length: 9 }, (_, i) => `ws://10.0.0.${i}:4243`)
  const countsOf = (owners: readonly (string | undefined)[], among: readonly string[]) =>
    among.map(node => owners.filter(owner => owner === node).length)
  for (const shards of [1, 12, 48]) {
    for (let count = 1; count < nodes.length; count += 1) {
      const [before, after] = [nodes.slice(0, count), nodes.slice(0, count + 1)]
      const [owners, then] = [wantedOwners(shards, before), wantedOwners(shards, after)]
      t.strictSame(wantedOwners(shards, before.toReversed()), owners)
      const counts = countsOf(owners, before)
      t.equal(
        counts.reduce((sum, own) => sum + own),
        shards
      )
      t.ok(Math.max(...counts) - Math.min(...counts) <= 1, `${shards} shards on ${count} nodes: ${counts.join()}`)
      const moved = owners.filter((owner, shard) => owner !== then[shard]).length
      t.ok(moved <= 2.5 * Math.ceil(shards / (count + 1)), `${moved} of ${shards} shards move to node ${count + 1}`)
    }
  }
  t.strictSame(wantedOwners(2, []), [undefined, undefined])
})

await t.test('a shard goes only to nodes that may take it, and the others get the rest', async t => {
  const nodes = ['old 1', 'old 2', 'new']
  const isNew = (node: string | undefined) => node === 'new'
  const countOf = (owners: readonly (string | undefined)[]) =>
    nodes.map(node => owners.filter(owner => owner === node).length)
  const few = wantedOwners(12, nodes, (shard, node) => shard >= 4 || isNew(node))
  t.ok(few.slice(0, 4).every(isNew))
  t.strictSame(countOf(few), [4, 4, 4])
  const many = wantedOwners(12, nodes, (shard, node) => shard >= 10 || isNew(node))
  t.ok(many.slice(0, 10).every(isNew), 'more than its part')
  t.equal(countOf(many)[2], 10)
  const half = wantedOwners(12, nodes, (shard, node) => shard < 6 && !isNew(node))
  t.strictSame(
    half.map(owner => owner !== undefined && !isNew(owner)),
    half.map((_, shard) => shard < 6)
  )
  t.strictSame(countOf(wantedOwners(12, nodes, (_, node) => !isNew(node))), [6, 6, 0])
  t.strictSame(
    wantedOwners(2, nodes, () => false),
    [undefined, undefined]
  )
})

await t.test('versions are compared by the numbers at their starts', async t => {
  const sorted = ['f3a1', '0.1', '1', '1.1.9', '2.0', '2.0.1', '2.9', '2.10.0-beta.1']
  for (const [i, one] of sorted.entries())
    for (const [j, other] of sorted.entries()) t.equal(isNewer(one, other), i > j, `${one} and ${other}`)
  for (const [one, other] of [
    ['2', '2.0.0'],
    ['2.0.0', '2'],
    ['1.2-a', '1.2-b'],
    ['v2', 'v1'],
    ['', '']
  ] as const)
    t.notOk(isNewer(one, other), `${one} and ${other}`)
})

await t.test('a shard goes to nodes that know its format, whatever the version of their agent', async t => {
  t.strictSame([formatText(2), '{2,1,7}', '', null, undefined].map(parseFormat), [2, 2, 0, 0, 0])
  const node = (address: string, format: number, takes = true) => ({ address, format, takes })
  const selection = new OwnerSelection()
  t.strictSame(selection.look([node('old', 1), node('front', 2, false)], [1, 2, 0]), ['old', undefined, 'old'])
  const owners = selection.look([node('old', 1), node('new', 2)], [1, 2, 0])
  t.equal(owners[1], 'new')
  t.equal(selection.look([node('new', 2), node('old', 1)], [1, 2, 0]), owners, 'the order of nodes changes nothing')
})

await t.test('while nodes are replaced one after the other, no task goes back to an older version', async t => {
  const opened = gates(4)
  const runs = new Map<string, string[]>()
  const counted = (version: string) =>
    defineAgent({
      card,
      version,
      work: async function* ({ taskId, step }) {
        runs.set(taskId, [...(runs.get(taskId) ?? []), version])
        for (const [i, gate] of opened.entries()) {
          await step(`gate ${i}`, async () => gate.promise)
          yield progress(String(i))
        }
      }
    })
  const cluster = testCluster(t, counted('1'))
  const old = [await cluster.add(), await cluster.add()]
  const { runtime: front } = await cluster.add({ mayOwn: false })
  const tasks = await Promise.all(
    Array.from({ length: 16 }, () => front.sendMessage(say('go', {}, { returnImmediately: true })).then(taskIn))
  )
  const streams = tasks.map(({ id }) => collect(front.subscribeToTask({ id }, withGenerations)))
  for (const [i, { runtime }] of old.entries()) {
    opened[i]?.resolve()
    await cluster.add({ agent: counted('2') })
    await runtime.close()
  }
  for (const gate of opened) gate.resolve()
  for (const events of await Promise.all(streams)) {
    const generations = events.map(event => Number(generationOf(event)))
    t.strictSame(
      generations,
      Array.from(generations, (_, i) => Number(generations[0]) + i)
    )
    t.match(events.at(-1), { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } })
  }
  for (const versions of runs.values()) t.strictSame(versions, versions.toSorted())
  t.ok([...runs.values()].some(versions => versions.includes('2')))
})

/** An agent of a version that asks, and says its version with the answer. */
const versioned = (version: string, earlier: readonly string[] = []) => {
  const workOf =
    (version: string): WorkFunction =>
    async ({ ask }) => ({ artifact: `${version}: ${textOf(await ask(inputRequired(`Version ${version}?`)))}` })
  return defineAgent({
    card,
    version,
    work: workOf(version),
    ...(earlier.length > 0 && { earlier: Object.fromEntries(earlier.map(other => [other, workOf(other)])) })
  })
}

await t.test('a node leaves the tasks of a newer version in the store, untouched', async t => {
  const cluster = testCluster(t, versioned('1'))
  const { runtime: front } = await cluster.add({ mayOwn: false })
  const newer = await cluster.add({ agent: versioned('2') })
  const [one, two] = [taskIn(await front.sendMessage(say('go'))), taskIn(await front.sendMessage(say('go')))]
  const stored = async () =>
    Promise.all(
      [one, two].map(async ({ id, contextId = '' }) => [
        await cluster.store.readSnapshot(scope, id),
        await cluster.store.readEvents(scope, id, 0, 100),
        (await cluster.store.loadContext({ ...scope, contextId }))?.tasks
      ])
    )
  const before = await stored()
  await newer.runtime.close()
  const old = await cluster.add()
  await rest()
  const refused = { code: 'Overloaded', metadata: { taskId: one.id, version: '2' } }
  for (const runtime of [front, old.runtime]) {
    t.match(await rejection(runtime.sendMessage(say('x', { taskId: one.id }))), {
      ...refused,
      message: `Task ${one.id} was opened by version 2 of this agent, and version 1 has it now. Send the request again later.`
    })
    t.match(await rejection(runtime.cancelTask({ id: one.id })), refused)
    t.match(await rejection(runtime.authorized(one.id, {}, {})), refused)
    t.equal(textOf((await runtime.getTask({ id: one.id })).status.message), 'Version 2?', 'it can be read')
  }
  t.match(await rejection(front.sendMessage(say('x', { taskId: two.id }))), { code: 'Overloaded' })
  const own = taskIn(await front.sendMessage(say('go', { contextId: one.contextId ?? '' })))
  t.equal(textOf(own.status.message), 'Version 1?', 'a new task of the same context runs the work of the node')
  t.strictSame(
    (await stored()).map(([snapshot, events]) => [snapshot, events]),
    before.map(([snapshot, events]) => [snapshot, events])
  )
  const lines = cluster.log.filter(({ message }) => message.startsWith('tasks stay stored'))
  t.match(lines, [{ level: 'warn', details: { version: '2', present: '1' } }])
  t.equal(lines.length, 1, 'one line for the version')
  const [metric] = (await old.runtime.metrics.read()).filter(({ name }) => name === 'taskchart.tasks.newer_version')
  t.strictSame(
    metric?.values.map(({ value }) => value),
    [2]
  )
  await cluster.add({ agent: versioned('2', ['1']) })
  await old.runtime.close()
  for (const { id } of [one, two, own]) await front.sendMessage(say('x', { taskId: id }))
  const ended = await Promise.all([one, two, own].map(({ id }) => reaches(front, id, 'completed')))
  t.strictSame(
    ended.map(({ artifacts }) => artifacts?.map(textOf)),
    [['2: x'], ['2: x'], ['1: x']]
  )
})

await t.test('a node goes on with the tasks of a newer version that it has among the others', async t => {
  const cluster = testCluster(t, versioned('1', ['2']))
  const newer = await cluster.add({ agent: versioned('2') })
  const task = taskIn(await newer.runtime.sendMessage(say('go')))
  await newer.runtime.close()
  const { runtime } = await cluster.add()
  await runtime.sendMessage(say('x', { taskId: task.id }))
  t.strictSame((await reaches(runtime, task.id, 'completed')).artifacts?.map(textOf), ['2: x'])
})

await t.test('the metrics of a node tell its shards, their moves, and what it forwarded', async t => {
  const cluster = testCluster(t, defineAgent({ card, work: echo }))
  const one = await cluster.add()
  const front = await cluster.add({ mayOwn: false })
  const read = async ({ runtime }: TestNode) => {
    const metrics = await runtime.metrics.read()
    return Object.fromEntries(
      metrics
        .filter(({ name }) => name.startsWith('taskchart.cluster.'))
        .map(({ name, values }) => [name.slice('taskchart.cluster.'.length), values.map(({ value }) => value).join()])
    )
  }
  await front.runtime.sendMessage(say('x'))
  t.strictSame(await read(front), {
    nodes: '2',
    shards: '0',
    'shard.moves': '0,0,0',
    refusals: '0,0,0',
    forwarded: '1'
  })
  t.strictSame(await read(one), { nodes: '2', shards: '8', 'shard.moves': '8,0,0', refusals: '0,0,0', forwarded: '0' })
  const two = await cluster.add()
  t.strictSame(await read(one), { nodes: '3', shards: '4', 'shard.moves': '8,4,0', refusals: '0,0,0', forwarded: '0' })
  await cluster.places.dies(two.address, { isTold: true })
  t.match(await read(two), { shards: '0', 'shard.moves': '4,0,4' })
})
