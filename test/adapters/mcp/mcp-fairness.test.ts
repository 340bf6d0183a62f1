import t from 'tap'
import { httpHandler } from '../../../adapters/http/handler.ts'
import { mcpHandler } from '../../../adapters/mcp/index.ts'
import { mcpPeer, openedTask } from '../../fixtures/peers/mcp-peer.ts'
import { start } from '../../fixtures/runtime/runtime-helpers.ts'
import { sized } from '../../fixtures/servers/mcp-agent.ts'

const POLLS = 200

/** Polls that are answered while one call of another caller is: two for each round of the event loop that it takes. */
const MOST_BESIDE = 8

await t.test('a caller that polls as fast as it can delays the call of another by a few of its polls', async t => {
  const authenticate = ({ headers }: { readonly headers: Readonly<Record<string, string | undefined>> }) => ({
    id: String(headers['x-principal'])
  })
  const { runtime } = start(t, { card: { name: 'Barista' }, work: sized }, { authenticate })
  const poller = mcpPeer(mcpHandler(runtime), { tasks: true, form: true, headers: { 'x-principal': 'poller' } })
  const handler = httpHandler(runtime)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: 'unknown' } })
  const headers = { 'Content-Type': 'application/json', 'A2A-Version': '1.0', 'x-principal': 'quiet' }
  const ask = async () =>
    (await handler(new Request('http://127.0.0.1:4242/', { method: 'POST', headers, body }))).json()
  const taskId = openedTask(await poller.call('Barista'))
  const answered: unknown[] = []
  const polls = Array.from({ length: POLLS }, () =>
    poller.rpc('tasks/get', { taskId }).then(({ result }) => answered.push(result['status']))
  )
  // From the second call on it is known that several callers share the server.
  await ask()
  const beside: number[] = []
  while (answered.length < POLLS) {
    const before = answered.length
    t.match(await ask(), { error: { code: -32001 } })
    beside.push(answered.length - before)
  }
  t.ok(Math.max(...beside) <= MOST_BESIDE, `at most ${Math.max(...beside)} polls beside a call`)
  await Promise.all(polls)
  t.ok(answered.every(status => status === 'input_required'))
})
