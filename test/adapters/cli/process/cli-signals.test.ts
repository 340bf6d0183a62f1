import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import type { AgentClient } from '../../../../adapters/client/agent-client.ts'
import { connect } from '../../../../adapters/client/connect.ts'
import { brief, next, rejection, say, taskIn } from '../../../fixtures/runtime/runtime-helpers.ts'
import { JsonSocket } from '../../../fixtures/servers/served-agent.ts'

const AGENTS = {
  'echo.js':
    "export default { card: { name: 'Echo' }, work: ({ message }) => ({ artifact: { parts: message.parts } }) }",
  // Works for ever, whatever its signal says, and leaves a rejection and timers behind.
  'stubborn.js': `setInterval(() => {}, 1)
export default { card: { name: 'Stubborn' }, work: ({ signal }) => {
  signal.addEventListener('abort', () => { Promise.reject(new Error('left alone')) })
  return new Promise(() => {})
} }`,
  // Cleans up for ever.
  'hanging.js':
    "export default { card: { name: 'Hanging' }, cancelGraceMs: 3600000, work: () => new Promise(() => {}) }",
  'unready.js': 'setInterval(() => {}, 1e6)\nprocess.stderr.write("loading\\n")\nawait new Promise(() => {})'
}

/** Serves an agent with the built command, which is killed when the test ends. */
function start(t: Test, file: string) {
  const child = spawn(process.execPath, [
    'dist/adapters/cli/bin.js',
    'serve',
    file,
    '--port',
    '0',
    '--json',
    '--log',
    'json'
  ])
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'close') as Promise<[number | null, string | null]>
  const logged: string[] = []
  const lines = createInterface(child.stderr)
  lines.on('line', line => logged.push(line))
  const url = once(child.stdout, 'data').then(([text]) => (JSON.parse(String(text)) as { url: string }).url)
  return { child, ended, lines, logged, url }
}

/** Opens a task and waits until it works; gives its id. */
async function working(client: AgentClient): Promise<string> {
  const stream = client.sendStreamingMessage(say('x'))
  const { id } = taskIn(await next(stream))
  t.equal(brief(await next(stream)), 'working')
  await stream.return()
  return id
}

await t.test('a served agent that receives a signal', async t => {
  const cwd = t.testdir(AGENTS)

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    await t.test(`${signal}, while idle, exits with 0, and its clients receive 1012`, async t => {
      const { child, ended, url, logged } = start(t, join(cwd, 'echo.js'))
      const client = await JsonSocket.open(t, await url)
      child.kill(signal)
      t.match(await client.closed(), { code: 1012, reason: /Your tasks go on/ })
      t.strictSame(await ended, [0, null])
      t.match(
        logged.map(line => JSON.parse(line)),
        [{ level: 'info', message: 'the server is stopping and parks its work', details: {} }]
      )
    })
  }

  await t.test('with working tasks, open streams and waiting calls informs all clients, and exits with 0', async t => {
    const { child, ended, url } = start(t, join(cwd, 'stubborn.js'))
    const address = await url
    const client = await connect(address, { giveUpAfterMs: 0 })
    const streams = Array.from({ length: 20 }, () => client.sendStreamingMessage(say('x')))
    for (const stream of streams) t.equal(brief(await next(stream)), 'task:submitted')
    for (const stream of streams) t.equal(brief(await next(stream)), 'working')
    const waiting = rejection(client.sendMessage(say('x')))
    const other = await JsonSocket.open(t, address)
    child.kill('SIGTERM')
    t.equal((await other.closed()).code, 1012)
    for (const stream of streams) t.match(await rejection(stream.next()), { code: 'Overloaded' })
    t.match(await waiting, { code: 'Overloaded' })
    t.strictSame(await ended, [0, null])
  })

  for (const [first, second, code] of [
    ['SIGTERM', 'SIGINT', 130],
    ['SIGINT', 'SIGTERM', 143]
  ] as const) {
    await t.test(
      `${first}, then ${second} during an hour's wait, exits at once with ${code}, after informing clients`,
      async t => {
        const { child, ended, url, lines } = start(t, join(cwd, 'hanging.js'))
        const address = await url
        const client = await connect(address, { giveUpAfterMs: 0 })
        const other = await JsonSocket.open(t, address)
        await client.cancelTask({ id: await working(client) })
        const parking = once(lines, 'line')
        child.kill(first)
        t.match(String(await parking), 'parks its work')
        t.match(await other.closed(), { code: 1012 })
        child.kill(second)
        t.strictSame(await ended, [code, null])
      }
    )
  }

  await t.test('before its agent is loaded exits with 0', async t => {
    const { child, ended, lines } = start(t, join(cwd, 'unready.js'))
    await once(lines, 'line')
    child.kill('SIGTERM')
    t.strictSame(await ended, [0, null])
  })

  await t.test('continues to serve when its log is closed', async t => {
    const { child, ended, url } = start(t, join(cwd, 'stubborn.js'))
    const address = await url
    child.stderr.destroy()
    const client = await connect(address, { giveUpAfterMs: 0 })
    await working(client)
    child.kill('SIGTERM')
    t.strictSame(await ended, [0, null])
  })
})
