import t, { type Test } from 'tap'
import { agUiHandler } from '../../../adapters/ag-ui/index.ts'
import { defineAgent } from '../../../runtime/index.ts'
import { testCluster } from '../../fixtures/cluster/cluster-nodes.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'
import { AG_UI_CLIENTS, openThread, textsOf } from '../../fixtures/peers/ag-ui-clients.ts'
import { servedProcess } from '../../fixtures/processes/served-process.ts'
import { until } from '../../fixtures/runtime/runtime-helpers.ts'
import { sized } from '../../fixtures/servers/mcp-agent.ts'
import { NO_POSTGRES, PostgresServer } from '../../fixtures/stores/postgres.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'

const AGENT = `import { artifact, defineAgent, inputRequired, text } from 'taskchart'
import { z } from 'zod'
const schema = z.object({ size: z.enum(['small', 'large']) })
export default defineAgent({
  card: { name: 'Barista' },
  async *work({ sleep }) {
    const { size } = yield* inputRequired('Which size?', { schema })
    yield artifact({ artifactId: 'cup', parts: [text('One ')] })
    await sleep(1500)
    yield artifact({ artifactId: 'cup', parts: [text(size + ' coffee.')] }, { append: true, lastChunk: true })
  }
})`

/** Kills the server between a question and its answer, and while a run streams; a page goes on with each next process. */
async function survive(t: Test, cwd: string, db: string): Promise<void> {
  const port = await unusedPort()
  for (const client of AG_UI_CLIENTS) {
    const first = await servedProcess(t, 'agui', cwd, db, port)
    const page = openThread(client, undefined, { url: first.url })
    await page.say('a coffee')
    t.match(page.interrupts, [{ message: 'Which size?' }], `${client}: the question`)
    const interruptId = page.interrupts[0]?.id ?? ''
    await first.kill()

    const second = await servedProcess(t, 'agui', cwd, db, port)
    await page.answer({ size: 'huge' })
    t.match(page.interrupts, [{ id: interruptId, message: /^Not accepted/ }], 'the same question after a kill')
    const streaming = page.answer({ size: 'large' })
    // The run begins before the first text or after it: then it is in the state, and a message with the next text.
    await until(() => JSON.stringify(page.state.task?.['artifacts'] ?? []).includes('One '))
    await second.kill()
    t.notOk(
      (await streaming).events.some(({ type }) => type === 'RUN_FINISHED'),
      'the run is lost'
    )

    const third = await servedProcess(t, 'agui', cwd, db, port)
    await page.run({ resume: [{ interruptId, status: 'resolved', payload: { size: 'large' } }] })
    t.match(textsOf(page), ['One large coffee.'], 'the page that kept its messages gets the rest')
    const threadId = String(page.state.task?.['contextId'])
    const other = openThread(client, undefined, { url: third.url, threadId })
    await other.run({ resume: [{ interruptId, status: 'resolved', payload: { size: 'small' } }] })
    t.strictSame(other.state.task, page.state.task, 'a late answer changes nothing')
    t.match(other.state.task, { status: { state: 'TASK_STATE_COMPLETED' } })
    await third.kill()
  }
}

await t.test('a page goes on after each kill of the server, in a file', { skip: NO_SQLITE }, async t => {
  await survive(t, t.testdir({ 'agent.mjs': AGENT }), 'tasks.db')
})

await t.test('a page goes on after each kill of the server, in PostgreSQL', { skip: NO_POSTGRES }, async t => {
  const server = await PostgresServer.start()
  t.teardown(() => server.stop())
  await survive(t, t.testdir({ 'agent.mjs': AGENT }), server.url())
})

await t.test('a question that one node of a cluster asked is answered on another', async t => {
  const cluster = testCluster(t, defineAgent({ card: { name: 'Barista' }, work: sized }))
  const nodes = [await cluster.add(), await cluster.add()]
  const [one, two] = nodes.map(({ runtime }) => agUiHandler(runtime))
  for (const [asks, answers] of [
    [one, two],
    [two, one]
  ] as const) {
    const page = openThread('AG-UI 1.0', asks)
    await page.say('a coffee')
    const [asked] = page.interrupts
    const other = openThread('AG-UI 1.0', answers, { threadId: String(page.state.task?.['contextId']) })
    await other.run({ resume: [{ interruptId: asked?.id ?? '', status: 'resolved', payload: { size: 'small' } }] })
    t.strictSame(textsOf(other), ['One small coffee.'])
  }
})
