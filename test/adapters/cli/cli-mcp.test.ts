import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import t, { type Test } from 'tap'
import type { LineInput } from '../../../adapters/cli/command.ts'
import { divertOutput, lineInput } from '../../../adapters/cli/process/streams.ts'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { deferred, until } from '../../fixtures/runtime/runtime-helpers.ts'
import { NO_SQLITE } from '../../fixtures/stores/sqlite.ts'

const ASKS = `import { defineAgent, inputRequired } from 'taskchart'
export default defineAgent({
  card: { name: 'Barista', skills: [{ id: 'coffee', name: 'Coffee', description: 'Makes coffee.', tags: [] }] },
  work: async ({ ask }) => ({ artifact: JSON.stringify((await ask(inputRequired('Size?'))).parts) })
})
export const authorize = ({ principal, operation }) => operation === 'listTasks' ? false : principal !== 'nobody'`

interface Running {
  /** Sends a message of the host. */
  readonly send: (line: string | object) => void
  /** Ends stdin. */
  readonly end: () => void
  readonly answers: Record<string, unknown>[]
  readonly ended: ReturnType<typeof runCommand>
  readonly stop: () => void
}

/** Runs `taskchart mcp` in this process, with a host. */
function hosted(t: Test, cwd: string, argv: readonly string[]): Running {
  const lines: (string | undefined)[] = []
  let wanted = deferred<undefined>()
  const push = (line: string | undefined) => {
    lines.push(line)
    wanted.resolve(undefined)
  }
  const input: LineInput = {
    isTerminal: false,
    ask: async (_, signal) => {
      while (lines.length === 0 && !signal.aborted) {
        wanted = deferred()
        signal.addEventListener('abort', () => wanted.resolve(undefined))
        await wanted.promise
      }
      return lines.shift()
    }
  }
  const answers: Record<string, unknown>[] = []
  const stop = new AbortController()
  const ended = runCommand(['mcp', ...argv], {
    cwd,
    input,
    signal: stop.signal,
    printed: text => {
      for (const line of text.split('\n').filter(Boolean)) answers.push(JSON.parse(line) as Record<string, unknown>)
    }
  })
  t.teardown(async () => {
    push(undefined)
    await ended
  })
  return {
    send: line => push(typeof line === 'string' ? line : JSON.stringify(line)),
    end: () => push(undefined),
    answers,
    ended,
    stop: () => stop.abort()
  }
}

const request = (id: number, method: string, params: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method,
  params: {
    ...params,
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } }
    }
  }
})

await t.test('a host that starts the command speaks with the agent until it closes stdin', async t => {
  const cwd = t.testdir({ 'agent.mjs': ASKS })
  const host = hosted(t, cwd, ['agent.mjs'])
  host.send(request(1, 'server/discover'))
  host.send('')
  host.send(request(2, 'tools/call', { name: 'coffee', arguments: { message: 'x' } }))
  await until(() => host.answers.length === 2)
  t.match(host.answers, [
    { id: 1, result: { capabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } } },
    { id: 2, result: { resultType: 'task', status: 'working' } }
  ])
  host.send('{bad')
  host.send('[]')
  host.send(`{"jsonrpc":"2.0","id":9,"method":"x","params":${'{"a":'.repeat(80)}1${'}'.repeat(80)}}`)
  host.send(`"${'x'.repeat(5_000_000)}"`)
  await until(() => host.answers.length === 6)
  t.match(host.answers.slice(2), [
    { id: null, error: { code: -32700 } },
    { id: null, error: { code: -32600 } },
    { id: 9, error: { code: -32602 } },
    { id: null, error: { code: -31413 } }
  ])
  host.send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 77 } })
  host.end()
  const { code, stderr, stdout } = await host.ended
  t.equal(code, 0)
  t.match(stderr, /^taskchart: The tasks are in memory, and end with the host\. To keep them, add --db FILE\.\n/)
  t.equal(stdout.split('\n').length, 7, 'nothing but frames')
})

await t.test('an older client is asked over stdin, and the user is who --principal says', async t => {
  const cwd = t.testdir({ 'agent.mjs': ASKS })
  const host = hosted(t, cwd, ['agent.mjs', '--principal', 'anna'])
  host.send({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-06-18',
      capabilities: { elicitation: {} },
      clientInfo: { name: 'h', version: '1' }
    }
  })
  await until(() => host.answers.length === 1)
  t.match(host.answers, [{ result: { protocolVersion: '2025-06-18', serverInfo: { name: 'Barista' } } }])
  host.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  host.send({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'coffee', arguments: { message: 'x' } } })
  await until(() => host.answers.length === 2)
  t.match(host.answers[1], { method: 'elicitation/create', params: { mode: 'form', message: 'Size?' } })
  host.send({ jsonrpc: '2.0', id: host.answers[1]?.['id'], result: { action: 'accept', content: { answer: 'small' } } })
  await until(() => host.answers.length === 3)
  t.match(host.answers[2], { id: 2, result: { content: [{ text: '[{"text":"small"}]' }, {}] } })
  const nobody = hosted(t, cwd, ['agent.mjs', '--principal', 'nobody'])
  nobody.send(request(1, 'tools/call', { name: 'coffee', arguments: { message: 'x' } }))
  await until(() => nobody.answers.length === 1)
  t.match(nobody.answers, [{ result: { isError: true, content: [{ text: 'You may not use sendMessage here.' }] } }])
})

await t.test('the command ends when it is stopped', async t => {
  const cwd = t.testdir({ 'agent.mjs': ASKS })
  const host = hosted(t, cwd, ['agent.mjs'])
  host.send(request(1, 'server/discover'))
  await until(() => host.answers.length === 1)
  host.stop()
  t.equal((await host.ended).code, 0)
})

