import { once } from 'node:events'
import { chmodSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createPort, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { COMMANDS, loadAll } from '../../../adapters/cli/commands.ts'
import { optionsOf } from '../../../adapters/cli/completion.ts'
import {
  clockFinding,
  installIn,
  manifest,
  type Manifest,
  nodeFinding,
  packageFindings,
  portFinding
} from '../../../adapters/cli/doctor/checks.ts'
import { databaseFinding, mayWrite } from '../../../adapters/cli/doctor/doctor.ts'
import { runBare } from '../../fixtures/processes/bare-process.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { serve } from '../../fixtures/servers/served-agent.ts'
import { unusedPort } from '../../fixtures/network/unused-port.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const BIN = 'dist/adapters/cli/bin.js'
const ALL: Manifest = {
  version: '1.0.0',
  engines: { node: '>=20.19' },
  peerDependencies: { xstate: '>=5.33.3 <6', tsx: '>=4.19', elkjs: '>=0.12.1 <0.13', other: '>=1' },
  peerDependenciesMeta: { tsx: { optional: true }, elkjs: { optional: true }, other: { optional: true } }
}

await t.test('doctor', async t => {
  await t.test('finds nothing wrong in a clone, and lists its findings', async t => {
    const { code, stdout } = await runCommand(['doctor'])
    t.equal(code, 0, stdout)
    t.match(stdout, /^ok {5}Node \d+\.[^\n]*\nok {5}packages: [^\n]*xstate 5\.[^\n]*\n/)
    t.match(stdout, /^(?:ok {5}port 4242 is free|note {3}port 4242 cannot be used)/m)
  })

  await t.test('checks an agent at a URL, its clock and a first call', async t => {
    const { url } = await serve(t, { work: () => {} })
    t.match(await runCommand(['doctor', url]), {
      code: 0,
      stdout:
        /\nok {5}card of Test: WEBSOCKET 1\.0\nok {5}the clocks of this machine and of the agent agree\nok {5}the agent answers over WEBSOCKET: GetTask, ListTasks\n$/
    })
    const locked = await serve(t, { work: () => {} }, { authenticate: () => undefined })
    const refused = await runCommand(['doctor', locked.url])
    t.match(refused, {
      code: 1,
      stdout: new RegExp(
        `\nWRONG {2}The agent at ${locked.url} requires a key[^\n]*\n {7}npx taskchart doctor ${locked.url} --api-key KEY\n$`
      )
    })
    t.match(await runCommand(['doctor', locked.url, '--api-key', 'x', '--color', 'always']), {
      code: 1,
      stdout: '\u001b[31mWRONG\u001b[39m  The agent at'
    })
    t.match(await runCommand(['doctor', 'http://127.0.0.1:1']), {
      code: 1,
      stdout: /WRONG {2}Nobody answers at [^\n]*\n {7}Start the agent/
    })
    const card = {
      name: 'Gone',
      version: '1',
      capabilities: {},
      supportedInterfaces: [{ url: 'http://127.0.0.1:1', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
    }
    const server = createServer((_, response) => response.end(JSON.stringify(card))).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    const alone = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    t.match(await runCommand(['doctor', alone]), {
      code: 1,
      stdout: new RegExp(
        `\nok {5}card of Gone: JSONRPC 1\\.0\n[^]*\nWRONG {2}[^\n]+\n {7}npx taskchart card ${alone}\n$`
      )
    })
    t.match(await runCommand(['doctor', url], { signal: AbortSignal.abort() }), { code: 130 })
  })

  await t.test('does not wait for an agent that never answers', async t => {
    const clock = new TestClock()
    const server = createServer().listen(0, '127.0.0.1')
    t.teardown(() => server.close().closeAllConnections())
    await once(server, 'listening')
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const card = JSON.stringify({
      name: 'Slow',
      version: '1',
      capabilities: {},
      supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
    })
    let requests = 0
    server.on('request', (_, response) => {
      requests += 1
      // The card, the clock, the card for a connection, and the first call.
      if (requests === 1 || requests === 3) response.end(card)
      else setImmediate(() => clock.increment(10_000))
    })
    t.match(await runCommand(['doctor', url], { clock }), {
      code: 1,
      stdout:
        /\nnote {3}the agent does not say what time it is[^\n]*\nWRONG {2}The agent gave no answer within 10 s\.\n/
    })
  })

  await t.test('checks a module, and a file or database of tasks', async t => {
    const cwd = t.testdir({
      'agent.mjs': "export default { card: { name: 'Mine' }, work: () => {} }",
      'broken.mjs': 'export default {',
      'none.mjs': 'export default 1',
      'throws.mjs': "throw new Error('at load')",
      'odd.mjs': 'throw Object.create(null)',
      'notes.txt': 'no database, but long enough to be one'.repeat(20)
    })
    t.match(await runCommand(['doctor', 'agent.mjs', '--db', 'new.db'], { cwd }), {
      code: 0,
      stdout: /\nok {5}new\.db does not exist: [^\n]*\nok {5}agent\.mjs is the agent Mine\n$/
    })
    t.match(await runCommand(['doctor', 'broken.mjs'], { cwd }), {
      code: 1,
      stdout:
        /\nWRONG {2}broken\.mjs could not be loaded: [^]*\n {7}Correct broken\.mjs, then run: npx taskchart doctor broken\.mjs\n$/
    })
    t.match(await runCommand(['doctor', 'none.mjs', '--db', 'nowhere/x.db'], { cwd }), {
      code: 1,
      stdout: /WRONG {2}nowhere\/x\.db cannot be used: [^]*WRONG {2}The default export of none\.mjs is not an agent/
    })
    t.match(await runCommand(['doctor', 'throws.mjs'], { cwd }), {
      code: 1,
      stdout: /\nWRONG {2}throws\.mjs could not be loaded: at load\n {7} +at [^\n]*throws\.mjs:1:7\)?\n/
    })
    t.match(await runCommand(['doctor', 'odd.mjs'], { cwd }), {
      code: 1,
      stdout: /\nWRONG {2}odd\.mjs could not be loaded: A value of type object\n {7}Correct odd\.mjs/
    })
    const unreachable = await runCommand(['doctor', '--db', 'postgres://me:secret@127.0.0.1:1/agent'], { cwd })
    t.match(unreachable, {
      code: 1,
      stdout: /WRONG {2}The database cannot be used: [^\n]*\n {7}(?:Start the database|npm install)/
    })
    t.notMatch(unreachable.stdout, 'secret')
    t.match(await runCommand(['doctor', '--db', 'notes.txt'], { cwd }), {
      code: 1,
      stdout: /WRONG {2}notes\.txt cannot be used: [^\n]*\n {7}(?:Give the file|npm install)/
    })
  })

  await t.test('reports a file of tasks that a server could not write, or whose folder it could not', async t => {
    const cwd = t.testdir({ folder: { 'tasks.db': '' } })
    const [folder, file] = [join(cwd, 'folder'), join(cwd, 'folder', 'tasks.db')]
    symlinkSync(file, join(cwd, 'link.db'))
    for (const [db, readOnly] of [
      ['link.db', folder],
      ['link.db', file],
      ['folder/tasks.db', file],
      ['folder/new.db', folder]
    ] as const) {
      t.strictSame(await databaseFinding(db, { cwd }, async path => path !== readOnly), {
        status: 'wrong',
        what: `${db} cannot be used: this user cannot write ${readOnly}`,
        mend: `Run taskchart serve --db as a user who may write ${readOnly}, or give another file`
      })
    }
    t.ok(await mayWrite(file))
    t.notOk(await mayWrite(join(file, 'none')))
  })

  await t.test('refuses a second target, and a key without a URL', async t => {
    t.match(await runCommand(['doctor', 'a.js', 'b.js']), { code: 2, stderr: /"b\.js" is one argument too many/ })
    t.match(await runCommand(['doctor', 'a.js', '--api-key', 'x']), { code: 2, stderr: /--api-key is for a URL/ })
    t.match(await runCommand(['doctor', '--header', 'a:b']), { code: 2, stderr: /--header is for a URL/ })
    t.match(await runCommand(['doctor', 'a.js', '--text', 'hi']), { code: 2, stderr: /--text is for a URL/ })
  })

  await t.test('compares installed versions with the ranges of the package and with the tested ones', t => {
    t.match(nodeFinding(manifest(), '18.0.0'), {
      status: 'wrong',
      what: /^Node 18\.0\.0 is too old: taskchart needs >=20/,
      mend: /nodejs\.org/
    })
    t.equal(
      installIn('Install what the commands use: npm i -D tsx @xstate/graph elkjs'),
      'npm i -D tsx @xstate/graph elkjs'
    )
    t.equal(installIn('Or run: npm install better-sqlite3@12. It compiles.'), 'npm install better-sqlite3@12')
    t.equal(installIn('No such file'), undefined)
    const versions: Record<string, string> = { xstate: '5.30.0', elkjs: '0.12.1' }
    const parts = { stripsTypes: false, hasSqlite: false, node: '20.19.0' }
    t.strictSame(
      packageFindings(ALL, name => versions[name], parts),
      [
        { status: 'ok', what: 'packages: elkjs 0.12.1' },
        {
          status: 'wrong',
          what: 'xstate 5.30.0 does not fit taskchart, which needs >=5.33.3 <6',
          mend: 'npm install xstate@5'
        },
        {
          status: 'note',
          what: 'packages of the commands, which are not installed:\n  tsx: agents in TypeScript before Node 22.18',
          mend: 'npm install --save-dev tsx@4'
        },
        {
          status: 'note',
          what: 'optional packages that are not installed; install those that you need:\n  other: some functions'
        }
      ]
    )
    t.strictSame(packageFindings(ALL, () => undefined, { ...parts, stripsTypes: true })[0], {
      status: 'wrong',
      what: 'xstate is not installed',
      mend: 'npm install xstate@5'
    })
    t.match(packageFindings(ALL, () => undefined, { ...parts, stripsTypes: true }).at(-2), {
      mend: 'npm install --save-dev elkjs@0.12'
    })
    t.strictSame(
      packageFindings({ ...ALL, peerDependencies: { xstate: '>=5' } }, () => '5.1.0', parts),
      [{ status: 'ok', what: 'packages: xstate 5.1.0' }]
    )
    const found = (name: string, version: string, node: string) =>
      packageFindings(manifest(), asked => (asked === 'xstate' ? '5.33.3' : asked === name ? version : undefined), {
        ...parts,
        node
      })[1]
    t.strictSame(found('ai', '8.1.0', '24.0.0'), {
      status: 'note',
      what: 'taskchart is tested with ai 6 and 7, not with 8.1.0',
      mend: 'If something fails, run: npm install ai@7'
    })
    t.strictSame(found('ai', '5.9.0', '20.19.0'), {
      status: 'wrong',
      what: 'ai 5.9.0 does not fit taskchart, which needs >=6.0.0',
      mend: 'npm install ai@6'
    })
    t.strictSame(found('better-sqlite3', '13.2.0', '20.19.0'), {
      status: 'wrong',
      what: 'better-sqlite3 13.2.0 does not work on Node 20.19.0: it crashes the process',
      mend: 'npm install better-sqlite3@12'
    })
    t.match(found('better-sqlite3', '13.2.0', '22.1.0'), { status: 'note', what: /not installed/ })
    for (const name of Object.keys(manifest().peerDependencies))
      t.ok(
        name === 'xstate' ||
          packageFindings(manifest(), () => undefined, parts).some(
            ({ what }) => what.includes(`${name}: `) && !what.includes(`${name}: some`)
          ),
        name
      )
    t.end()
  })

  await t.test('reports a port in use, and clocks that differ', async t => {
    const taken = createPort().listen(0, '127.0.0.1')
    t.teardown(() => taken.close())
    await once(taken, 'listening')
    const { port } = taken.address() as AddressInfo
    t.match(await portFinding(port), { status: 'note', what: /cannot be used \(EADDRINUSE\)/ })
    t.match(await portFinding(await unusedPort()), { status: 'ok', what: /^port \d+ is free$/ })
    const dates: (string | undefined)[] = []
    const server = createServer((_, response) => {
      response.sendDate = false
      const date = dates.shift()
      if (date !== undefined) response.setHeader('date', date)
      response.end('{}')
    }).listen(0, '127.0.0.1')
    t.teardown(() => server.close())
    await once(server, 'listening')
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
    const clock = new TestClock()
    const found = async (date: string | undefined) => {
      dates.push(date)
      return clockFinding(url, { clock, signal: new AbortController().signal })
    }
    const at = (ms: number) => new Date(clock.now() + ms).toUTCString()
    t.match(await found(at(0)), { status: 'ok' })
    t.match(await found(at(-300_000)), { status: 'wrong', what: /clock is 5m ahead of the agent's/ })
    t.match(await found(at(7_300_000)), { status: 'wrong', what: /clock is 2h behind the agent's/ })
    t.match(await found(undefined), { status: 'note' })
    t.match(await clockFinding('ws://127.0.0.1:1', { clock, signal: new AbortController().signal }), { status: 'note' })
  })
})

await t.test('open', async t => {
  const opener = (t: Test, script: string) => {
    const PATH = t.testdir({ 'xdg-open': `#!/bin/sh\n${script}`, open: `#!/bin/sh\n${script}` })
    for (const name of ['xdg-open', 'open']) chmodSync(join(PATH, name), 0o755)
    return PATH
  }

  await t.test('gives the address to the program that opens the browser', async t => {
    const PATH = opener(t, 'echo "$1" > "${0%/*}/opened"')
    t.strictSame(await runCommand(['open', 'ws://127.0.0.1:4242/?token=a&b'], { env: { PATH } }), {
      code: 0,
      stdout: 'http://127.0.0.1:4242/?token=a&b\n',
      stderr: ''
    })
    t.equal(readFileSync(join(PATH, 'opened'), 'utf8'), 'http://127.0.0.1:4242/?token=a&b\n')
  })

  await t.test('prints a hint if no browser opens', async t => {
    const none = {
      code: 0,
      stdout: 'http://a.example/\n',
      stderr: 'There is no browser to open. Open this address yourself.\n'
    }
    t.strictSame(await runCommand(['open', 'http://a.example'], { env: { PATH: t.testdir() } }), none)
    t.strictSame(await runCommand(['open', 'http://a.example'], { env: { PATH: opener(t, 'exit 3') } }), none)
  })

  await t.test('does not wait for a browser that stays in the foreground', async t => {
    const clock = new TestClock()
    const PATH = opener(t, 'read line < /dev/stdin; sleep 5')
    const ended = runCommand(['open', 'http://a.example'], {
      env: { PATH: `${PATH}:/bin:/usr/bin` },
      clock,
      printed: () => void setImmediate(() => clock.increment(2000))
    })
    t.match(await ended, { code: 0, stderr: '' })
  })

  await t.test('refuses anything but the URL of an agent', async t => {
    for (const wrong of ['agent.ts', 'file:///etc/passwd', 'http://'])
      t.match(await runCommand(['open', wrong]), { code: 2, stderr: /is not the address of an agent/ }, wrong)
  })
})

await t.test('completion', async t => {
  await t.test('of bash completes commands, their words, and their options', async t => {
    const { stdout } = await runCommand(['completion', 'bash'])
    const script = join(t.testdir(), 'completion.bash')
    writeFileSync(
      script,
      `${stdout}
for line in "$@"; do COMP_WORDS=($line); case $line in *' ') COMP_WORDS+=('') ;; esac; COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); COMPREPLY=(); _taskchart; echo "\${COMPREPLY[*]}"; done`
    )
    const { execFileSync } = await import('node:child_process')
    const completed = (...lines: string[]) =>
      execFileSync('bash', [script, ...lines], { encoding: 'utf8' })
        .trimEnd()
        .split('\n')
    t.strictSame(
      completed(
        'taskchart se',
        'taskchart tasks e',
        'taskchart chat --n',
        'taskchart help gra',
        'taskchart --ver',
        'taskchart send x'
      ),
      ['serve send', 'export', '--new', 'graph', '--version']
    )
  })

  await t.test('has every command and option in each shell, and no other option', async t => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { stdout } = await runCommand(['completion', shell])
      for (const { name } of COMMANDS) t.match(stdout, name, shell)
      t.match(stdout, shell === 'fish' ? '-l allow-loopback-webhooks' : '--allow-loopback-webhooks')
    }
    const cwd = t.testdir()
    for (const command of await loadAll()) {
      for (const option of optionsOf(command)) {
        const ended = await Promise.all(
          [[], ['ws://'], ...(command.words ?? []).map(word => [word])].map(words =>
            runCommand([command.name, ...words, option], { cwd })
          )
        )
        t.ok(
          ended.some(({ stderr }) => !/There is no option|have no "--/.test(stderr)),
          `${command.name} ${option}`
        )
      }
    }
    t.match(await runCommand(['completion', 'fihs']), {
      code: 2,
      stderr: /There is no completion for fihs\. Did you mean fish\?/
    })
    t.match(await runCommand(['completion']), { code: 2, stderr: /bash\|zsh\|fish is missing/ })
  })
})

await t.test('the binary runs doctor, completion and chat', async t => {
  t.match((await runBare(BIN, 'doctor')).stdout, /^ok {5}Node/)
  t.match((await runBare(BIN, 'completion', 'zsh')).stdout, /compdef _taskchart taskchart\n$/)
  t.match(await runBare(BIN, 'chat').catch((error: unknown) => error), { code: 2, stderr: /URL is missing/ })
  t.match(await runBare(BIN, 'open').catch((error: unknown) => error), { code: 2, stderr: /URL is missing/ })
})
