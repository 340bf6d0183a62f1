import t from 'tap'
import { REQUIREMENTS } from '../../../../adapters/conformance/requirements/requirements.ts'
import { faultyServer } from '../../../fixtures/servers/faulty-server.ts'
import { runCommand, type Ended, type Surroundings } from '../../../fixtures/cli/run-command.ts'
import { Screen } from '../../../fixtures/cli/screen.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'
import { asTimeGoesOn } from '../../../fixtures/servers/tested-server.ts'

/** Runs a command on a clock that goes on while everything waits. */
async function run(argv: readonly string[], surroundings: Surroundings = {}): Promise<Ended> {
  const clock = new TestClock()
  return asTimeGoesOn(clock, runCommand(argv, { clock, ...surroundings }))
}

/** A list of 101 tasks a page is given. */
const takesAnyPage = {
  answer: (
    { method, params, id }: { method: string; params: { pageSize?: number }; id: unknown },
    answer: { error?: unknown }
  ) =>
    method === 'ListTasks' && params.pageSize === 101 && answer.error
      ? { jsonrpc: '2.0', id, result: { tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 } }
      : answer
}

await t.test('a correct server gets a line for each requirement, skip reasons and a count', async t => {
  const url = await faultyServer(t, {})
  const { code, stdout } = await run(['test', url, '--text', 'count 2'])
  t.equal(code, 0, stdout)
  t.match(stdout, /^27 +ok +A task that has ended/m)
  t.match(stdout, /^not tried over JSONRPC: no task asked for input: give a --text that makes one ask: 33, 36$/m)
  t.match(
    stdout,
    /^warn JSONRPC: 120 The card may be cached, [^\n]*\(SHOULD, §8\.6\.1\)\n {2}sent: {3}GET http[^\n]*\n {2}wanted: Cache-Control with max-age\n {2}found: {2}null\n/m
  )
  t.match(stdout, /\n +passed +failed +warnings +skipped\nJSONRPC +\d+ +0 +1 +\d+ +http:\/\/127\.0\.0\.1:\d+\/rpc\n$/)
})

