import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { newestMoves, wayOf } from '../../../adapters/cluster/status.ts'
import type { FromHub } from '../../../adapters/inspector/feed.ts'
import { inspect } from '../../../adapters/inspector/index.ts'
import { seenNodes } from '../../../adapters/inspector/nodes-seen.ts'
import { serve } from '../../../adapters/serve/serve.ts'
import type { ObservedCluster } from '../../../runtime/ports/cluster-status.ts'
import { testCluster } from '../../fixtures/cluster/cluster-nodes.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { say, taskIn, textOf, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { defineAgent, inputRequired } from '../../../runtime/index.ts'

const tenures = [
  { epoch: 1, owner: undefined, sinceMs: 10 },
  { epoch: 2, owner: 'a', sinceMs: 20 },
  { epoch: 3, owner: 'b', sinceMs: 30 }
]

await t.test("a task's way is the owners of its shard while it lived", async t => {
  t.strictSame(wayOf(tenures, 25, 40), [
    { owner: 'a', epoch: 2, fromMs: 25, untilMs: 30 },
    { owner: 'b', epoch: 3, fromMs: 30, untilMs: 40 }
  ])
  t.strictSame(wayOf(tenures, 5, 15), [{ owner: undefined, epoch: 1, fromMs: 10, untilMs: 15 }])
  t.strictSame(wayOf(tenures, 35), [{ owner: 'b', epoch: 3, fromMs: 35, untilMs: undefined }])
  t.strictSame(
    wayOf(tenures, 20, 20),
    [{ owner: 'a', epoch: 2, fromMs: 20, untilMs: 21 }],
    'a task that lasted less than a millisecond'
  )
  t.strictSame(wayOf([], 35), [])
})

await t.test('the newest moves come first, and a first owner is no move', async t => {
  const status = (shard: number, from: number) => ({ shard, epoch: 3, owner: 'b', tenures: tenures.slice(from) })
  t.strictSame(newestMoves([status(1, 1), status(0, 0), status(2, 2)], 2), [
    { shard: 0, epoch: 3, from: 'a', to: 'b', atMs: 30 },
    { shard: 1, epoch: 3, from: 'a', to: 'b', atMs: 30 }
  ])
})

await t.test('a node shows the nodes of its cluster, and the way of a task', async t => {
  const cluster = testCluster(t, defineAgent({ card: { name: 'Test' }, version: '2', work: echo }))
  const one = await cluster.add()
  const { observe } = one.runtime
  const task = taskIn(await one.runtime.sendMessage(say('x')))
  await cluster.add()
  await cluster.add({ mayOwn: false })
  const { cluster: observed, stop } = observe({})
  stop()
  const key = { tenant: '', principal: 'anonymous', contextId: task.contextId ?? '' }
  const seen = await seenNodes(observed as ObservedCluster, {
    taskId: task.id,
    key,
    openedMs: Date.now(),
    endedMs: undefined
  })
  t.strictSame(
    [seen.self, seen.nodes.map(({ shards }) => shards.length), seen.free, seen.moves.length],
    [one.address, [4, 4, 0], [], 4]
  )
  t.match(seen.nodes[0], {
    address: one.address,
    state: 'alive',
    takesShards: true,
    agent: '2',
    process: `${process.pid} on test`
  })
  t.equal(seen.way?.shard, Number(task.id.split('~')[1]))
  t.equal(seen.way?.stays.at(-1)?.owner, cluster.places.placement({}).ownerOf(Number(seen.way?.shard)))
  t.equal((await seenNodes(observed as ObservedCluster, undefined)).way, undefined)
})

await t.test('a page of a node gets the nodes on request, or why they cannot be read', async t => {
  const cluster = testCluster(
    t,
    defineAgent({
      card: { name: 'Test' },
      work: async ({ message, ask }) => ({
        artifact: textOf(message) === 'ends' ? 'x' : (textOf(await ask(inputRequired('Go on?'))) ?? '')
      })
    })
  )
  const { runtime } = await cluster.add()
  const served = await serve(runtime, { port: 0, inspector: inspect({ token: 'a-token' }) })
  t.teardown(() => served.close())
  const socket = new WebSocket(`${served.url.replace('http', 'ws')}inspector/feed?token=a-token`)
  t.teardown(() => socket.terminate())
  const frames: FromHub[] = []
  socket.on('message', (data: Buffer) => frames.push(JSON.parse(data.toString()) as FromHub))
  await once(socket, 'open')
  const next = async (type: FromHub['type']) => {
    const frame = await until(() => frames.find(one => one.type === type), type)
    frames.splice(frames.indexOf(frame), 1)
    return frame
  }
  t.match(await next('hello'), { isNode: true })
  const live = taskIn(await runtime.sendMessage(say('x')))
  const ended = taskIn(await runtime.sendMessage(say('ends')))
  for (const { id } of [live, ended]) {
    socket.send(JSON.stringify({ type: 'nodes', taskId: id }))
    t.match(await next('nodes'), {
      seen: { way: { taskId: id, shard: Number(id.split('~')[1]), stays: [{ epoch: 1 }] } }
    })
  }
  socket.send(JSON.stringify({ type: 'nodes' }))
  t.notOk('way' in Object(((await next('nodes')) as { seen?: object }).seen))
  cluster.places.isAway = true
  socket.send(JSON.stringify({ type: 'nodes' }))
  t.match(await next('nodes'), { error: 'The places are away.' })
})
