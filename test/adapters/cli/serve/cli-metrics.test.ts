import t, { type Test } from 'tap'
import { readMetricsAddress } from '../../../../adapters/cli/serve/parts.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { deferred } from '../../../fixtures/runtime/runtime-helpers.ts'

const HELLO = "export default { card: { name: 'Hello' }, work: () => ({ artifact: 'hello' }) }"

/** Runs `taskchart serve` until the test ends. Gives what it announces. */
async function serving(t: Test, cwd: string, argv: readonly string[]): Promise<string> {
  const [stop, announced] = [new AbortController(), deferred<string>()]
  const ended = runCommand(['serve', 'hello.js', '--port', '0', ...argv], {
    printed: announced.resolve,
    signal: stop.signal,
    cwd
  })
  t.teardown(async () => {
    stop.abort()
    await ended
  })
  return announced.promise
}

await t.test('metrics are served where --metrics says, and announced', async t => {
  const cwd = t.testdir({ 'hello.js': HELLO })
  const { metrics } = JSON.parse(await serving(t, cwd, ['--metrics', '0', '--json'])) as { metrics: string }
  t.match(metrics, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/)
  t.match(await (await fetch(metrics)).text(), 'taskchart_tasks{state="working"} 0')
  t.match(
    await serving(t, cwd, ['--metrics', '127.0.0.1:0']),
    /\n {2}page {3}http:.*\n {9}http:\/\/127\.0\.0\.1:\d+\/metrics for Prometheus\n/
  )
  t.notMatch(await serving(t, cwd, []), 'Prometheus', 'they are off by default')

  const { port } = new URL(metrics)
  t.match(await runCommand(['serve', 'hello.js', '--port', '0', '--metrics', port], { cwd }), {
    code: 1,
    stderr: `taskchart: Port ${port} is in use on 127.0.0.1. Choose another with --metrics, or --metrics 0 for any.\n`
  })
  t.match(await runCommand(['serve', 'hello.js', '--port', '0', '--metrics', '203.0.113.1:9464'], { cwd }), {
    code: 1,
    stderr: 'taskchart: This machine has no address 203.0.113.1. Choose another with --metrics.\n'
  })
  t.match(await runCommand(['serve', 'hello.js', '--port', port, '--metrics', '0'], { cwd }), {
    code: 1,
    stderr: `Port ${port} is in use`
  })
  for (const [option, stderr] of [
    [['--metrics', '0'], 'taskchart dev serves no metrics. Use taskchart serve --metrics PORT.'],
    [['--inspect'], 'taskchart dev always serves the page of the inspector. Leave --inspect out.']
  ] as const) {
    t.match(await runCommand(['dev', 'hello.js', ...option], { cwd }), { code: 2, stderr }, option[0])
  }
})

await t.test('properties are observed with --observe-properties', async t => {
  const cwd = t.testdir({ 'hello.js': HELLO })
  const read = async (...options: readonly string[]) => {
    const { metrics } = JSON.parse(await serving(t, cwd, ['--metrics', '0', '--json', ...options])) as {
      metrics: string
    }
    return (await fetch(metrics)).text()
  }
  t.match(
    await read('--observe-properties'),
    'taskchart_property_violations_total{property="it is SUBMITTED once (§4.1.3)"} 0\n'
  )
  t.notMatch(await read(), 'taskchart_property_violations_total{')
})

await t.test('an address is a port, with or without a host', async t => {
  t.strictSame(readMetricsAddress('9464'), { host: '127.0.0.1', port: 9464 })
  t.strictSame(readMetricsAddress('0.0.0.0:0'), { host: '0.0.0.0', port: 0 })
  t.strictSame(readMetricsAddress('[::1]:9464'), { host: '::1', port: 9464 })
  for (const wrong of ['', 'x', ':9464', '::1:9464', '127.0.0.1:', '65536', 'a b:1', '[]:1', 'http://127.0.0.1:9464']) {
    t.throws(
      () => readMetricsAddress(wrong),
      {
        exitCode: 2,
        message: `--metrics takes PORT or HOST:PORT, such as 9464 or 0.0.0.0:9464, not ${JSON.stringify(wrong)}.`
      },
      wrong
    )
  }
})
