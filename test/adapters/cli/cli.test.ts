import { generateKeyPairSync } from 'node:crypto'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import t from 'tap'
import { COMMANDS, loadCommand } from '../../../adapters/cli/commands.ts'
import { wholeOutput } from '../../../adapters/cli/process/streams.ts'
import { saveGiven } from '../../../adapters/cli/talk/artifacts.ts'
import { writeNew } from '../../../adapters/cli/files.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { serve } from '../../fixtures/servers/served-agent.ts'

/** Runs `taskchart`. */
function run(argv: readonly string[], signal = new AbortController().signal) {
  return runCommand(argv, { signal })
}

await t.test('help', async t => {
  for (const argv of [
    [],
    ['--help'],
    ['-h'],
    ['help'],
    ['help', '--help'],
    ['help', '-h'],
    ['--help', 'help'],
    ['help', 'help']
  ]) {
    await t.test(`taskchart ${argv.join(' ')} shows all commands and the exit codes`, async t => {
      const { code, stdout, stderr } = await run(argv)
      t.equal(code, 0)
      t.match(
        stdout,
        /taskchart serve .*\n.*taskchart mcp .*\n.*taskchart cluster .*\n.*taskchart chat .*\n.*taskchart send .*\n.*taskchart watch .*\n.*taskchart card [\s\S]*Exit codes:/
      )
      t.equal(stderr, '')
    })
  }

  for (const argv of [
    ['help', 'send'],
    ['send', '--help'],
    ['send', 'ws://x', '-h'],
    ['--help', 'send'],
    ['-h', 'send'],
    ['help', 'send', '--help'],
    ['help', '--help', 'send']
  ]) {
    await t.test(`taskchart ${argv.join(' ')} shows the usage and options of send`, async t => {
      const { code, stdout } = await run(argv)
      t.equal(code, 0)
      t.match(stdout, /^Usage: taskchart send URL "text"[\s\S]*--reference ID/)
    })
  }

  await t.test('each help fits its terminal, or 120 columns, and has every word', async t => {
    const wordsOf = (text: string) => text.split(/\s+/).filter(Boolean)
    for (const entry of COMMANDS) {
      const { usage, details } = await loadCommand(entry)
      for (const columns of [undefined, 80, 200]) {
        const screen = columns && { columns, hasColours: false }
        const { stdout } = await runCommand(['help', entry.name], { ...(screen && { screen }) })
        for (const line of stdout.split('\n')) t.ok(line.length <= Math.min(columns ?? 120, 120), line)
        const words = wordsOf(stdout)
        const forms = usage.flatMap(wordsOf)
        t.strictSame(words.slice(0, 1 + forms.length), ['Usage:', ...forms])
        t.strictSame(words.slice(-wordsOf(details).length), wordsOf(details))
      }
    }
    const { stdout } = await runCommand(['help', 'serve'], { screen: { columns: 60, hasColours: false } })
    t.match(stdout, /^Usage: taskchart serve AGENT\.ts\|js .*\n(?: {18}\S.*\n)+\n/)
    t.match(stdout, '\n  --api-key KEY   require this key of at least 16 characters\n                  (Authorization')
  })

  await t.test('taskchart --version shows the version of the package', async t => {
    t.match(await run(['--version']), { code: 0, stdout: /^\d+\.\d+\.\d+.*\n$/ })
  })
})

