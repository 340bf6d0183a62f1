import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { webSocket } from '../conformance/bindings/websocket.ts'
import { PARTS } from '../conformance/rows.ts'
import { run } from '../conformance/run.ts'
import { IS_DEEP, sampleOf } from '../fixtures/sample.ts'

/** Test files whose agents are served by a node without shards, each with its tests that look at one process. */
const SUITES: readonly [file: string, ...exceptions: readonly string[]][] = [
  ['conformance/conformance'],
  ['adapters/a2a-sdk/official-clients'],
  ['adapters/websocket/websocket-bad-input'],
  ['adapters/http/http-bad-input'],
  ['adapters/json-rpc/json-rpc'],
  ['adapters/websocket/websocket'],
  // It counts reads of the store.
  ['adapters/http/http', 'pipelined requests are answered in order, as fast as their client reads'],
  ['adapters/grpc/grpc'],
  ['adapters/client/transports/websocket-reconnect'],
  ['adapters/client/retries/client-retries'],
  ['adapters/v03/client-03'],
  ['adapters/legacy/legacy'],
  ['adapters/legacy/legacy-servers'],
  // A read of its own is the moment of a cancellation.
  ['adapters/legacy/legacy-01', 'a message for a task that ends meanwhile opens another one'],
  ['scenarios/tenants'],
  ['adapters/entry/strays'],
  ['adapters/entry/refusals'],
  ['scenarios/large-answers'],
  ['adapters/delegation/delegation-again'],
  ['adapters/delegation/delegation-others']
]

await t.test('requirements of A2A hold for a node without shards', async t => {
  process.env.BEHIND = 'node'
  t.teardown(() => void delete process.env.BEHIND)
  const results = await run(t, [webSocket], sampleOf(t, Object.values(PARTS).flat().filter(({ atLast }) => !atLast), 24))
  t.notOk([...results.values()].some(cells => [...cells.values()].some(({ outcome, reason }) => outcome === 'fail' && reason === undefined)))
})

for (const [file, ...exceptions] of SUITES) {
  const path = fileURLToPath(new URL(`../${file}.test.js`, import.meta.url))
  await t.test(`${file} passes behind a node without shards`, async t => {
    if (!IS_DEEP) {
      t.ok(existsSync(path))
      return
    }
    const { code, failed } = await outcomeOf(path)
    t.strictSame(failed, exceptions)
    t.equal(code === 0, exceptions.length === 0)
  })
}

/** Runs a test file behind a node. Gives the names of its tests that fail. */
function outcomeOf(path: string): Promise<{ code: number | null; failed: string[] }> {
  const child = spawn(process.execPath, [path], { env: { ...process.env, BEHIND: 'node', DEEP: '', TAP_TIMEOUT: '900' }, stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part))
  return new Promise(resolve => child.on('close', code => resolve({ code, failed: [...text.matchAll(/^not ok \d+ - (.*?)(?: # time=.*)?$/gm)].map(([, name = '']) => name) })))
}
