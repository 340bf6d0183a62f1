import t from 'tap'
import { defineAgent } from '../../../runtime/index.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { Store } from '../../../runtime/store/store.ts'
import { testCluster, type TestCluster, type TestNode } from '../../fixtures/cluster/cluster-nodes.ts'
import { receivers } from '../../fixtures/runtime/receiver.ts'
import { deferred, rest, say, taskIn, until } from '../../fixtures/runtime/runtime-helpers.ts'

const card = { name: 'Test' }

/** Works until the test ends. */
const endless = defineAgent({
  card,
  work: async ({ signal }) => new Promise(resolve => signal.addEventListener('abort', () => resolve({})))
})

type Options = Parameters<TestCluster['add']>[0]

/** Adds nodes one after the other. Call it again for more. */
async function nodesOf(cluster: TestCluster, count: number, options: Options = {}): Promise<TestNode[]> {
  const nodes: TestNode[] = []
  for (let i = 0; i < count; i += 1) nodes.push(await cluster.add(options))
  return nodes
}

/** A context of each shard of a node, several times. */
function contextsOf({ node: { shards } }: TestNode, count: number): string[] {
  const { owned } = shards
  return Array.from({ length: count }, (_, i) => shards.idIn(owned[i % owned.length] ?? 0))
}

const opened = (sent: readonly PromiseSettledResult<unknown>[]) =>
  sent.filter(({ status }) => status === 'fulfilled').length

await t.test(
  'each node opens at most one task over the quota of open tasks, although all of them count at the same moment',
  async t => {
    for (const count of [1, 2, 4]) {
      const inner = memoryStore()
      const store: Store = {
        ...inner,
        countOpen: async whose => {
          const open = await inner.countOpen(whose)
          await rest()
          return open
        }
      }
      const nodes = await nodesOf(testCluster(t, endless, { store }), count, {
        limits: { perPrincipal: { openTasks: 5 } }
      })
      const sent = await Promise.allSettled(
        Array.from({ length: 12 * count }, (_, i) =>
          (nodes[i % count] as TestNode).runtime.sendMessage(say('x', {}, { returnImmediately: true }))
        )
      )
      const open = await inner.countOpen({ tenant: '', principal: 'anonymous' })
      t.ok(open >= 5 && open <= 5 + count, `${open} open tasks on ${count} nodes`)
      t.equal(opened(sent), open)
      for (const outcome of sent)
        if (outcome.status === 'rejected')
          t.match(outcome.reason, { code: 'RateLimited', metadata: { quota: 'perPrincipal.openTasks' } })
    }
  }
)

await t.test(
  'a node has at most liveContexts contexts, whatever shards they are in, and another node as many',
  async t => {
    const cluster = testCluster(t, endless)
    const nodes = await nodesOf(cluster, 2, { limits: { liveContexts: 5, advanced: { principalShare: 1 } } })
    for (const each of nodes) {
      t.equal(each.node.shards.owned.length, 4)
      const sent: PromiseSettledResult<unknown>[] = []
      for (const contextId of contextsOf(each, 12))
        sent.push(
          ...(await Promise.allSettled([
            each.runtime.sendMessage(say('x', { contextId }, { returnImmediately: true }))
          ]))
        )
      t.equal(opened(sent), 5)
      for (const outcome of sent) if (outcome.status === 'rejected') t.match(outcome.reason, { code: 'Overloaded' })
    }
  }
)

await t.test(
  'a quiet caller has its turn before most calls of a noisy one whose tasks are in all shards of the node',
  async t => {
    const cluster = testCluster(t, defineAgent({ card, work: () => ({}) }))
    const [one] = (await nodesOf(cluster, 1, { authenticate: () => ({ id: 'anybody' }) })) as [TestNode]
    const [front] = (await nodesOf(cluster, 1, { authenticate: () => ({ id: 'anybody' }), mayOwn: false })) as [
      TestNode
    ]
    for (const { runtime } of [one, front]) {
      const ends: string[] = []
      const call = (principal: string, contextId: string) =>
        runtime.sendMessage(say('x', { contextId }), { principal }).then(() => void ends.push(principal))
      const calls = contextsOf(one, 200).map(contextId => call('noisy', contextId))
      calls.push(call('quiet', 'mine'))
      await Promise.all(calls)
      t.ok(ends.indexOf('quiet') < 64, `it was number ${ends.indexOf('quiet')}`)
    }
  }
)

await t.test(
  'a node posts at most webhooksAtOnce webhooks at once, whatever shards their tasks are in, and another node as many',
  async t => {
    const cluster = testCluster(t, endless)
    const answered = deferred()
    const limits = { advanced: { webhooksAtOnce: 3, principalShare: 1 } }
    const pushing = [receivers(), receivers()]
    const nodes: TestNode[] = []
    for (const push of pushing) {
      push.answer = () => answered.promise.then(() => ({ status: 200 }))
      nodes.push(await cluster.add({ push, limits }))
    }
    for (const each of nodes) {
      for (const [i, contextId] of contextsOf(each, 8).entries()) {
        t.ok(
          taskIn(
            await each.runtime.sendMessage(
              say(
                'x',
                { contextId },
                { returnImmediately: true, taskPushNotificationConfig: { url: `https://host-${i}.example/` } }
              )
            )
          )
        )
      }
    }
    await rest()
    t.strictSame(
      pushing.map(({ posts }) => posts.length),
      [3, 3]
    )
    answered.resolve()
    await until(() => pushing.every(({ heard }) => heard.length >= 16))
  }
)
