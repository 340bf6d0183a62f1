import t, { type Test } from 'tap'
import { mcpHandler } from '../../../adapters/mcp/index.ts'
import { defineAgent } from '../../../runtime/index.ts'
import { testCluster } from '../../fixtures/cluster/cluster-nodes.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'
import { mcpPeer, openedTask, questionIn, textsIn, type McpPeer } from '../../fixtures/peers/mcp-peer.ts'
import { servedProcess } from '../../fixtures/processes/served-process.ts'
import { until } from '../../fixtures/runtime/runtime-helpers.ts'
import { sized } from '../../fixtures/servers/mcp-agent.ts'
import { NO_POSTGRES, PostgresServer } from '../../fixtures/stores/postgres.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'

const AGENT = `import { defineAgent, inputRequired } from 'taskchart'
import { z } from 'zod'
const schema = z.object({ size: z.enum(['small', 'large']) })
export default defineAgent({
  card: { name: 'Barista', skills: [{ id: 'coffee', name: 'Coffee', description: 'Makes coffee.', tags: [] }] },
  work: async ({ ask }) => ({ artifact: 'One ' + (await ask(inputRequired('Which size?', { schema }))).size })
})`

const peerOf = (url: string): McpPeer =>
  mcpPeer(request => fetch(request as Request), { address: url, tasks: true, form: true })

const answerWith = (taskId: string, key: string, size: string) => ({
  taskId,
  inputResponses: { [key]: { action: 'accept', content: { size } } }
})

async function asks(peer: McpPeer, taskId: string): Promise<string> {
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'input_required')
  return questionIn(await peer.rpc('tasks/get', { taskId })).key
}

/** Kills the server at each moment of a task's life, and goes on with the next process. */
async function survive(t: Test, cwd: string, db: string): Promise<void> {
  const port = await unusedPort()
  const first = await servedProcess(t, 'mcp', cwd, db, port)
  const peer = peerOf(first.url)
  const taskId = openedTask(await peer.call('coffee'))
  const before = await peer.rpc('tasks/get', { taskId })
  await first.kill()

  const second = await servedProcess(t, 'mcp', cwd, db, port)
  const known = await peer.rpc('tasks/get', { taskId })
  t.equal(known.result['createdAt'], before.result['createdAt'], 'the handle of before the kill is known')
  const key = await asks(peer, taskId)
  await second.kill()

  const third = await servedProcess(t, 'mcp', cwd, db, port)
  t.equal(await asks(peer, taskId), key, 'the question has the same key')
  t.match((await peer.rpc('tasks/update', answerWith(taskId, key, 'huge'))).result, { resultType: 'complete' })
  await third.kill()

  const fourth = await servedProcess(t, 'mcp', cwd, db, port)
  t.equal(await asks(peer, taskId), `${key}.2`, 'a refused answer is not forgotten')
  const given = peer.rpc('tasks/update', answerWith(taskId, `${key}.2`, 'large')).catch(() => undefined)
  await Promise.race([given, new Promise(done => setImmediate(done))])
  await fourth.kill()
  const acknowledged = (await given) !== undefined

  await servedProcess(t, 'mcp', cwd, db, port)
  const after = await peer.rpc('tasks/get', { taskId })
  if (!acknowledged && after.result['status'] === 'input_required')
    await peer.rpc('tasks/update', answerWith(taskId, `${key}.2`, 'large'))
  await until(async () => (await peer.rpc('tasks/get', { taskId })).result['status'] === 'completed')
  const { result } = await peer.rpc('tasks/get', { taskId })
  t.match(textsIn({ result: result['result'] as Record<string, unknown> }), ['One large', /state: completed/])
}

await t.test('a host goes on with its tasks after each kill of the server, in a file', { skip: NO_SQLITE }, async t => {
  await survive(t, t.testdir({ 'agent.mjs': AGENT }), 'tasks.db')
})

await t.test(
  'a host goes on with its tasks after each kill of the server, in PostgreSQL',
  { skip: NO_POSTGRES },
  async t => {
    const server = await PostgresServer.start()
    t.teardown(() => server.stop())
    await survive(t, t.testdir({ 'agent.mjs': AGENT }), server.url())
  }
)

await t.test('a host polls one node of a cluster and answers another, with the same keys', async t => {
  const agent = defineAgent({
    card: { name: 'Barista', skills: [{ id: 'coffee', name: 'Coffee', description: '', tags: [] }] },
    work: sized
  })
  const cluster = testCluster(t, agent)
  const nodes = [await cluster.add(), await cluster.add(), await cluster.add()]
  const peers = nodes.map(({ runtime }) => mcpPeer(mcpHandler(runtime), { tasks: true, form: true }))
  const [one, two, three] = peers as [McpPeer, McpPeer, McpPeer]
  for (const [opens, answers, polls] of [
    [one, two, three],
    [two, three, one],
    [three, one, two]
  ] as const) {
    const taskId = openedTask(await opens.call('coffee'))
    const key = await asks(polls, taskId)
    await answers.rpc('tasks/update', answerWith(taskId, key, 'huge'))
    t.equal(await asks(polls, taskId), `${key}.2`)
    t.equal(await asks(opens, taskId), `${key}.2`)
    await polls.rpc('tasks/update', answerWith(taskId, `${key}.2`, 'small'))
    await until(async () => (await answers.rpc('tasks/get', { taskId })).result['status'] === 'completed')
  }
  const forms = nodes.map(({ runtime }) => mcpPeer(mcpHandler(runtime), { form: true }))
  const [first, second] = forms as [McpPeer, McpPeer]
  const asked = await first.call('coffee')
  const { key } = questionIn(asked)
  const done = await second.call('coffee', undefined, {
    requestState: asked.result['requestState'],
    inputResponses: { [key]: { action: 'accept', content: { size: 'large' } } }
  })
  t.match(textsIn(done), ['One large coffee.', /completed/], 'the state of one node opens on another')
})
