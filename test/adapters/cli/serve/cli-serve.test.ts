import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { closeSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { loadAgent, nodeReader } from '../../../../adapters/cli/load-agent.ts'
import { surviveRejections } from '../../../../adapters/cli/process/process-events.ts'
import { listenError } from '../../../../adapters/cli/serve/parts.ts'
import { fetchCard } from '../../../../adapters/client/card/discovery.ts'
import { connect } from '../../../../adapters/client/connect.ts'
import { systemClock, type Clock } from '../../../../runtime/ports/clock.ts'
import { httpReceiver } from '../../../fixtures/peers/http-receiver.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { deferred, rejection, until } from '../../../fixtures/runtime/runtime-helpers.ts'
import { unusedPort } from '../../../fixtures/network/unused-port.ts'
import { NO_SQLITE } from '../../../fixtures/stores/sqlite.ts'

const ECHO =
  "export default { card: { name: 'Echo', description: 'Says what it hears.' }, negotiate: ({ message }) => ({ type: 'reply', message: message.parts }) }"
const HELLO = "export default { card: { name: 'Hello' }, work: () => ({ artifact: 'hello' }) }"
const PICKY = `${ECHO}\nexport const authorize = ({ operation, principal }) => operation === 'listTasks' ? principal + ' may not list.' : true`
const LOCKED = `${ECHO}\nexport const authenticate = ({ headers }) => headers['x-me'] === 'yes' ? { id: 'me' } : undefined`

const CARELESS = `export default { card: { name: 'Careless' }, work: () => {
  throw Object.assign(new TypeError('Bearer s3cret', { cause: new Error('no key') }), { tried: ['a', { token: 's3cret' }] })
} }`

/** Runs `taskchart` in this process, with a promise of the first text on stdout. */
function run(cwd: string, argv: readonly string[]) {
  const stop = new AbortController()
  const announced = deferred<string>()
  const ended = runCommand(argv, { printed: announced.resolve, signal: stop.signal, cwd })
  return { announced: announced.promise, stop: () => stop.abort(), ended: () => ended }
}

/** Runs `taskchart serve`; it is stopped when the test ends. */
async function serving(t: Test, cwd: string, argv: readonly string[]) {
  const running = run(cwd, ['serve', ...argv, '--port', '0'])
  t.teardown(async () => {
    running.stop()
    await running.ended()
  })
  return {
    ...running,
    announcement: await Promise.race([running.announced, running.ended().then(({ stderr }) => stderr)])
  }
}

/** Runs `taskchart serve` where it cannot, and gives its exit code and what it says. */
async function refused(cwd: string, argv: readonly string[]) {
  const { code, stderr, stdout } = await run(cwd, ['serve', ...argv]).ended()
  return { code, stderr, stdout }
}

/** The first that comes of a stream. */
async function line(stream: NodeJS.ReadableStream): Promise<string> {
  return String((await once(stream, 'data'))[0])
}

await t.test('a served agent', async t => {
  const skills =
    "skills: [{ id: 'a', name: 'A', tags: [] }, { id: 'b', name: 'B', tags: [], examples: ['a \"red\" boat'] }]"
  const cwd = t.testdir({
    'hello.js': HELLO,
    'echo.js': ECHO,
    'skilled.mjs': `export default { card: { name: 'Skilled', ${skills} }, work: () => { throw new Error('no paint') } }`,
    'locked.js': LOCKED,
    'picky.js': PICKY,
    'careless.js': CARELESS
  })

  await t.test('is announced with its addresses and the line to call it', async t => {
    const { announcement, stop, ended } = await serving(t, cwd, ['echo.js'])
    const [, port] = /ws:\/\/127\.0\.0\.1:(\d+)\//.exec(announcement) ?? []
    t.equal(
      announcement,
      `Echo: Says what it hears.

  agent  ws://127.0.0.1:${port}/
         http://127.0.0.1:${port}/ for JSON-RPC and REST
  card   http://127.0.0.1:${port}/.well-known/agent-card.json
  page   http://127.0.0.1:${port}/

Talk to it from another terminal:

  npx taskchart send ws://127.0.0.1:${port}/ "hello" --out artifacts

Ctrl-C stops it. Its process id is ${process.pid}.
`
    )
    stop()
    t.strictSame(await ended(), { code: 0, stdout: announcement, stderr: '' })
  })

  await t.test('speaks 0.3 with --legacy, and has its public address in the card', async t => {
    const { announcement, stop, ended } = await serving(t, cwd, [
      'echo.js',
      '--json',
      '--legacy',
      '--public-url',
      'https://agent.example/'
    ])
    const { http, card } = JSON.parse(announcement) as Record<string, string>
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'message/send',
      params: { message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hi' }] } }
    }
    const answer = await fetch(`${http}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
    t.match(await answer.json(), { result: { kind: 'message', parts: [{ kind: 'text' }] } })
    const { supportedInterfaces } = (await (await fetch(`${card}`)).json()) as {
      supportedInterfaces: { url: string; protocolVersion: string }[]
    }
    t.match(
      supportedInterfaces.map(({ url, protocolVersion }) => `${url} ${protocolVersion}`),
      [
        'wss://agent.example/ 1.0',
        'https://agent.example/ 1.0',
        'https://agent.example 1.0',
        'wss://agent.example/ 0.3'
      ]
    )
    const additional = async (from: string) =>
      ((await (await fetch(from, { headers: { 'a2a-version': '0.3' } })).json()) as { additionalInterfaces: object[] })
        .additionalInterfaces.length
    t.equal(await additional(`${card}`), 2, 'without WebSocket')
    stop()
    t.equal((await ended()).code, 0)
    const wide = await serving(t, cwd, ['echo.js', '--json', '--legacy', '--legacy-websocket'])
    t.equal(await additional((JSON.parse(wide.announcement) as { card: string }).card), 3)
    wide.stop()
    await wide.ended()
    t.match(await run(cwd, ['serve', 'echo.js', '--legacy-websocket']).ended(), {
      code: 2,
      stderr: /--legacy-websocket needs --legacy/
    })
    t.match(await run(cwd, ['serve', 'echo.js', '--public-url', 'agent.example']).ended(), {
      code: 2,
      stderr: /--public-url takes an address/
    })
  })

  await t.test('speaks AG-UI with --agui, and says where', async t => {
    const { announcement } = await serving(t, cwd, ['hello.js', '--json', '--agui'])
    const { agui = '', http } = JSON.parse(announcement) as Record<string, string>
    t.equal(agui, `${http}ag-ui`)
    const run = { threadId: 't', runId: 'r', state: {}, tools: [], context: [], forwardedProps: {} }
    const answer = await fetch(agui, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: JSON.stringify({ ...run, messages: [{ id: 'm', role: 'user', content: 'hi' }] })
    })
    t.match(await answer.text(), /"RUN_STARTED"[^]*hello[^]*"RUN_FINISHED"/)
    const plain = await serving(t, cwd, ['hello.js', '--json'])
    t.notOk('agui' in JSON.parse(plain.announcement))
  })

  await t.test('speaks 1.1 with --versions 1.0,1.1, and refuses versions that it does not know', async t => {
    const { announcement, stop, ended } = await serving(t, cwd, ['hello.js', '--json', '--versions', '1.0,1.1'])
    const { card, http } = JSON.parse(announcement) as Record<string, string>
    const { supportedInterfaces } = (await (await fetch(`${card}`)).json()) as {
      supportedInterfaces: { protocolVersion: string }[]
    }
    t.strictSame(
      supportedInterfaces.map(({ protocolVersion }) => protocolVersion),
      ['1.1', '1.1', '1.1', '1.0', '1.0', '1.0']
    )
    t.equal((await fetch(`${http}tasks`, { headers: { 'a2a-version': '1.1' } })).status, 200)
    stop()
    t.equal((await ended()).code, 0)
    for (const versions of ['1.1', '1.0,1.2', '1.0,1.0', '']) {
      t.match(await run(cwd, ['serve', 'hello.js', '--versions', versions]).ended(), {
        code: 2,
        stderr: /--versions takes 1\.0 or 1\.0,1\.1, not/
      })
    }
  })

  await t.test(
    'offers push notifications by default, and to loopback receivers with --allow-loopback-webhooks',
    async t => {
      const { url, got } = await httpReceiver(t)
      const refusals: unknown[] = []
      for (const options of [[], ['--allow-loopback-webhooks'], ['--no-push']]) {
        const { announcement, stop, ended } = await serving(t, cwd, ['hello.js', '--json', ...options])
        const { http, card } = JSON.parse(announcement) as Record<string, string>
        const { capabilities } = (await (await fetch(`${card}`)).json()) as {
          capabilities: { pushNotifications: boolean }
        }
        t.equal(capabilities.pushNotifications, options[0] !== '--no-push')
        const body = {
          message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] },
          configuration: { taskPushNotificationConfig: { url } }
        }
        const answer = await fetch(`${http}message:send`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
          body: JSON.stringify(body)
        })
        refusals.push(
          ((await answer.json()) as { error?: { details: { reason: string }[] } }).error?.details[0]?.reason
        )
        if (options[0] === '--allow-loopback-webhooks') await until(() => got.at(-1)?.body.includes('COMPLETED'))
        stop()
        t.equal((await ended()).code, 0)
      }
      t.strictSame(refusals, ['INVALID_PARAMS', undefined, 'PUSH_NOTIFICATION_NOT_SUPPORTED'])
      t.match(await run(cwd, ['serve', 'hello.js', '--no-push', '--allow-loopback-webhooks']).ended(), {
        code: 2,
        stderr: /exclude each other/
      })
      t.match(await run(cwd, ['serve', 'hello.js', '--db', 'a.db', '--db', 'b.db']).ended(), {
        code: 2,
        stderr: /--db was given twice\. An agent has one database: docs\/cluster\.md#beyond-one-primary/
      })
    }
  )

  await t.test('is announced as JSON, can be called there, and is gone when it is stopped', async t => {
    const { announcement, stop, ended } = await serving(t, cwd, ['echo.js', '--json'])
    const { name, url, card, page } = JSON.parse(announcement) as Record<string, string>
    t.strictSame([name, card, page], ['Echo', `${page}.well-known/agent-card.json`, url?.replace('ws', 'http')])
    t.match(await run(cwd, ['send', `${url}`, 'hi there']).ended(), { code: 0, stdout: 'hi there\n' })
    t.match(await run(cwd, ['card', `${page}`]).ended(), { code: 0, stdout: /^Echo 1\.0\.0/ })
    stop()
    t.equal((await ended()).code, 0)
    t.equal((await run(cwd, ['send', `${url}`, 'hi there']).ended()).code, 3)
  })

  await t.test("has a skill's first example in the line, quoted for a shell", async t => {
    const { announcement } = await serving(t, cwd, ['skilled.mjs'])
    t.match(announcement, /^Skilled\n/)
    t.match(announcement, ` 'a "red" boat' --out artifacts\n`)
  })

  await t.test('has the errors of its work written to stderr, not sent to its callers', async t => {
    const { announcement, stop, ended } = await serving(t, cwd, ['skilled.mjs', '--json'])
    const { url } = JSON.parse(announcement) as { url: string }
    const sent = await run(cwd, ['send', url, 'go', '--exit-status']).ended()
    t.equal(sent.code, 10)
    t.notMatch(sent.stderr, 'no paint')
    stop()
    t.match((await ended()).stderr, /^taskchart: the work of a task failed \{[\s\S]*Error: no paint/)
  })

  await t.test('logs them as JSON with --log json, without secrets', async t => {
    const { announcement, stop, ended } = await serving(t, cwd, ['careless.js', '--json', '--log', 'json'])
    const { url } = JSON.parse(announcement) as { url: string }
    await run(cwd, ['send', url, 'go']).ended()
    stop()
    const { stderr } = await ended()
    t.notMatch(stderr, 's3cret')
    const lines = stderr
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, unknown>)
    const failed = lines.find(({ level }) => level === 'error')
    t.match(failed, {
      time: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
      message: 'the work of a task failed',
      details: {
        taskId: String,
        error: {
          name: 'TypeError',
          message: 'Bearer [redacted]',
          stack: /careless/,
          cause: { message: 'no key' },
          tried: ['a', { token: '[redacted]' }]
        }
      }
    })
  })

  await t.test('with --api-key accepts only callers with the key, and never shows it', async t => {
    const { announcement } = await serving(t, cwd, ['echo.js', '--api-key', 'secret-of-16-chars'])
    t.match(announcement, / "hello" --out artifacts --api-key …\n/)
    t.notMatch(announcement, 'secret')
    const [url = ''] = /ws:\S+/.exec(announcement) ?? []
    t.equal((await run(cwd, ['send', url, 'hi']).ended()).code, 4)
    t.equal((await run(cwd, ['send', url, 'hi', '--api-key', 'secret-of-16-char']).ended()).code, 4)
    t.equal((await run(cwd, ['send', url, 'hi', '--api-key', 'secret-of-16-chars']).ended()).code, 0)
    for (const authorization of [
      'secret-of-16-chars',
      'Basic secret-of-16-chars',
      'Bearer secret-of-16-chars too',
      'bearer SECRET-OF-16-CHARS'
    ]) {
      t.match(await rejection(connect(url, { headers: { authorization } })), { code: 'Unauthenticated' }, authorization)
    }
  })

  await t.test('with an export authenticate accepts the callers that it identifies', async t => {
    const { announcement } = await serving(t, cwd, ['locked.js', '--json'])
    const { url } = JSON.parse(announcement) as { url: string }
    t.match(await rejection(connect(url)), { code: 'Unauthenticated' })
    const client = await connect(url, { headers: { 'x-me': 'yes' } })
    await client.close()
  })

  await t.test('with an export authorize applies it, also beside --api-key, as the card says', async t => {
    const { announcement } = await serving(t, cwd, ['picky.js', '--api-key', 'secret-of-16-chars', '--json'])
    const { url } = JSON.parse(announcement) as { url: string }
    const client = await connect(url, { headers: { authorization: 'Bearer secret-of-16-chars' } })
    t.match(await rejection(client.listTasks({})), { code: 'Forbidden', message: 'api-key may not list.' })
    t.match(await rejection(client.getTask({ id: 'x' })), { code: 'TaskNotFound' })
    await client.close()
    t.match(await fetchCard(url), {
      securitySchemes: { apiKey: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
      securityRequirements: [{ schemes: { apiKey: {} } }]
    })
  })

  await t.test('on all addresses of the machine accepts calls at the loopback one', async t => {
    const { announcement } = await serving(t, cwd, [
      'locked.js',
      '--host',
      '0.0.0.0',
      '--public-url',
      'https://agent.example/'
    ])
    t.match(announcement, /agent {2}ws:\/\/0\.0\.0\.0:\d+\//)
    t.match(announcement, /npx taskchart send ws:\/\/127\.0\.0\.1:\d+\//)
  })

  await t.test('with --hosts answers only requests for those, and shows the first of them', async t => {
    const { announcement } = await serving(t, cwd, [
      'locked.js',
      '--host',
      '0.0.0.0',
      '--hosts',
      'agent.example',
      '--hosts',
      'localhost:8080',
      '--json'
    ])
    t.match(JSON.parse(announcement), {
      url: /^ws:\/\/agent\.example:\d+\/$/,
      card: /^http:\/\/agent\.example:\d+\/\.well-known\/agent-card\.json$/
    })
    const { port } = new URL((JSON.parse(announcement) as { url: string }).url)
    t.match(await fetchCard(`http://localhost:${port}/`), {
      supportedInterfaces: [
        { url: 'ws://localhost:8080/' },
        { url: 'http://localhost:8080/' },
        { url: 'http://localhost:8080' }
      ]
    })
    t.equal((await fetch(`http://127.0.0.1:${port}/`)).status, 421)
    t.match(
      (await serving(t, cwd, ['echo.js', '--hosts', 'agent.example:8080'])).announcement,
      /agent {2}ws:\/\/agent\.example:8080\/\n/
    )
    t.match(
      (await serving(t, cwd, ['echo.js', '--hosts', '127.0.0.1', '--hosts', 'agent.example'])).announcement,
      /agent {2}ws:\/\/127\.0\.0\.1:\d+\/\n/
    )
  })

  await t.test("with --origin accepts calls of that origin's pages, and no others", async t => {
    const { announcement } = await serving(t, cwd, [
      'echo.js',
      '--origin',
      'https://app.example',
      '--origin',
      'http://localhost:5173',
      '--json'
    ])
    const { http } = JSON.parse(announcement) as { http: string }
    const status = async (origin: string) =>
      (await fetch(`${http}.well-known/agent-card.json`, { headers: { origin } })).status
    t.equal(await status('https://app.example'), 200)
    t.equal(await status('http://localhost:5173'), 200)
    t.equal(await status('http://localhost:5174'), 403)
  })

  await t.test('is closed at once if it is stopped while it starts', async t => {
    const { stop, ended } = run(cwd, ['serve', 'echo.js', '--port', '0'])
    stop()
    t.equal((await ended()).code, 0)
    t.strictSame(await runCommand(['serve', 'echo.js', '--port', '0'], { cwd, signal: AbortSignal.abort() }), {
      code: 0,
      stdout: '',
      stderr: ''
    })
    const stopping = new AbortController()
    // A runtime sets its timers as it starts.
    const clock = {
      ...systemClock,
      setTimeout: (...given: Parameters<Clock['setTimeout']>) => (stopping.abort(), systemClock.setTimeout(...given))
    }
    t.match(
      await runCommand(['serve', 'echo.js', '--port', '0'], { cwd, signal: stopping.signal, clock }),
      { code: 0, stdout: '' },
      'and announces nothing'
    )
  })
})