await t.test(
  'the tasks of a host stay in the file, and a second host is told what to do',
  { skip: NO_SQLITE },
  async t => {
    const cwd = t.testdir({ 'agent.mjs': ASKS })
    const file = join(cwd, 'tasks.db')
    const first = hosted(t, cwd, ['agent.mjs', '--db', 'tasks.db'])
    first.send(request(1, 'tools/call', { name: 'coffee', arguments: { message: 'x' } }))
    await until(() => first.answers.length === 1)
    const second = hosted(t, cwd, ['agent.mjs', '--db', 'tasks.db'])
    second.send(request(1, 'server/discover'))
    second.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
    second.send({ jsonrpc: '2.0', id: 2, method: 'initialize', params: {} })
    await until(() => second.answers.length === 2)
    const message = new RegExp(
      `tasks\\.db is in use by process ${process.pid} on .* since .*\\. Two hosts cannot each start a program on one file\\. Run: taskchart serve AGENT --mcp --db tasks\\.db and give the hosts its address`
    )
    t.match(second.answers, [
      { id: 1, error: { message } },
      { id: 2, error: { message } }
    ])
    second.end()
    const { code, stderr } = await second.ended
    t.equal(code, 0)
    t.match(stderr, message)
    t.equal(stderr.trim().split('\n').length, 1, 'one line')
    first.end()
    await first.ended
    const store = sqliteStore(file)
    t.equal(await store.countOpen({ principal: 'anonymous' }), 1)
    await store.close()
  }
)

await t.test('wrong arguments and a file that is none end the command', { skip: NO_SQLITE }, async t => {
  const cwd = t.testdir({ 'agent.mjs': ASKS, 'notes.txt': 'These are words, and no database at all.' })
  for (const [argv, code, text] of [
    [['agent.mjs', '--principal', ''], 2, /--principal takes a name/],
    [[], 2, /AGENT\.ts\|js is missing/],
    [['agent.mjs', '--db', 'notes.txt'], 1, /is not a SQLite file/],
    [['agent.mjs', '--db', 'it is in use by me. /notes.db'], 1, /notes\.db cannot be used: its folder cannot be found/]
  ] as const)
    t.match(await hosted(t, cwd, argv).ended, { code, stderr: text })
})

await t.test('serve and dev speak MCP with --mcp, and print the line for a host', async t => {
  const cwd = t.testdir({ 'agent.mjs': ASKS })
  for (const command of ['serve', 'dev']) {
    for (const json of [false, true]) {
      const stop = new AbortController()
      const announced = deferred<string>()
      const argv = [
        command,
        'agent.mjs',
        '--mcp',
        '--port',
        '0',
        ...(json ? ['--json'] : ['--api-key', 'x'.repeat(16)])
      ]
      const ended = runCommand(argv, { cwd, signal: stop.signal, printed: announced.resolve })
      const text = await announced.promise
      const url = json ? (JSON.parse(text) as { mcp: string }).mcp : /(\S+) for hosts of MCP/.exec(text)?.[1]
      if (!json) t.match(text, `claude mcp add --transport http barista ${url} --header "Authorization: Bearer KEY"\n`)
      const answer = await fetch(String(url), {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
          'MCP-Protocol-Version': '2026-07-28',
          'Mcp-Method': 'server/discover',
          Authorization: `Bearer ${'x'.repeat(16)}`
        },
        body: JSON.stringify(request(1, 'server/discover'))
      })
      t.match(await answer.json(), { result: { supportedVersions: ['2026-07-28'] } }, command)
      stop.abort()
      await ended
    }
  }
})

await t.test('the line for a host has a name for an agent whose own has no Latin letters', async t => {
  const cwd = t.testdir({ 'agent.mjs': ASKS.replace("name: 'Barista'", "name: 'バリスタ'") })
  const stop = new AbortController()
  const announced = deferred<string>()
  const argv = ['serve', 'agent.mjs', '--mcp', '--port', '0']
  const ended = runCommand(argv, { cwd, signal: stop.signal, printed: announced.resolve })
  t.match(await announced.promise, /claude mcp add --transport http agent http:\S+\n/)
  stop.abort()
  await ended
})

await t.test('what others print goes to the other stream, until that is undone', t => {
  const [stream, other] = [new PassThrough(), new PassThrough()]
  for (const output of [stream, { write: (text: string) => void other.write(`own: ${text}`) }]) {
    const { write, undo } = divertOutput(stream, other, output)
    stream.write('printed ')
    write('frame ')
    undo()
    stream.write('after ')
  }
  t.equal(String(stream.read()), 'frame after after ')
  t.equal(String(other.read()), 'printed printed own: frame ')
  t.end()
})

await t.test('a line of a host ends with LF, and only the beginning of a very long one is kept', async t => {
  const input = new PassThrough()
  const { ask } = lineInput(input, new PassThrough(), () => {})
  const next = () => ask('', new AbortController().signal)
  const text = JSON.stringify({ text: 'one\u2028two\u2029three\u0085' })
  const [first, ...others] = Buffer.from('é\n')
  for (const part of [`${text}\n`, `${text}\r\n`, '\n', 'a\nb\nhal', 'f\n', Buffer.of(first ?? 0), Buffer.from(others)])
    input.write(part)
  for (const line of [text, text, '', 'a', 'b', 'half', 'é']) t.equal(await next(), line)
  for (let i = 0; i < 20; i += 1) input.write('x'.repeat(1024 * 1024))
  input.end('yz\nnext\nend')
  const long = (await next()) ?? ''
  t.equal(long.length, 8 * 1024 * 1024)
  t.notMatch(long, /[yz]/)
  for (const line of ['next', 'end', undefined]) t.equal(await next(), line)
})