await t.test('wrong usage is reported with the usage line and exit code 2', async t => {
  const cases: [string[], RegExp][] = [
    [['nope'], /There is no command nope\. There are: init, dev, [^\n]*\nUsage: taskchart COMMAND/],
    [['help', 'nope'], /There is no command nope\./],
    [['--help', 'nope'], /There is no command nope\./],
    [['--nope'], /There is no option --nope here\./],
    [['--verison'], /There is no option --verison here\. Did you mean --version\?/],
    [['sned'], /There is no command sned\. Did you mean send\?/],
    [['dv'], /There is no command dv\. Did you mean dev\?/],
    [['gra'], /There is no command gra\. Did you mean graph\?/],
    [['send', 'ws://localhost', 'hi', '--josn'], /There is no option --josn\. Did you mean --json\?/],
    [['send', 'ws://localhost', 'hi', '--json=1'], /--json takes no value\./],
    [
      ['send', 'ws://localhost', 'hi', '--context', '-x'],
      /--context needs a value\. For one that begins with a dash write --context=-x\./
    ],
    [['help', '--color'], /--color takes always, never, auto\./],
    [['help', '--color=red'], /--color takes always, never, auto, not "red"\./],
    [['constructor'], /There is no command constructor\./],
    [['send'], /URL is missing\.\nUsage: taskchart send URL/],
    [['send', 'ws://localhost'], /"text" is missing\./],
    [['send', 'ws://localhost', 'two', 'words'], /"words" is one argument too many\. Put quotes/],
    [['send', 'ws://localhost', 'hi', '--nope'], /There is no option --nope\. There are: --text, /],
    [['send', 'ws://localhost', 'hi', '--context'], /--context needs a value\./],
    [['send', 'ws://localhost', 'hi', '--context', 'a', '--context=b'], /--context was given twice\. Give it once\./],
    [['send', 'ftp://localhost', 'hi'], /"ftp:\/\/localhost" is not the address of an agent/],
    [['send', 'ws://localhost', 'hi', '--api-key', 'two words'], /--api-key takes printable ASCII/],
    [['send', '--', 'ws://localhost', 'hi', '--help'], /"--help" is one argument too many/],
    [['watch'], /URL is missing\.\nUsage: taskchart watch URL TASK/],
    [['watch', 'ws://localhost'], /TASK is missing\./],
    [['watch', 'ws://localhost', 't1', 't2'], /"t2" is one argument too many\./],
    [
      ['watch', 'ws://localhost', '-t1'],
      /There is no option -t\. For an argument that begins with a dash, write -- before it\./
    ],
    [['watch', 'ws://localhost', 't1', '--context', 'c1'], /There is no option --context\. There are: --out, /],
    [['watch', 'somewhere', 't1'], /"somewhere" is not the address of an agent/],
    [['watch', 'ws://localhost', 't1', '--api-key', 'two words'], /--api-key takes printable ASCII/],
    [['card'], /URL is missing\.\nUsage: taskchart card URL/],
    [['card', 'nowhere'], /"nowhere" is not the address of an agent/],
    [['serve'], /AGENT\.ts\|js is missing\.\nUsage: taskchart serve AGENT/],
    [['serve', 'agent.js', '--port', 'http'], /--port takes a number from 0 to 65535, not "http"/],
    [['serve', 'agent.js', '--port', '65536'], /--port takes a number from 0 to 65535/],
    [['serve', 'agent.js', '--api-key', ''], /--api-key takes printable ASCII/],
    [
      ['serve', 'agent.js', '--api-key', 'k'],
      /^taskchart: The key of --api-key is too short\. It needs at least 16 characters, or it can be guessed\. Make one with: openssl rand -base64 24\n/
    ],
    [['dev', 'agent.js', '--api-key', 'fifteen-letters'], /^taskchart: The key of --api-key is too short\./]
  ]
  for (const [argv, message] of cases) {
    await t.test(`taskchart ${argv.join(' ')}`, async t => {
      const { code, stdout, stderr } = await run(argv)
      t.equal(code, 2)
      t.equal(stdout, '')
      t.match(stderr, message)
      t.match(stderr, /\nUsage: taskchart .*\n(?: {7}taskchart .*\n)*$/)
    })
  }
})

await t.test('colours', async t => {
  const { url } = await serve(t, { work: () => {} })
  const tty = { columns: 80, hasColours: true }
  const green = '\u001b[32mcompleted\u001b[39m\n'

  await t.test('are used on a terminal that has them, unless --color overrides it', async t => {
    t.match((await runCommand(['send', url, 'hi', '--color', 'always'])).stderr, green)
    t.match((await runCommand(['--color=always', 'tasks', 'ls', url])).stdout, '  \u001b[32mcompleted\u001b[39m ')
    t.match((await runCommand(['send', url, 'hi', '--color', 'auto'], { terminal: tty })).stderr, green)
    t.notMatch((await runCommand(['send', url, 'hi'])).stderr, '\u001b')
    t.notMatch(
      (await runCommand(['send', url, 'hi', '--color', 'never'], { terminal: tty, screen: tty })).stderr,
      '\u001b[3'
    )
    t.match(
      (await runCommand(['nope', '--color', 'always'])).stderr,
      '\u001b[31mtaskchart:\u001b[39m There is no command nope'
    )
  })

  await t.test('ignore arguments after --', async t => {
    t.match(await runCommand(['send', '--', url, '--color']), { code: 0 })
  })
})

