import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { z } from 'zod'
import { apiKey } from '../../../../adapters/auth/schemes.ts'
import { CommandError, EXIT } from '../../../../adapters/cli/command.ts'
import { failureOf } from '../../../../adapters/cli/failures.ts'
import { A2AError } from '../../../../machines/protocol/errors.ts'
import { failed, inputRequired, reply } from '../../../../runtime/index.ts'
import { runCommand, type Ended, type Surroundings } from '../../../fixtures/cli/run-command.ts'
import { unusedPort } from '../../../fixtures/network/unused-port.ts'
import { body, httpAgent, result } from '../../../fixtures/peers/scripted-http.ts'
import { scripted } from '../../../fixtures/peers/scripted-agent.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'
import { officialAgent } from '../../../fixtures/servers/official-agent.ts'
import { obedient, serve } from '../../../fixtures/servers/served-agent.ts'

/** The text of a server that answers every request in this way. */
async function answering(t: Test, status: number, answer: string): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status).end(answer)).listen(0, '127.0.0.1')
  t.teardown(() => server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** An agent over WebSocket that answers these methods, and has no others. */
function saying(t: Test, answers: Record<string, object[]>): Promise<string> {
  const none = [{ error: { code: -32_601, message: 'There is no such method.' } }]
  const methods = ['SendMessage', 'SendStreamingMessage', 'GetTask', 'ListTasks', 'CancelTask', 'SubscribeToTask']
  return scripted(t, { ...Object.fromEntries(methods.map(method => [method, none])), ...answers })
}

/** A task with these states, one after the other, by a stream that stays open after the last. */
async function passing(t: Test, ...states: readonly string[]): Promise<string> {
  const task = { id: 't1', contextId: 'c1' }
  const events = states.map((state, i) => ({
    result:
      i === 0
        ? { task: { ...task, status: { state } } }
        : { statusUpdate: { taskId: 't1', contextId: 'c1', status: { state } } }
  }))
  const last = { ...task, status: { state: states.at(-1) } }
  return saying(t, { SendStreamingMessage: events, SubscribeToTask: events, GetTask: [{ result: last }] })
}

/** An interface of a card that has nothing else. */
const THIN = { url: 'http://127.0.0.1:1/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }

const bearerKey = apiKey({ keys: { ann: 'secret-of-16-chars' }, header: 'authorization' })

/** The situations in which a command is run, by their names. */
async function situations(t: Test) {
  const ours = await serve(t, { work: obedient })
  const message = await serve(t, { negotiate: () => reply('hi') })
  const failing = await serve(t, { work: () => failed('No paint left.') })
  const still = await serve(t, { work: obedient, capabilities: { streaming: false } })
  const locked = await serve(t, { work: obedient }, { authenticate: () => undefined })
  const extended = await serve(
    t,
    { work: obedient, extendedCard: { description: 'More.' } },
    { authenticate: bearerKey }
  )
  const badExtended = await httpAgent(t)
  badExtended.script(result({ name: 'A', supportedInterfaces: 'all' }))
  const refusing = await httpAgent(t)
  refusing.script(body('', {}, 401))
  const official = await officialAgent(t, ['HTTP+JSON'])
  const [nobody, noCard, badCard] = [
    `http://127.0.0.1:${await unusedPort()}/`,
    await answering(t, 404, ''),
    await answering(t, 200, '{"name":"A","supportedInterfaces":"all"}')
  ]
  return {
    ours: ours.url,
    message: message.url,
    failing: failing.url,
    still: still.url,
    locked: locked.url,
    extended: extended.url,
    thinCard: await answering(t, 200, JSON.stringify({ name: 'A', supportedInterfaces: [THIN] })),
    badExtended: badExtended.url,
    refusing: refusing.url,
    official: official.url,
    nobody,
    noCard,
    badCard,
    noJson: await answering(t, 200, 'hello'),
    authorizing: await passing(t, 'TASK_STATE_SUBMITTED', 'TASK_STATE_AUTH_REQUIRED'),
    strange: await saying(t, {
      GetTask: [{ result: { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_COMPLETED' } } }],
      SubscribeToTask: [
        { result: { message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'hi' }] } } },
        { streamEnd: true }
      ]
    }),
    unread: await saying(t, { SendStreamingMessage: [{ result: { task: { id: 1 } } }, { streamEnd: true }] }),
    empty: await saying(t, { SendStreamingMessage: [{ streamEnd: true }] })
  }
}

/** The members of the one document of JSON on stdout, or the code of the error in it. */
function shapeOf({ stdout }: Ended): string {
  const lines = stdout.split('\n')
  if (lines.length !== 2 || lines[1] !== '') return `not one line: ${stdout}`
  const document = JSON.parse(stdout) as { readonly error?: { readonly code?: string } }
  return document.error?.code ?? Object.keys(document).filter(isTelling).join(' ')
}

/** Whether a member distinguishes one kind of answer from another. */
function isTelling(name: string): boolean {
  return ['task', 'message', 'status', 'tasks', 'supportedInterfaces'].includes(name)
}

await t.test('the exit code says whether the command has worked, and -o json is one document', async t => {
  const places = await situations(t)
  const opened = async (text: string): Promise<string> =>
    JSON.parse((await runCommand(['send', places.ours, text, '-o', 'json'])).stdout).task.id
  const [asking, done] = [await opened('ask'), await opened('hi')]
  const rows: [keyof typeof places, readonly string[], number, string][] = [
    ['ours', ['send', '@', 'hi'], 0, 'task'],
    ['ours', ['send', '@', 'hi', '--exit-status'], 0, 'task'],
    ['ours', ['send', '@', 'ask'], 0, 'task'],
    ['ours', ['send', '@', 'ask', '--exit-status'], 11, 'task'],
    ['ours', ['send', '@', 'wait', '--async'], 0, 'task'],
    ['ours', ['send', '@', 'wait', '--no-wait', '--exit-status'], 0, 'task'],
    ['ours', ['send', '@', 'hi', '--return-immediately'], 0, 'task'],
    ['ours', ['send', '-a', '@', 'hi'], 0, 'task'],
    ['ours', ['send', '-e', '@', '--text', 'hi'], 0, 'task'],
    ['ours', ['send', '@', 'hi', '--task-id', 'nope'], 1, 'TaskNotFoundError'],
    ['ours', ['send', '@'], 2, 'A2ACLI_ERR_USAGE'],
    ['ours', ['send', '@', 'hi', '--task', 'a', '--task-id', 'b'], 2, 'A2ACLI_ERR_USAGE'],
    ['ours', ['send', '@', 'hi', '--nope'], 2, 'A2ACLI_ERR_USAGE'],
    ['ours', ['send', '@', 'hi', '--a2a-version', '0.3'], 1, 'VersionNotSupportedError'],
    ['ours', ['watch', '@', done], 0, 'status'],
    ['ours', ['watch', '@', asking, '--exit-status'], 11, 'status'],
    ['ours', ['task', 'subscribe', '@', done], 0, 'status'],
    ['ours', ['task', 'get', '@', asking], 0, 'status'],
    ['ours', ['task', 'get', '@', asking, '--wait', '--history', '0'], 0, 'status'],
    ['ours', ['task', 'get', '@', asking, '--history', 'all'], 2, 'A2ACLI_ERR_USAGE'],
    ['ours', ['task', 'get', '@', 'nope'], 1, 'TaskNotFoundError'],
    ['ours', ['tasks', 'show', '@', asking], 0, 'status'],
    ['ours', ['tasks', 'ls', '@'], 0, 'tasks'],
    ['ours', ['task', 'list', '-a', '@', '--context-id', 'none'], 0, 'tasks'],
    ['ours', ['task', 'ls', '--endpoint', '@', '--limit', '1'], 0, 'tasks'],
    ['ours', ['task', 'cancel', '@', 'nope'], 1, 'TaskNotFoundError'],
    ['ours', ['card', '@'], 0, 'supportedInterfaces'],
    ['ours', ['card', 'get', '-a', '@'], 0, 'supportedInterfaces'],
    ['ours', ['card', 'get', '@', '--validate'], 0, 'supportedInterfaces'],
    ['ours', ['card', 'get', '@', '--extended'], 1, 'UnsupportedOperationError'],
    ['ours', ['card', '@', '--extended=yes'], 2, 'A2ACLI_ERR_USAGE'],
    [
      'extended',
      ['card', 'get', '@', '--extended', '--bearer', 'secret-of-16-chars', '--validate'],
      0,
      'supportedInterfaces'
    ],
    ['extended', ['card', 'get', '@', '--extended'], 4, 'A2ACLI_ERR_CREDENTIALS_MISSING'],
    ['extended', ['card', 'get', '@', '--extended', '--bearer', 'other'], 4, 'A2ACLI_ERR_AUTH_FAILED'],
    ['nobody', ['card', 'get', '@', '--extended'], 3, 'A2ACLI_ERR_UNREACHABLE'],
    ['badCard', ['card', 'get', '@', '--extended'], 1, 'A2ACLI_ERR_CARD_INVALID'],
    ['thinCard', ['send', '@', 'hi'], 3, 'A2ACLI_ERR_UNREACHABLE'],
    ['thinCard', ['watch', '@', 't1'], 3, 'A2ACLI_ERR_UNREACHABLE'],
    ['thinCard', ['card', 'get', '@'], 0, 'supportedInterfaces'],
    ['thinCard', ['card', 'get', '@', '--validate'], 1, 'A2ACLI_ERR_CARD_INVALID'],
    ['badExtended', ['card', 'get', '@', '--extended'], 1, 'A2ACLI_ERR_CARD_INVALID'],
    ['still', ['send', '@', 'hi', '--poll-interval', '1ms'], 0, 'task'],
    ['still', ['send', '@', 'hi', '--poll-interval', '0s'], 2, 'A2ACLI_ERR_USAGE'],
    ['ours', ['card', '@', '--poll-interval', '1s'], 2, 'A2ACLI_ERR_USAGE'],
    ['message', ['send', '@', 'hi', '--exit-status'], 0, 'message'],
    ['message', ['send', '@', 'hi', '--async'], 0, 'message'],
    ['failing', ['send', '@', 'hi'], 0, 'task'],
    ['failing', ['send', '@', 'hi', '--exit-status'], 10, 'task'],
    ['still', ['send', '@', 'hi'], 0, 'task'],
    ['locked', ['send', '@', 'hi'], 4, 'A2ACLI_ERR_CREDENTIALS_MISSING'],
    ['locked', ['send', '@', 'hi', '--bearer', 'secret'], 4, 'A2ACLI_ERR_AUTH_FAILED'],
    ['refusing', ['task', 'list', '@'], 4, 'A2ACLI_ERR_CREDENTIALS_MISSING'],
    ['refusing', ['task', 'cancel', '@', 't1'], 4, 'A2ACLI_ERR_CREDENTIALS_MISSING'],
    ['official', ['send', '@', 'hi'], 0, 'message'],
    ['official', ['send', '@', 'boat'], 0, 'task'],
    ['official', ['send', '@', 'ask', '--exit-status'], 11, 'task'],
    ['official', ['task', 'get', '@', 'nope'], 1, 'TaskNotFoundError'],
    ['official', ['card', 'get', '@'], 0, 'supportedInterfaces'],
    ['nobody', ['send', '@', 'hi'], 3, 'A2ACLI_ERR_UNREACHABLE'],
    ['nobody', ['watch', '@', 't1'], 3, 'A2ACLI_ERR_UNREACHABLE'],
    ['nobody', ['task', 'list', '@'], 3, 'A2ACLI_ERR_UNREACHABLE'],
    ['nobody', ['card', '@'], 3, 'A2ACLI_ERR_UNREACHABLE'],
    ['noCard', ['send', '@', 'hi'], 3, 'A2ACLI_ERR_CARD_NOT_FOUND'],
    ['noCard', ['card', 'get', '@'], 3, 'A2ACLI_ERR_CARD_NOT_FOUND'],
    ['badCard', ['send', '@', 'hi'], 1, 'A2ACLI_ERR_CARD_INVALID'],
    ['badCard', ['card', 'get', '@'], 1, 'A2ACLI_ERR_CARD_INVALID'],
    ['noJson', ['card', 'get', '@'], 1, 'A2ACLI_ERR_CARD_INVALID'],
    ['authorizing', ['send', '@', 'hi'], 0, 'task'],
    ['authorizing', ['send', '@', 'hi', '--exit-status'], 11, 'task'],
    ['authorizing', ['watch', '@', 't1', '--exit-status'], 11, 'status'],
    ['strange', ['watch', '@', 't1'], 0, 'message'],
    ['unread', ['send', '@', 'hi'], 1, 'InvalidAgentResponseError'],
    ['empty', ['send', '@', 'hi'], 1, 'A2ACLI_ERR_INTERNAL']
  ]
  for (const [place, words, code, shape] of rows) {
    const argv = words.map(word => (word === '@' ? places[place] : word))
    const name = `${place}: ${words.join(' ')}`
    const json = await runCommand([...argv, '-o', 'json'])
    t.strictSame([json.code, shapeOf(json)], [code, shape], name)
    // As text it goes on watching a task that waits.
    if (words[0] !== 'watch' || code !== EXIT.waiting) t.equal((await runCommand(argv)).code, code, `${name}, as text`)
  }
})

await t.test('with -o json stdout is one document, whatever is asked of whom', async t => {
  const places = await situations(t)
  const commands = [
    ['send', '@', 'hi'],
    ['send', '@', 'ask', '--async', '--out', 'file/below'],
    ['send', '@', '--data', '{', '--timeout', '1h'],
    ['watch', '@', 't1', '--out', 'file/below'],
    ['card', '@'],
    ['tasks', 'ls', '@'],
    ['task', 'get', '@', 't1'],
    ['task', 'cancel', '@', 't1'],
    ['nope', '@']
  ]
  const cwd = t.testdir({ file: '' })
  for (const [name, place] of Object.entries(places)) {
    for (const words of commands) {
      const argv = words.map(word => (word === '@' ? place : word))
      for (const output of [
        ['-o', 'json'],
        ['--output=json'],
        ['-ojson', '--exit-status'],
        ['-o', 'json', '--bearer', 'x']
      ]) {
        const ended = await runCommand([...argv, ...output], { cwd })
        t.notMatch(shapeOf(ended), /^not one line/, `${name}: ${[...words, ...output].join(' ')}`)
        t.equal(/Error$|ERR/.test(shapeOf(ended)), [1, 2, 3, 4, 5].includes(ended.code), `${name}: ${words.join(' ')}`)
      }
    }
  }
})

await t.test('lines of JSON end with the error', async t => {
  const { url } = await serve(t, { work: obedient })
  const stop = new AbortController()
  const { code, stdout } = await runCommand(['send', url, 'wait', '-o', 'json', '--stream'], {
    signal: stop.signal,
    heard: line => line.startsWith('working') && stop.abort()
  })
  const [first, ...others] = stdout.trimEnd().split('\n')
  t.equal(code, EXIT.stopped)
  t.match(JSON.parse(String(first)), { task: {} })
  t.match(JSON.parse(String(others.at(-1))), {
    error: { code: 'A2ACLI_ERR_INTERNAL', message: 'The command was stopped with Ctrl-C.', hint: /taskchart watch ws:/ }
  })
  const { id } = JSON.parse(String(first)).task as { readonly id: string }
  const shown = await runCommand(['task', 'list', url, '--json'])
  t.match(JSON.parse(shown.stdout), { id, status: {} }, 'a task has a line of its own')
  t.match(JSON.parse((await runCommand(['tasks', 'ls', url, '--json'])).stdout), { generation: 3, task: { id } })
  t.match(JSON.parse((await runCommand(['task', 'cancel', url, id, '--json'])).stdout), { id })
  t.match(await runCommand(['task', 'get', url, id]), { code: 0, stdout: new RegExp(`^task +${id}\n`) })
})

await t.test('an error has the number that the agent sent, over each binding', async t => {
  const { url } = await serve(t, { work: obedient }, {}, { port: 0 })
  const official = await officialAgent(t, ['JSONRPC', 'HTTP+JSON', 'GRPC'])
  const rows: [string, string, number][] = [
    [url, 'WEBSOCKET', -32_001],
    [official.url, 'JSONRPC', -32_001],
    [official.url, 'HTTP+JSON', 404],
    [official.url, 'GRPC', 5]
  ]
  for (const [place, binding, a2aCode] of rows) {
    const { stdout } = await runCommand(['task', 'get', place, 'nope', '-o', 'json', '--transport', binding])
    t.match(JSON.parse(stdout), { error: { code: 'TaskNotFoundError', a2aCode } }, binding)
  }
})

await t.test('an error is named as A2A or a2a-cli names it', async t => {
  const rows: [unknown, number, string][] = [
    [new A2AError('TaskNotFound'), 1, 'TaskNotFoundError'],
    [new A2AError('InternalError'), 1, 'InternalError'],
    [new A2AError('ParseError'), 1, 'JSONParseError'],
    [new A2AError('RateLimited'), 1, 'A2ACLI_ERR_INTERNAL'],
    [new A2AError('Forbidden'), 4, 'A2ACLI_ERR_AUTH_FAILED'],
    [new A2AError('DeadlineExceeded'), 5, 'A2ACLI_ERR_TIMEOUT'],
    [new A2AError('Overloaded', undefined, { cause: { code: 'none' } }), 3, 'A2ACLI_ERR_UNREACHABLE'],
    [new CommandError('No.'), 1, 'A2ACLI_ERR_INTERNAL'],
    [new CommandError('No.', { cause: new A2AError('Overloaded') }), 3, 'A2ACLI_ERR_UNREACHABLE'],
    [new CommandError('No.', { exitCode: EXIT.waiting, cause: new TypeError() }), 11, 'A2ACLI_ERR_INTERNAL'],
    ['nothing', 1, 'A2ACLI_ERR_INTERNAL']
  ]
  for (const [error, exitCode, code] of rows) t.match(failureOf(error), { exitCode, code, hint: null, a2aCode: null })
  t.match(failureOf(new CommandError('No key. Give one.', { hint: 'Give one.' })), {
    message: 'No key.',
    hint: 'Give one.'
  })
  t.match(failureOf(new CommandError('No.', { hint: 'Try again.' })), { message: 'No.', hint: 'Try again.' })
})

await t.test('--timeout ends the command and not the task', async t => {
  const { url, runtime } = await serve(t, { work: obedient })
  const clock = new TestClock()
  const late: Surroundings = { clock, heard: line => line.startsWith('working') && clock.increment(90_000) }
  const ended = await runCommand(['send', url, 'wait', '--timeout', '1m30s', '-o', 'json'], late)
  t.equal(ended.code, EXIT.timeout)
  const { error } = JSON.parse(ended.stdout) as { readonly error: { readonly hint: string } }
  const [, id = ''] = /watch \S+ (\S+)$/.exec(error.hint) ?? []
  t.equal((await runtime.getTask({ id })).status.state, 'TASK_STATE_WORKING')
  t.match(ended.stderr, 'The time of --timeout 1m30s has passed. A task that was opened continues.\n')

  const mute = createServer(() => clock.increment(1000)).listen(0, '127.0.0.1')
  t.teardown(() => mute.closeAllConnections())
  t.teardown(() => mute.close())
  await once(mute, 'listening')
  const place = `127.0.0.1:${(mute.address() as AddressInfo).port}`
  t.match(await runCommand(['card', place, '--timeout', '500ms', '-o', 'json'], { clock }), {
    code: EXIT.timeout,
    stdout: /"hint":null/
  })
  const stop = AbortSignal.abort()
  t.match(await runCommand(['card', place, '--timeout', '1'], { clock, signal: stop }), { code: EXIT.stopped })
  t.match(await runCommand(['send', url, 'hi', '--timeout', '2.5h']), { code: 0 })
  for (const wrong of ['soon', '0', '5x', '1m 5s', '90d'])
    t.match(await runCommand(['send', url, 'hi', '--timeout', wrong]), {
      code: 2,
      stderr: /--timeout takes a length such as 30s/
    })
})

await t.test('the parts of a message come in the order of the options', async t => {
  const { url } = await serve(t, {
    card: { name: 'All', defaultInputModes: ['text/plain', 'text/x', 'image/png', 'application/json'] },
    work: ({ message }) => ({ artifact: JSON.stringify(message.parts) })
  })
  const cwd = t.testdir({ 'boat.PNG': 'png', 'bytes.xyz': 'b', 'facts.json': '[1]', 'bad.json': '{' })
  const lines = ['{"from":', '"stdin"}']
  const input = { isTerminal: false, ask: async () => lines.shift() }
  const parts = async (...args: readonly string[]): Promise<unknown> =>
    JSON.parse((await runCommand(['send', url, ...args], { cwd, input })).stdout)
  t.strictSame(await parts('hi'), [{ text: 'hi' }])
  t.strictSame(
    await parts(
      '--text',
      'one',
      '--media-type',
      'text/x',
      '--file',
      'boat.PNG',
      'two',
      '--data',
      '-',
      '--data-part=facts.json'
    ),
    [
      { text: 'one', mediaType: 'text/x' },
      { raw: 'cG5n', filename: 'boat.PNG', mediaType: 'image/png' },
      { text: 'two' },
      { data: { from: 'stdin' } },
      { data: [1] }
    ]
  )
  t.strictSame(
    await parts(
      '--file-part',
      'bytes.xyz',
      '--file',
      'https://a.example/b.png',
      '--media-type',
      'image/png',
      '--data',
      ' {"a":1}',
      '--text-part',
      '3'
    ),
    [
      { raw: 'Yg==', filename: 'bytes.xyz' },
      { url: 'https://a.example/b.png', mediaType: 'image/png' },
      { data: { a: 1 } },
      { text: '3' }
    ]
  )
  const wrong: [readonly string[], RegExp][] = [
    [[], /"text" is missing\./],
    [['--media-type', 'text/x'], /"text" is missing\./],
    [['--media-type', 'text/x', 'hi'], /--media-type text\/x has to follow its part\./],
    [['hi', '--media-type', 'a/b', '--media-type', 'c/d'], /--media-type c\/d has to follow its part\./],
    [['one', 'two', '--text', 'x'], /"two" is one argument too many/],
    [['--file', 'none.png'], /--file none\.png cannot be read: ENOENT/],
    [['--data', 'none.json'], /--data none\.json cannot be read: ENOENT.* Data itself begins with \{ or \[\./],
    [['--data', 'bad.json'], /--data bad\.json is not JSON: /],
    [['--data', '{"a"'], /--data is not JSON: /],
    [['--data', '-'], /--data - is not JSON: /],
    [['hi', '--metadata', '[1]'], /--metadata takes an object as JSON/],
    [['hi', '--metadata', '{'], /--metadata takes an object as JSON/],
    [['hi', '--wait', '--async'], /--wait and --async exclude each other\./],
    [['hi', '-o', 'yaml'], /--output takes text or json, not "yaml"\./],
    [['hi', '-o', 'text', '--json'], /--json and --output text exclude each other\./],
    [['hi', '-x'], /There is no option -x\./],
    [['hi', '-o'], /-o needs a value\./],
    [['hi', '--binding', 'JSONRPC', '--transport', 'GRPC'], /--binding and --transport are the same option\./],
    [['hi', '--svc-param', 'x'], /--svc-param takes NAME:VALUE/],
    [['hi', '--svc-param', 'A2A-Version: 1.0'], /The version has an option of its own: --a2a-version\./],
    [
      ['hi', '--a2a-version', '2.0'],
      /"2\.0" is not a version of A2A that this client speaks\. Use 1\.1 or 1\.0 or 0\.3\./
    ]
  ]
  for (const [args, message] of wrong)
    t.match(await runCommand(['send', url, ...args], { cwd }), { code: 2, stderr: message }, args.join(' '))
})

await t.test('data answers a question with the schema of an object', async t => {
  const { url } = await serve(t, {
    work: async function* () {
      const { size } = yield* inputRequired('Which?', { schema: z.object({ size: z.enum(['small', 'large']) }) })
      return { artifact: size }
    }
  })
  const asked = await runCommand(['send', url, 'hi', '-o', 'json'])
  const { task } = JSON.parse(asked.stdout) as { readonly task: { readonly id: string } }
  const answer = (data: string) => runCommand(['send', url, '--data', data, '--task-id', task.id])
  t.match(await answer('{"size":"huge"}'), { code: 1, stderr: /The answer is not valid/ })
  t.match(await answer('{"size":"large"}'), { code: 0, stdout: 'large\n' })
})

await t.test('metadata, service parameters and the version reach the agent over each binding', async t => {
  const { url, headers } = await officialAgent(t, ['HTTP+JSON', 'JSONRPC'])
  for (const binding of ['JSONRPC', 'HTTP+JSON']) {
    headers.length = 0
    const version = ['--a2a-version', '1.0', '--metadata', '{"team":"blue"}']
    const parameters = ['--svc-param', 'X-Team: blue', '--svc-param', 'a2a-extensions:urn:x']
    const ended = await runCommand(['send', url, 'boat', '--binding', binding, ...version, ...parameters])
    t.equal(ended.code, 0, ended.stderr)
    t.match(
      ended.stderr,
      / --binding \S+ --a2a-version 1\.0 --svc-param "a2a-extensions: …" --svc-param "x-team: …"\n$/
    )
    const sent = headers.filter(({ 'x-team': team }) => team === 'blue')
    t.ok(sent.length >= 2, 'the stream and the read of the result')
    for (const header of sent) t.match(header, { 'a2a-version': '1.0', 'a2a-extensions': /,urn:x$/ })
  }
  const seen: unknown[] = []
  const ours = await serve(t, { work: ({ request }) => void seen.push(request) })
  t.equal((await runCommand(['send', ours.url, 'hi', '--metadata', '{"team":"blue"}'])).code, 0)
  t.match(JSON.stringify(seen), '"team":"blue"')
})

await t.test('--transport lists bindings in order, and --bearer is a token', async t => {
  const { url, headers } = await officialAgent(t, ['JSONRPC', 'HTTP+JSON'])
  const given = ['--transport', 'GRPC', '--transport', 'HTTP+JSON', '--transport', 'JSONRPC', '--bearer', 'secret']
  const { code, stderr } = await runCommand(['send', url, 'boat', ...given])
  t.equal(code, 0)
  t.match(stderr, / --binding GRPC --binding HTTP\+JSON --binding JSONRPC --bearer …\n$/)
  t.notMatch(stderr, 'secret')
  t.match(headers.at(-1), { authorization: 'Bearer secret', accept: /^application\/a2a\+json/ })
  t.match(await runCommand(['send', url, 'boat', '--bearer', 'two words']), {
    code: 2,
    stderr: /--bearer takes printable/
  })
})

await t.test('an agent is a URL, a host, or a file with its card', async t => {
  const { url } = await serve(t, { negotiate: () => reply('hi') }, {}, { port: 0 })
  const { host, origin } = new URL(url.replace('ws', 'http'))
  const supportedInterfaces = [{ url, protocolBinding: 'WEBSOCKET', protocolVersion: '1.0' }]
  const card = { name: 'A', version: '1', supportedInterfaces }
  const cwd = t.testdir({
    'card.json': JSON.stringify(card),
    'old.json': JSON.stringify({ name: 'Old', url: `${origin}/rpc`, protocolVersion: '0.3.0' }),
    'empty.json': '{}',
    'none.json': JSON.stringify({ supportedInterfaces: [] }),
    'odd.json': JSON.stringify({ supportedInterfaces: 1 }),
    'text.json': 'text',
    'list.json': '[]'
  })
  for (const place of [url, host, `${host}/.well-known/agent-card.json`, 'card.json', join(cwd, 'card.json')]) {
    t.match(await runCommand(['send', place, 'hi', '-o', 'json'], { cwd }), { code: 0 }, place)
    t.match(
      await runCommand(['send', 'hi', '-a', place], { cwd }),
      { stdout: 'hi\n', stderr: `send ${place} "…"` },
      place
    )
    t.match(await runCommand(['tasks', 'ls', place], { cwd }), { code: 0 }, place)
  }
  t.match(await runCommand(['card', 'card.json', '--json'], { cwd }), { code: 0, stdout: /^\{"name":"A"/ })
  t.match(await runCommand(['card', 'old.json'], { cwd }), { code: 0, stdout: /^Old[^]*A2A 0\.3/ })
  for (const file of ['empty.json', 'none.json', 'odd.json', 'text.json', 'list.json'])
    t.match(
      await runCommand(['send', file, 'hi', '-o', 'json'], { cwd }),
      { code: 1, stdout: /A2ACLI_ERR_CARD_INVALID/ },
      file
    )
  t.match(await runCommand(['send', 'gone.json', 'hi', '-o', 'json'], { cwd }), {
    code: 3,
    stdout: /A2ACLI_ERR_CARD_NOT_FOUND/
  })
  const remote = await runCommand(['card', 'a.invalid', '-o', 'json'])
  t.match(remote, { code: 3, stdout: 'Nobody answers at https://a.invalid/' }, 'another host is called with TLS')
  t.match(await runCommand(['tasks', 'ls', '--db', 'x.db', '--svc-param', 'a:b'], { cwd }), {
    code: 2,
    stderr: /--svc-param is for a URL/
  })
})