await t.test('an unmet requirement fails, with the request, the expectation and the finding', async t => {
  const url = await faultyServer(t, takesAnyPage)
  const { code, stdout } = await run(['test', url, '--only', 'JSONRPC: 74 '])
  t.equal(code, 10)
  t.match(
    stdout,
    /^FAIL JSONRPC: 74 A page has 50 tasks [^\n]*\(MUST, §3\.1\.4\)\n {2}sent: {3}ListTasks \{"pageSize":101\}\n {2}wanted: InvalidParams \(-32602, HTTP 400\)\n {2}found: {2}\{"tasks":\[\]/
  )
  t.notMatch(stdout, /120/)
  t.match(await run(['test', url, '--only', 'nothing of this kind']), {
    code: 1,
    stderr: /No requirement's name contains "nothing of this kind"/
  })
})

await t.test('failures are counted on a terminal while the test continues', async t => {
  const url = await faultyServer(t, takesAnyPage)
  const screen = new Screen()
  const shown = new Set<string | undefined>()
  const terminal = { columns: 80, hasColours: true }
  const look = (text: string) => {
    screen.write(text)
    shown.add(screen.last)
  }
  const { code } = await run(['test', url, '--text', 'count 2'], {
    terminal,
    screen: terminal,
    heard: look,
    printed: look
  })
  t.equal(code, 10)
  t.ok(
    [...shown].some(line => /^\d+ moves, 1 failed: JSONRPC, /.test(line ?? '')),
    JSON.stringify([...shown])
  )
  t.ok(
    screen.lines.some(line => line.startsWith('FAIL JSONRPC: 74 A page has 50 tasks')),
    'its own line'
  )
})

await t.test('TAP has a point for each requirement and binding, with skips and todos', async t => {
  const url = await faultyServer(t, takesAnyPage)
  const { code, stdout } = await run([
    'test',
    url,
    '--tap',
    '--api-key',
    'key',
    '--binding',
    'JSONRPC',
    '--wait',
    '2',
    '--text',
    'count 2'
  ])
  t.equal(code, 10)
  t.match(stdout, /^TAP version 14\n/)
  t.ok(stdout.includes(`\n1..${REQUIREMENTS.length}\n`))
  t.match(stdout, /^ok 27 - JSONRPC: 27 A task that has ended, [^\n]*$/m)
  t.match(stdout, /^ok 12 - JSONRPC: 12 [^\n]* # SKIP A2A leaves it open$/m)
  t.match(stdout, /^not ok 74 - JSONRPC: 74 [^\n#]*\n {2}---\n {2}message: \|\n {4}sent: {3}ListTasks [^\n]*\n/m)
  t.match(stdout, /^not ok 120 - JSONRPC: 120 [^\n]* # TODO SHOULD$/m)
})

await t.test('bindings are columns, lines are truncated to the screen, and --only selects a binding', async t => {
  const url = await faultyServer(t, { rest: true })
  const { stdout } = await run(['test', url, '--text', 'x', '--only', '74 '], {
    screen: { columns: 40, hasColours: false }
  })
  t.match(stdout, /^ +JSONRPC +HTTP\+JSON$/m)
  t.match(stdout, /^74 +ok +ok +A page .*…$/m)
  for (const line of stdout.split('\n').filter(text => text.startsWith('74'))) t.ok(line.length <= 40, line)
  const one = await run(['test', url, '--text', 'x', '--only', 'JSONRPC: 74 '])
  t.match(one.stdout, /^74 +ok +- +A page has 50 tasks/m)
})

await t.test('a long finding is truncated', async t => {
  const url = await faultyServer(t, {
    answer: ({ method }, answer) =>
      method === 'ListTasks' && answer.result
        ? { ...answer, result: { ...answer.result, tasks: 'x'.repeat(2000) } }
        : answer
  })
  const { stdout } = await run(['test', url, '--text', 'x', '--only', 'JSONRPC: 69 '])
  t.match(stdout, /^ {2}found: {2}\{"tasks":"x{900,}…$/m)
})

await t.test('an optional behaviour may give a warning too', async t => {
  const url = await faultyServer(t, {
    events: async function* ({ method }, events) {
      for await (const event of events) {
        yield event
        if (method === 'SendStreamingMessage' && event.result?.artifactUpdate) yield event
      }
    }
  })
  const { code, stdout } = await run(['test', url, '--tap', '--text', 'count 2'])
  t.equal(code, 0, stdout)
  t.match(stdout, /^not ok 64 - [^\n]* # TODO open in A2A$/m)
})

await t.test('wrong usage is reported', async t => {
  for (const [args, words] of [
    [['--driver', 'x'], /--driver/],
    [['--wait', '0'], /--wait takes a number of seconds/],
    [['--wait', ''], /--wait takes/],
    [['--binding', 'SMOKE'], /is not a binding/],
    [['--api-key', 'ö'], /--api-key takes/]
  ] as const) {
    t.match(await run(['test', 'http://127.0.0.1:9', ...args]), { code: 2, stderr: words }, args[0])
  }
  t.match(await run(['test']), { code: 2, stderr: /AGENT\.ts\|js, or the URL of a server, is missing/ })
})

await t.test('a server that cannot be tested is an error', async t => {
  t.match(await run(['test', 'http://127.0.0.1:9']), { code: 3, stderr: /Nobody answers at/ })
  const closed = await faultyServer(t, {
    answer: ({ id }) => ({ jsonrpc: '2.0', id, error: { code: -31401, message: 'Who are you?' } })
  })
  t.match(await run(['test', closed]), { code: 4, stderr: /requires a key\. Give one with --api-key KEY/ })
  const odd = await faultyServer(t, { card: () => [] })
  t.match(await run(['test', odd]), { code: 1, stderr: /lists no interface that could be tested/ })
})

await t.test('progress is shown on a terminal, and a stopped test ends', async t => {
  const screen = new Screen()
  const shown = new Set<string | undefined>()
  const stop = new AbortController()
  const url = await faultyServer(t, {})
  const heard = (text: string) => {
    screen.write(text)
    shown.add(screen.last)
    if (/JSONRPC, [a-z]+: /.test(screen.last ?? '')) stop.abort()
  }
  const { code } = await run(['test', url], {
    terminal: { columns: 80, hasColours: false },
    heard,
    signal: stop.signal
  })
  t.equal(code, 130)
  t.ok(
    [...shown].some(line => /^\d+ moves: JSONRPC, [a-z]+: [A-Za-z]+$/.test(line ?? '')),
    JSON.stringify([...shown])
  )
  t.equal(screen.last, '', 'and is gone at the end')
})