await t.test('a command that is stopped while it is loaded does nothing', async t => {
  const cwd = t.testdir({
    'agent.js':
      "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'Runner' }, work: async () => {} })"
  })
  for (const argv of [
    ['init', 'boats', '--kind', 'function'],
    ['graph', 'agent.js', '--format', 'mermaid'],
    ['db', 'migrate', 'tasks.db']
  ]) {
    t.strictSame(
      await runCommand(argv, { cwd, signal: AbortSignal.abort() }),
      { code: 130, stdout: '', stderr: '' },
      argv.join(' ')
    )
  }
  t.strictSame(readdirSync(cwd), ['agent.js'])
})

await t.test('a command can be stopped while a module loads, which may never end', async t => {
  const cwd = t.testdir({ 'agent.mjs': 'globalThis.loading()\nawait new Promise(() => {})' })
  for (const name of ['paths', 'prove', 'test', 'graph', 'diff', 'coverage']) {
    const stop = new AbortController()
    Object.assign(globalThis, { loading: () => setImmediate(() => stop.abort()) })
    writeFileSync(join(cwd, `${name}.mjs`), readFileSync(join(cwd, 'agent.mjs')))
    t.strictSame(
      await runCommand([name, `${name}.mjs`, ...(['diff', 'coverage'].includes(name) ? ['--db', 'tasks.db'] : [])], {
        cwd,
        signal: stop.signal
      }),
      { code: 130, stdout: '', stderr: '' },
      name
    )
  }
})

await t.test('a module that never loads is an error', async t => {
  const cwd = t.testdir({ 'agent.mjs': 'await new Promise(() => {})' })
  for (const name of ['serve', 'paths']) {
    const { status, stderr } = spawnSync(process.execPath, [resolve('dist/adapters/cli/bin.js'), name, 'agent.mjs'], {
      cwd
    })
    t.equal(status, 1, name)
    t.match(stderr.toString(), /^taskchart: The command waits for something that never happens\. [^\n]*\n$/, name)
  }
})

await t.test('a module that ends the process is an error, and what it prints is no result', t => {
  const agent =
    "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'A' }, work: async () => {} })"
  const cwd = t.testdir({
    'agent.mjs': agent,
    'ends.mjs': 'process.exit(0)',
    'throws.mjs': `setImmediate(() => { throw new Error('late') })\nawait new Promise(() => {})`,
    'prints.mjs': `console.log('printed')\n${agent}`
  })
  const run = (...args: string[]) => {
    const bin = resolve('dist/adapters/cli/bin.js')
    const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], { cwd, encoding: 'utf8' })
    return { status, stdout, stderr }
  }
  const ended = "taskchart: The agent's code ended the process, so the command is not done. Look for process.exit.\n"
  for (const args of [['diff', 'agent.mjs'], ['graph']])
    t.strictSame(run(...args, 'ends.mjs'), { status: 1, stdout: '', stderr: ended }, args.join(' '))
  const thrown = run('diff', 'agent.mjs', 'throws.mjs')
  t.match(thrown, { status: 1, stdout: '', stderr: /Error: late/ })
  t.notMatch(thrown.stderr, 'Look for process.exit')
  const { stdout, ...printed } = run('diff', 'agent.mjs', 'prints.mjs', '--json')
  t.match(printed, { status: 11, stderr: 'printed\n' })
  t.match(JSON.parse(stdout), { work: { verdict: 'depends' } })
  t.end()
})

await t.test(
  'results that cannot be written are an error',
  { skip: !existsSync('/dev/full') && 'there is no /dev/full' },
  async t => {
    const { status, stderr } = spawnSync(process.execPath, ['dist/adapters/cli/bin.js', '--help'], {
      stdio: ['ignore', openSync('/dev/full', 'w'), 'pipe']
    })
    t.equal(status, 1)
    t.match(
      stderr.toString(),
      /^taskchart: The output is incomplete, because it could not be written: ENOSPC: [^\n]*\. Make room, and run the command again\.\n$/
    )
  }
)