await t.test('an agent that cannot be served is refused with what to do', async t => {
  const cwd = t.testdir({
    'echo.js': ECHO,
    'locked.js': LOCKED,
    'nothing.js': 'export const agent = 1',
    'number.js': 'export default 1',
    'plain.js': "export default { card: 'Echo' }",
    'idle.js': "export default { card: { name: 'Idle' } }",
    'throws.js': "\nfunction start() { throw new TypeError('no\\nkey') }\nstart()",
    'throws-text.js': "throw 'no key'",
    'syntax.js': 'export default {',
    'imports.js': "import 'no-such-package'",
    'odd.js': `${ECHO}\nexport const authenticate = 'yes'`,
    'even.js': `${ECHO}\nexport const authorize = true`,
    'other.json': '{ "name": "agent" }',
    'README.md': '# Agent',
    extensionless: '',
    folder: {}
  })

  const free = String(await unusedPort())
  const cases: [string[], number, RegExp][] = [
    [
      ['gone.js'],
      1,
      /^taskchart: There is no file \S+gone\.js\. Give the path of a module whose default export is an agent\.\n$/
    ],
    [
      ['folder'],
      1,
      /^taskchart: folder is a folder\. Give the path of a module whose default export is an agent, such as folder\/agent\.ts\.\n$/
    ],
    [
      ['other.json'],
      1,
      /^taskchart: other\.json is not a module: its name ends with \.json\. Give the path of a module whose default export is an agent, in JavaScript or TypeScript, such as agent\.ts\.\n$/
    ],
    [['README.md'], 1, /^taskchart: README\.md is not a module: its name ends with \.md\./],
    [
      ['extensionless'],
      1,
      /extensionless (?:has no default export|is not an agent|could not be loaded)|default export of extensionless/
    ],
    [
      ['http://127.0.0.1:1/'],
      1,
      /^taskchart: http:\/\/127\.0\.0\.1:1\/ is an address\. Give the path of a module whose default export is an agent\. To talk to the agent at that address: npx taskchart chat http:\/\/127\.0\.0\.1:1\/\n$/
    ],
    [['nothing.js'], 1, /nothing\.js has no default export\. Write: export default defineAgent\(/],
    [['number.js'], 1, /The default export of number\.js is not an agent\. Make it with defineAgent\(/],
    [['plain.js'], 1, /The default export of plain\.js is not an agent\. Make it/],
    [['idle.js'], 1, /The default export of idle\.js is not an agent: An agent needs work, negotiate or both/],
    [
      ['throws.js'],
      1,
      /^taskchart: throws\.js could not be loaded: no key\n {4}at start \(file:.*throws\.js:2:\d+\)\n/
    ],
    [['throws-text.js'], 1, /throws-text\.js could not be loaded: no key\n$/],
    [['syntax.js'], 1, /syntax\.js could not be loaded: Unexpected/],
    [['imports.js'], 1, /imports\.js could not be loaded: Cannot find package 'no-such-package'/],
    [['odd.js'], 1, /The export authenticate of odd\.js has to be a function/],
    [['even.js'], 1, /The export authorize of even\.js has to be a function that allows or refuses an operation/],
    [
      ['locked.js', '--api-key', 'secret-of-16-chars'],
      2,
      /locked\.js exports authenticate, which already identifies callers\. Leave out --api-key\.\nUsage:/
    ],
    [['echo.js', '--log', 'xml'], 2, /--log takes text or json, not "xml"\.\nUsage:/],
    [['echo.js', '--log', 'toString'], 2, /--log takes text or json/],
    [
      ['echo.js', '--host', '0.0.0.0'],
      2,
      /Without a key, anyone could use the agent on 0\.0\.0\.0\. Give --api-key KEY, or leave out --host\.\nUsage:/
    ],
    [
      ['echo.js', '--host', '::', '--api-key', 'secret-of-16-chars'],
      2,
      /On :: the agent listens on every address of this machine\. Choose the one for its card with --public-url URL or --hosts NAME\[:PORT\]\.\nUsage:/
    ],
    [
      ['echo.js', '--host', '0', '--port', free, '--api-key', 'secret-of-16-chars'],
      1,
      new RegExp(`0 port ${free} cannot be served: On 0\\.0\\.0\\.0 the agent listens on every address of this machine`)
    ],
    [
      ['echo.js', '--origin', 'app.example'],
      2,
      /--origin has "app\.example", which is not an origin\. Write scheme, host and port of a page, .*\nUsage:/
    ],
    [
      ['echo.js', '--hosts', 'https://agent.example'],
      2,
      /--hosts takes names such as agent\.example or agent\.example:8080, not "https:\/\/agent\.example"\.\nUsage:/
    ],
    [
      ['echo.js', '--host', '203.0.113.1', '--api-key', 'secret-of-16-chars'],
      1,
      /^taskchart: This machine has no address 203\.0\.113\.1\. Choose another with --host\.\n$/
    ]
  ]
  for (const [argv, exitCode, message] of cases) {
    await t.test(`taskchart serve ${argv.join(' ')}`, async t => {
      const { code, stdout, stderr } = await refused(cwd, argv)
      t.equal(code, exitCode)
      t.equal(stdout, '')
      t.match(stderr, message)
    })
  }

  await t.test('for a port in use', async t => {
    const { announcement } = await serving(t, cwd, ['echo.js', '--json'])
    const { port } = new URL((JSON.parse(announcement) as { url: string }).url)
    t.strictSame(await refused(cwd, ['echo.js', '--port', port]), {
      code: 1,
      stdout: '',
      stderr: `taskchart: Port ${port} is in use on 127.0.0.1. Choose another with --port, or --port 0 for any.\n`
    })
  })

  await t.test('for all default ports in use', async t => {
    const refuse = (code: string) => () => listenError({ host: '127.0.0.1', port: undefined })({ code, message: 'No' })
    t.throws(refuse('EADDRINUSE'), {
      message: 'The ports from 4242 to 4261 are in use on 127.0.0.1. Choose another with --port, or --port 0 for any.'
    })
    t.throws(refuse('EMFILE'), {
      message: '127.0.0.1 port 4242 cannot be served: No. Choose others with --host and --port.'
    })
  })
})

await t.test('an agent in TypeScript', async t => {
  const typed = "const name: string = 'Typed'\nexport default { card: { name }, work: (): void => {} }"
  const cwd = t.testdir({
    commonjs: { 'package.json': '{}', 'agent.ts': typed, 'agent.cts': typed, 'agent.mts': typed },
    module: {
      'package.json': '{ "type": "module" }',
      'agent.ts': typed,
      'agent.tsx': typed,
      'broken.ts': 'export default {'
    },
    'agent.js': ECHO
  })
  const withTsx = { ...nodeReader, stripsTypes: false }

  for (const path of ['commonjs/agent.ts', 'commonjs/agent.cts', 'commonjs/agent.mts', 'module/agent.ts']) {
    await t.test(`is loaded by tsx: ${path}`, async t => {
      t.equal((await loadAgent(path, cwd, withTsx)).agent.card.name, 'Typed')
    })
  }

  await t.test('is loaded by tsx if it may have JSX, also by a Node that strips types', async t => {
    t.equal((await loadAgent('module/agent.tsx', cwd, { ...nodeReader, stripsTypes: true })).agent.card.name, 'Typed')
  })

  await t.test('is loaded by Node if it strips types', async t => {
    t.equal((await loadAgent(join(cwd, 'module/agent.ts'), '/')).agent.card.name, 'Typed')
  })

  await t.test('is reported if it does not parse', async t => {
    t.match(await rejection(loadAgent('module/broken.ts', cwd, withTsx)), {
      message: /^module\/broken\.ts could not be loaded: /
    })
  })

  await t.test('says which line installs tsx, if it is needed and missing', async t => {
    const missing = new Error("Cannot find package 'tsx'")
    const withoutTsx = { ...nodeReader, stripsTypes: false, loadTsx: () => Promise.reject(missing) }
    t.match(await rejection(loadAgent('module/agent.ts', cwd, withoutTsx)), {
      message: /Install what the commands use: npm i -D tsx @xstate\/graph elkjs$/
    })
    t.equal((await loadAgent('agent.js', cwd, withoutTsx)).agent.card.name, 'Echo', 'JavaScript needs none')
  })
})

await t.test('an unhandled rejection of the author is logged until the handler is removed', async t => {
  const source = new EventEmitter()
  const logged: unknown[] = []
  const logger = { warn: () => {}, error: (message: string, details: object) => void logged.push(message, details) }
  const undo = surviveRejections(source, logger)
  const error = new Error('lost')
  source.emit('unhandledRejection', error)
  undo()
  source.emit('unhandledRejection', error)
  t.strictSame(logged, ['the agent has a promise that rejects and is not awaited', { error }])
})

await t.test('the command', async t => {
  const cwd = t.testdir({ 'careless.js': `setInterval(() => {}, 1e6)\nPromise.reject(new Error('lost'))\n${ECHO}` })
  /** Starts the built command, which is killed when the test ends. */
  const start = (...argv: string[]) => {
    const child = spawn(process.execPath, ['dist/adapters/cli/bin.js', ...argv])
    t.teardown(() => child.kill('SIGKILL'))
    const ended = once(child, 'close')
    return { child, ended }
  }

  await t.test('serves an example until SIGTERM, and exits with 0', async t => {
    const { child, ended } = start('serve', 'examples/echo.ts', '--port', '0', '--json')
    const { url } = JSON.parse(await line(child.stdout)) as { url: string }
    const client = await connect(url, { giveUpAfterMs: 0 })
    const closed = new Promise<void>(resolve => client.on('closed', resolve))
    child.kill('SIGTERM')
    t.strictSame(await ended, [0, null])
    await closed
  })

  await t.test('continues after an unhandled rejection, and stops although timers are set', async t => {
    const { child, ended } = start('serve', join(cwd, 'careless.js'), '--port', '0', '--json')
    const [announcement, logged] = await Promise.all([line(child.stdout), line(child.stderr)])
    t.match(logged, /^taskchart: the agent has a promise that rejects and is not awaited \{[\s\S]*Error: lost/)
    const { url } = JSON.parse(announcement) as { url: string }
    t.equal((await run(cwd, ['send', url, 'hi']).ended()).code, 0)
    child.kill('SIGINT')
    t.strictSame(await ended, [0, null])
  })

  await t.test('exits with the code that main returns', async t => {
    t.strictSame(await start('nope').ended, [2, null])
  })

  await t.test('ends quietly when its output is closed', async t => {
    const { child, ended } = start('--help')
    child.stdout.destroy()
    const [code] = await ended
    t.ok(code === 0 || code === 1)
    t.equal(child.stderr.read(), null)
  })
})

await t.test('an agent served with --db', { skip: NO_SQLITE }, async t => {
  const ASKS =
    "export default { card: { name: 'Asks', description: '' }, work: async ({ ask }) => ({ artifact: { parts: [{ text: 'done' }] } }) }"
  const cwd = t.testdir({
    'asks.js': ASKS,
    'notes.txt': 'no database, only a text that is long enough to be taken for one of a hundred bytes, or nearly so'
  })

  await t.test('stores its tasks in the file, through a restart', async t => {
    const argv = ['asks.js', '--db', 'tasks.db', '--json']
    const first = await serving(t, cwd, argv)
    const { url } = JSON.parse(first.announcement) as { url: string }
    const client = await connect(url)
    const answer = await client.sendMessage({ message: { messageId: '1', role: 'ROLE_USER', parts: [{ text: 'go' }] } })
    const id = 'task' in answer ? answer.task.id : ''
    await client.close()
    t.match(await refused(cwd, [...argv, '--port', '0']), { code: 1, stderr: /tasks\.db is in use by process/ })
    first.stop()
    await first.ended()
    const second = await serving(t, cwd, argv)
    const again = await connect((JSON.parse(second.announcement) as { url: string }).url)
    t.teardown(() => again.close())
    t.match(await again.getTask({ id }), { id, status: { state: 'TASK_STATE_COMPLETED' } })
  })

  await t.test('is not served from an unusable file', async t => {
    t.match(await refused(cwd, ['asks.js', '--db', 'notes.txt']), {
      code: 1,
      stderr: /^taskchart: .*notes\.txt is not a SQLite file/
    })
  })

  await t.test('stops with the reason when the file proves corrupt', async t => {
    const argv = ['asks.js', '--db', 'broken.db', '--json']
    const serve = await serving(t, cwd, argv)
    const file = join(cwd, 'broken.db')
    const descriptor = openSync(file, 'r+')
    for (let page = 1; page < statSync(file).size / 4096; page += 1)
      writeSync(descriptor, Buffer.alloc(4096, 0xff), 0, 4096, page * 4096)
    closeSync(descriptor)
    const client = await connect((JSON.parse(serve.announcement) as { url: string }).url)
    const lost = client
      .sendMessage({ message: { messageId: '1', role: 'ROLE_USER', parts: [{ text: 'go' }] } })
      .catch((error: unknown) => error)
    t.match(await serve.ended(), { code: 1, stderr: /broken\.db can no longer be used: .*start again/ })
    await client.close()
    t.ok(await lost)
  })
})
