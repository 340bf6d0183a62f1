import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { webSocket } from '../conformance/bindings/websocket.ts'
import { PARTS } from '../conformance/rows.ts'
import { run } from '../conformance/run.ts'
import { spawnBare } from '../fixtures/processes/bare-process.ts'
import { IS_WHOLE, sampleOf } from '../fixtures/sample.ts'

/** Test files whose agents are served by a node without shards, each with its tests that look at one process. */
const SUITES: readonly [file: string, ...exceptions: readonly string[]][] = [
  ['conformance/conformance'],
  ['adapters/a2a-sdk/official-clients'],
  ['adapters/websocket/websocket-bad-input'],
  ['adapters/http/http-bad-input'],
  ['adapters/json-rpc/json-rpc'],
  ['adapters/websocket/websocket'],
  ['adapters/http/http'],
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
  // It counts reads of the store.
  [
    'scenarios/large-answers',
    'a response is made of the events that were waited for, unless they are large or another message reached the task'
  ],
  ['adapters/push/push'],
  // The caller's node reads what the owner tells, and the store fails; it leaves its cluster before it closes.
  [
    'runtime/webhooks/push',
    'nothing is lost while the store fails, and reads and writes are retried',
    'a closing runtime ignores progress of deleted webhooks and unreadable ones'
  ],
  ['examples/transcripts'],
  ['adapters/legacy/legacy-01-servers'],
  ['adapters/a2a-sdk/a2a-sdk-servers'],
  ['adapters/a2a-sdk/executor'],
  ['adapters/auth/auth'],
  ['adapters/websocket/websocket-frames'],
  // It counts parsed frames, and those between the nodes are parsed too.
  ['adapters/entry/reading', 'one large message is parsed per round of the event loop, over all connections'],
  ['adapters/client/client-peers'],
  ['adapters/ai/ai'],
  ['scenarios/durable'],
  ['scenarios/next-version'],
  // They compare two runtimes, and the ids of a cluster are random.
  [
    'scenarios/next-version-timeline',
    'a task in a file has the same timeline as one in memory',
    'every answer of 1.0 is byte for byte the same beside 1.1, over every binding'
  ],
  // It counts reads of the store.
  ['runtime/access/authorize', 'an authorize that times out refuses all requests with Overloaded, and nothing is read'],
  // They count reads of the store, and close a runtime between two calls.
  ['runtime/access/tenants', 'quotas', 'turns'],
  ['runtime/access/shares'],
  ['runtime/agent/extensions'],
  ['runtime/authoring/request-details'],
  ['runtime/negotiation/negotiation'],
  ['runtime/operations/list-tasks'],
  ['runtime/operations/message-policies'],
  // The message of a caller that has gone before is not forwarded.
  ['runtime/operations/messages', 'a call with an aborted signal rejects, and its message still counts'],
  ['runtime/streams/streams'],
  ['runtime/streams/reliability'],
  ['runtime/commits/deadlines'],
  ['runtime/commits/delayed-events'],
  ['runtime/work/prerequisites'],
  ['runtime/work/references'],
  ['adapters/delegation/delegation'],
  ['adapters/delegation/delegation-again'],
  ['adapters/delegation/delegation-others']
]

/** Those that a deep run takes, and `npm test` some of: about a second of CPU time each. */
const QUICK: readonly string[] = [
  'adapters/push/push',
  'adapters/legacy/legacy-01-servers',
  'runtime/agent/extensions',
  'runtime/operations/message-policies',
  'runtime/negotiation/negotiation'
]

/** So many characters are shown of a failure. */
const DETAILS = 4000

const sampled = IS_WHOLE ? SUITES.map(([file]) => file) : sampleOf(t, QUICK, 2)

await t.test('requirements of A2A hold for a node without shards', async t => {
  process.env.BEHIND = 'node'
  t.teardown(() => void delete process.env.BEHIND)
  const results = await run(
    t,
    [webSocket],
    sampleOf(
      t,
      Object.values(PARTS)
        .flat()
        .filter(({ atLast }) => !atLast),
      24,
      60
    )
  )
  t.notOk(
    [...results.values()].some(cells =>
      [...cells.values()].some(({ outcome, reason }) => outcome === 'fail' && reason === undefined)
    )
  )
})

for (const [file, ...exceptions] of SUITES) {
  const path = fileURLToPath(new URL(`../${file}.test.js`, import.meta.url))
  await t.test(`${file} passes behind a node without shards`, async t => {
    if (!sampled.includes(file)) {
      t.ok(existsSync(path))
      return
    }
    const { code, failed, details } = await outcomeOf(path)
    t.strictSame(failed, exceptions, 'the tests that fail', { details })
    t.equal(code === 0, exceptions.length === 0)
  })
}

/** Runs a test file behind a node. Gives the names of its tests that fail, and what the first says. */
function outcomeOf(path: string): Promise<{ code: number | null; failed: string[]; details: string }> {
  const child = spawnBare([path], { env: { BEHIND: 'node', TAP_TIMEOUT: '900' }, stdio: ['ignore', 'pipe', 'ignore'] })
  let text = ''
  child.stdout?.setEncoding('utf8').on('data', (part: string) => (text += part))
  return new Promise(resolve =>
    child.on('close', code =>
      resolve({
        code,
        details: text.slice(text.search(/^ +not ok/m)).slice(0, DETAILS),
        failed: [...text.matchAll(/^not ok \d+ - (.*?)(?: # time=.*)?$/gm)].map(([, name = '']) => name)
      })
    )
  )
}