await t.test(
  'what a full disk does not take of an output or of a file is an error',
  { skip: !existsSync('/dev/full') && 'there is no /dev/full' },
  async t => {
    const errors: unknown[] = []
    const full = { fd: openSync('/dev/full', 'w') }
    t.teardown(() => closeSync(full.fd))
    wholeOutput(full as never, error => errors.push(error)).write('x', () => errors.push('written'))
    t.match(errors, [{ code: 'ENOSPC' }])
    const cwd = t.testdir({ file: '' })
    const free = { fd: openSync(join(cwd, 'file'), 'w') }
    t.teardown(() => closeSync(free.fd))
    const output = wholeOutput(free as never, error => errors.push(error))
    output.write('one ')
    output.write('two', () => errors.push('written'))
    t.strictSame([readFileSync(join(cwd, 'file'), 'utf8'), errors.length, errors[1]], ['one two', 2, 'written'])
    await t.rejects(writeNew(join(cwd, 'none', 'new.txt'), 'x'), { code: 'ENOENT' })
    await t.rejects(writeNew(join(cwd, 'file'), 'x'), { code: 'EEXIST' })
    await t.rejects(saveGiven({ name: 'a.txt', filename: undefined, mediaType: undefined, text: 'x' }, '/proc', cwd), {
      message: /^\/proc\/a\.txt could not be saved: .*Give another folder with --out\.$/
    })
  }
)

await t.test('a command whose output finds room in part is an error, and leaves no other part', async t => {
  const cwd = t.testdir()
  const bin = resolve('dist/adapters/cli/bin.js')
  // The limit on the size of files is 512 bytes. The measurements of this process would meet it too.
  const limited = (line: string) =>
    spawnSync('sh', ['-c', `ulimit -f 1; ${line}`, process.execPath, bin], {
      cwd,
      env: { PATH: process.env['PATH'] },
      encoding: 'utf8'
    })
  const { status, stderr } = limited('"$0" "$1" --help > help.txt')
  t.equal(status, 1)
  t.match(stderr, /^taskchart: The output is incomplete, because it could not be written: EFBIG/)
  t.equal(
    readFileSync(join(cwd, 'help.txt'), 'utf8'),
    (await run(['--help'])).stdout.slice(0, 512),
    'which is the shell\u2019s file'
  )
  const made = limited('"$0" "$1" init boats --kind chart')
  t.match([made.status, made.stderr], [1, /The project could not be written: EFBIG/])
  t.strictSame(readdirSync(join(cwd, 'boats')), [])
})

await t.test('a command without a package that it needs begins nothing', async t => {
  const agent =
    "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'A' }, work: async () => {} })"
  const bin = resolve('dist/adapters/cli/bin.js')
  const database = 'postgres://127.0.0.1:9/none'
  for (const [lacking, argv, says] of [
    ['pg', ['cluster', 'agent.js'], /needs the package pg\. Run: npm install pg@8\n$/],
    ['pg', ['serve', 'agent.js', '--db', database], /needs the package pg/],
    ['pg', ['db', 'copy', 'tasks.db', database], /needs the package pg/],
    ['pg', ['db', 'copy', database, 'copied.db'], /needs the package pg/],
    ['@a2a-js/sdk', ['serve', 'agent.js', '--legacy', '--db', 'new.db'], /--legacy needs the official SDK/],
    ['@a2a-js/sdk', ['dev', 'agent.js', '--legacy', '--db', 'new.db'], /--legacy needs the official SDK/],
    ['@modelcontextprotocol/server', ['serve', 'agent.js', '--mcp', '--db', 'new.db'], /--mcp needs the MCP SDK/],
    ['@modelcontextprotocol/server', ['dev', 'agent.js', '--mcp', '--db', 'new.db'], /--mcp needs the MCP SDK/],
    ['@modelcontextprotocol/server', ['mcp', 'agent.js', '--db', 'new.db'], /taskchart mcp needs the MCP SDK/],
    ['@grpc/grpc-js', ['serve', 'agent.js', '--grpc', '0', '--db', 'new.db'], /--grpc needs the official SDK and gRPC/],
    ['jose', ['serve', 'agent.js', '--card-key', 'key.pem', '--db', 'new.db'], /npm install @a2a-js\/sdk jose/]
  ] as const) {
    const cwd = t.testdir({
      'agent.js': agent,
      'tasks.db': '',
      'key.pem': generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })
    })
    const before = readdirSync(cwd)
    const { status, stderr } = spawnSync(process.execPath, ['--import', withoutPackage(lacking), bin, ...argv], {
      cwd,
      encoding: 'utf8'
    })
    t.equal(status === 0, false, argv.join(' '))
    t.match(stderr, says)
    t.strictSame(readdirSync(cwd), before)
    t.equal(readFileSync(join(cwd, 'tasks.db'), 'utf8'), '')
  }
})

/** A module that hides a package from `import` and `require`. */
function withoutPackage(name: string): string {
  const hooks = `export const resolve = (specifier, context, next) => {
    if (specifier === ${JSON.stringify(name)} || specifier.startsWith(${JSON.stringify(`${name}/`)})) throw new Error('hidden')
    return next(specifier, context)
  }`
  const hide = `import Module, { register } from 'node:module'
    const find = Module._resolveFilename
    Module._resolveFilename = function (specifier, ...more) {
      if (specifier === ${JSON.stringify(name)}) throw new Error('hidden')
      return find.call(this, specifier, ...more)
    }
    process.noDeprecation = true
    register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hooks)}))`
  return `data:text/javascript,${encodeURIComponent(hide)}`
}

await t.test('every command lists its exit codes in its help', async t => {
  for (const { name } of COMMANDS) t.match((await run(['help', name])).stdout, /Exit codes: ?(?:0|\n {2}0 )/, name)
})

await t.test('a card', async t => {
  const card = {
    name: 'Painter',
    description: 'Paints.\u001b[2J',
    skills: [
      { id: 'paint', name: 'Paint', description: 'Paints boats.', tags: [], examples: ['a boat'] },
      { id: 'wait', name: 'Wait', description: '', tags: [] }
    ]
  }
  const { url } = await serve(t, { card, work: () => {} })

  await t.test('is printed in readable form, without control characters', async t => {
    const { code, stdout } = await run(['card', url])
    t.equal(code, 0)
    t.equal(
      stdout,
      `Painter 1.0.0
Paints.[2J

Interfaces
  ${url} A2A 1.0, urn:taskchart:binding:websocket:1

Capabilities
  streaming
  extension urn:taskchart:extension:reliability:1

Skills
  Paint: Paints boats.
    "a boat"
  Wait
`
    )
  })

  await t.test('is printed as one line of JSON', async t => {
    const { code, stdout } = await run(['card', url.replace('ws', 'http'), '--json'])
    t.equal(code, 0)
    t.match(JSON.parse(stdout), { name: 'Painter', supportedInterfaces: [{ url }] })
    t.equal(stdout.trim().split('\n').length, 1)
  })

  await t.test('of another server is printed with all its fields', async t => {
    const other = {
      name: 'Other',
      version: '2',
      supportedInterfaces: [{ url: 'https://a.example', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
      capabilities: { pushNotifications: true, extendedAgentCard: true, extensions: [{ uri: 'urn:x', required: true }] }
    }
    const server = createServer((_, response) => response.end(JSON.stringify(other))).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    const { stdout } = await run(['card', `http://127.0.0.1:${(server.address() as AddressInfo).port}`])
    t.equal(
      stdout,
      'Other 2\n\nInterfaces\n  https://a.example A2A 1.0, JSONRPC\n\nCapabilities\n  push notifications\n  extended card\n  extension urn:x (required)\n'
    )
  })

  await t.test('of an unreachable server is one line with exit code 3', async t => {
    t.strictSame(await run(['card', 'http://127.0.0.1:1']), {
      code: 3,
      stdout: '',
      stderr: 'taskchart: Nobody answers at http://127.0.0.1:1/.well-known/agent-card.json. Is the agent running?\n'
    })
  })

  await t.test('is not waited for when the user stops: exit code 130', async t => {
    t.strictSame(await run(['card', url], AbortSignal.abort()), { code: 130, stdout: '', stderr: '' })
  })
})

await t.test('a thrown value that is no error is reported too', async t => {
  const printed = () => {
    throw 'the disk is full'
  }
  t.match(await runCommand(['help'], { printed }), { code: 1, stderr: 'taskchart: the disk is full\n' })
})
