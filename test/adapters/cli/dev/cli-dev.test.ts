import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, watch as watchFolder, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { serveDev } from '../../../../adapters/cli/dev/dev.ts'
import {
  FileWatch,
  FreshModules,
  Reloader,
  SETTLE_MS,
  SLOW_LOAD_MS,
  syntaxPlace
} from '../../../../adapters/cli/dev/reloader.ts'
import { type AgentModule, loadAgent, nodeReader } from '../../../../adapters/cli/load-agent.ts'
import { connect } from '../../../../adapters/client/connect.ts'
import { inspect } from '../../../../adapters/inspector/index.ts'
import type { Inspector } from '../../../../adapters/inspector/inspector.ts'
import { readLocalModules } from '../../../../adapters/testing/diff/local-modules.ts'
import { systemClock, type Clock } from '../../../../runtime/ports/clock.ts'
import { type Agent, defineAgent } from '../../../../runtime/agent/define-agent.ts'
import { memoryStore } from '../../../../runtime/store/memory/memory-store.ts'
import { FeedReader, TOKEN } from '../../../fixtures/pages/feed-reader.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import {
  deferred,
  open,
  reaches,
  recordingLogger,
  rejection,
  rest,
  say,
  taskIn,
  until
} from '../../../fixtures/runtime/runtime-helpers.ts'
import { NO_SQLITE } from '../../../fixtures/stores/sqlite.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'

/** A module of an agent that no file has. */
const moduleOf = (agent: Agent): AgentModule => ({ path: '', agent, localModules: () => readLocalModules('') })

/** An agent's module: a question, and an answer that another module has. */
const AGENT = `import { colour } from './colour.mjs'
import { setupWork } from 'taskchart'
const work = setupWork({}).createMachine({
  initial: 'asking',
  states: { asking: { tags: 'input-required', meta: { prompt: 'Go on?' }, on: { 'message.received': 'done' } }, done: { type: 'final' } },
  output: () => ({ artifact: colour })
})
export default { card: { name: 'Painter, ' + colour }, work }`

/** Runs `taskchart dev` on a free port; stopped when the test ends. */
async function developing(t: Test, cwd: string, argv: readonly string[]) {
  const stop = new AbortController()
  const announced = deferred<string>()
  let heard = ''
  const ended = runCommand(['dev', ...argv, '--port', '0'], {
    printed: announced.resolve,
    heard: text => (heard += text),
    signal: stop.signal,
    cwd
  })
  t.teardown(async () => {
    stop.abort()
    await ended
  })
  const announcement = await Promise.race([announced.promise, ended.then(({ stderr }) => stderr)])
  const [, url = ''] = /(http:\S+) for/.exec(announcement) ?? []
  return { announcement, url, heard: () => heard, stop: () => stop.abort(), ended }
}

/** The name in the card that is served at an address. */
async function nameAt(url: string): Promise<string> {
  const answer = await fetch(`${url}.well-known/agent-card.json`)
  const { name } = (await answer.json()) as { name: string }
  return name
}

await t.test('an agent under development', async t => {
  const folder = (t: Test) => t.testdir({ 'agent.mjs': AGENT, 'colour.mjs': "export const colour = 'red'" })

  await t.test('may be called by pages of this machine, which may not use its inspector', async t => {
    const { url } = await developing(t, folder(t), ['agent.mjs', '--origin', 'https://app.example'])
    const answer = (origin: string, path = '.well-known/agent-card.json') =>
      fetch(`${url}${path}`, { headers: { origin } })
    t.equal((await answer('http://localhost:5173')).headers.get('access-control-allow-origin'), 'http://localhost:5173')
    t.equal((await answer('https://app.example')).status, 200)
    t.equal((await answer('https://evil.example')).status, 403)
    for (const path of ['', 'stately'])
      t.equal(
        (await answer('http://localhost:5173', path)).headers.get('access-control-allow-origin'),
        null,
        `${path} cannot be read by another page`
      )
  })

  await t.test(
    'is announced with its page, which can run its tests and prove its properties, and that saving reloads it',
    async t => {
      const { announcement, url, stop, ended } = await developing(t, folder(t), ['agent.mjs'])
      t.equal(
        announcement,
        `Painter, red

  agent  ${url.replace('http', 'ws')}
         ${url} for JSON-RPC and REST
         ${url}ag-ui for front ends that speak AG-UI
  card   ${url}.well-known/agent-card.json
  page   ${url}

Talk to it from another terminal:

  npx taskchart send ${url.replace('http', 'ws')} "hello" --out artifacts

When you save agent.mjs, or a file that it imports, it is loaded again. Ctrl-C stops it. Its process id is ${process.pid}.
`
      )
      const page = await pageAt(t, url)
      await page.frame('hello')
      page.ask({ type: 'test' })
      t.match(await page.frame('testing'), { isRunning: true, done: 0 }, 'the page can run the tests')
      page.ask({ type: 'prove' })
      t.same(await page.frame('proving'), { type: 'proving', isRunning: true }, 'and prove its properties')
      page.ask({ type: 'prove' })
      await until(() => page.all('proving').some(({ proof }) => proof))
      t.match(page.all('proving').slice(1), [
        {
          isRunning: false,
          proof: {
            head: '3 configurations, all, opened by "start"',
            verdicts: [
              { property: 'the chart never throws', outcome: 'proved', says: 'in 3 configurations' },
              {
                property: 'every task can end',
                says: 'in 3 configurations, if everything that is possible again and again happens in the end'
              }
            ]
          }
        }
      ])
      stop()
      t.equal((await ended).code, 0)
      await t.rejects(fetch(url))
    }
  )

  await t.test('is replaced when its imports are saved, and its tasks and clients continue', async t => {
    const cwd = folder(t)
    const { url, heard } = await developing(t, cwd, ['agent.mjs', '--legacy'])
    const client = await connect(url.replace('http', 'ws'))
    t.teardown(() => client.close())
    const { id: taskId } = taskIn(await client.sendMessage(say('x')))
    const states: string[] = []
    const watching = (async () => {
      for await (const event of client.subscribeToTask({ id: taskId }))
        if ('statusUpdate' in event) states.push(event.statusUpdate.status.state)
    })()
    for (const colour of ['green', 'blue']) {
      writeFileSync(join(cwd, 'colour.mjs'), `export const colour = '${colour}'`)
      await until(async () => (await nameAt(url).catch(() => '')) === `Painter, ${colour}`)
    }
    t.match(heard(), /^input-required after 0\.\d s: x \(task \S+\)\n(agent\.mjs is loaded again \(\d+ ms\)\.\n){2}$/)
    const task = taskIn(await client.sendMessage(say('go on', { taskId })))
    t.match(task, { status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [{ parts: [{ text: 'blue' }] }] })
    await watching
    t.equal(states.at(-1), 'TASK_STATE_COMPLETED')
  })

  await t.test('continues unchanged while the saved one does not load, as terminal and page report', async t => {
    const cwd = folder(t)
    const { url, heard } = await developing(t, cwd, ['agent.mjs'])
    const page = await pageAt(t, url)
    const { instance } = await page.frame('hello')
    writeFileSync(join(cwd, 'colour.mjs'), 'export const colour = ')
    const { error } = await page.frame('reload')
    t.match(error, /^agent\.mjs could not be loaded: .*\n.*colour\.mjs:1\nexport const colour =/)
    t.notMatch(error, 'taskchart-load')
    t.match(heard(), /^taskchart: agent\.mjs could not be loaded: [\s\S]*The previous version stays loaded\.\n$/)
    t.equal(await nameAt(url), 'Painter, red')
    // Some other file may be what is missing.
    writeFileSync(join(cwd, 'agent.mjs'), "import './new.mjs'\nexport { default } from './other.mjs'")
    await page.frame('reload', ({ error }) => /new\.mjs/.test(String(error)))
    writeFileSync(join(cwd, 'other.mjs'), "export default { card: { name: 'Other' }, work: () => ({}) }")
    writeFileSync(join(cwd, 'new.mjs'), '')
    const hello = await page.frame('hello', ({ agent }) => agent.name === 'Other')
    t.not(hello.instance, instance)
    t.equal(await nameAt(url), 'Other')
  })

  await t.test('is replaced at the next save when the saved module, or a new import of it, never loads', async t => {
    const cwd = folder(t)
    const { url, stop, ended } = await developing(t, cwd, ['agent.mjs'])
    const loads = (colour: string, rest: string) =>
      writeFileSync(
        join(cwd, 'colour.mjs'),
        `export const colour = '${colour}'\nglobalThis.reached = '${colour}'\n${rest}`
      )
    const reached = async (colour: string) => {
      await until(() => (globalThis as { reached?: string }).reached === colour)
      // Which file it was is told in a later turn of the event loop.
      await rest()
    }
    loads('green', 'await new Promise(() => {})')
    await reached('green')
    t.equal(await nameAt(url), 'Painter, red', 'the previous one stays')
    loads('blue', '')
    await until(async () => (await nameAt(url).catch(() => '')) === 'Painter, blue')
    mkdirSync(join(cwd, 'deep'))
    writeFileSync(join(cwd, 'deep/new.mjs'), "globalThis.reached = 'new'\nawait new Promise(() => {})")
    loads('pink', "import './deep/new.mjs'")
    await reached('new')
    writeFileSync(join(cwd, 'deep/new.mjs'), '')
    await until(async () => (await nameAt(url).catch(() => '')) === 'Painter, pink')
    loads('grey', 'await new Promise(() => {})')
    await reached('grey')
    stop()
    t.equal((await ended).code, 0, 'and the command can be stopped meanwhile')
  })

  await t.test('is not replaced by one that conflicts with the options', async t => {
    const cwd = folder(t)
    const { url, heard, announcement } = await developing(t, cwd, ['agent.mjs', '--api-key', 'secret-of-16-chars'])
    t.match(announcement, /page {3}http:\S+\?token=\S+\n/)
    writeFileSync(
      join(cwd, 'agent.mjs'),
      "export const authenticate = () => ({ id: 'x' })\nexport default { card: { name: 'Other' }, work: () => ({}) }"
    )
    await until(() => heard().includes('Leave out --api-key'))
    t.equal(await nameAt(url), 'Painter, red')
    writeFileSync(join(cwd, 'agent.mjs'), "export default { card: { name: 'Third' }, work: () => ({}) }")
    await until(async () => (await nameAt(url).catch(() => '')) === 'Third')
  })

  await t.test('stores its tasks in a file too, and reports it as JSON', { skip: NO_SQLITE }, async t => {
    const cwd = folder(t)
    const { announcement, heard } = await developing(t, cwd, ['agent.mjs', '--db', 'tasks.db', '--json'])
    const { http, page } = JSON.parse(announcement) as { http: string; page: string }
    t.equal(page, http)
    const client = await connect(http.replace('http', 'ws'))
    t.teardown(() => client.close())
    const { id: taskId } = taskIn(await client.sendMessage(say('x')))
    writeFileSync(join(cwd, 'colour.mjs'), "export const colour = 'green'")
    await until(() => heard().includes('loaded again'))
    t.match(taskIn(await client.sendMessage(say('go on', { taskId }))), { artifacts: [{ parts: [{ text: 'green' }] }] })
  })

  await t.test('shows what the last test of it reached', async t => {
    const cwd = folder(t)
    const { url } = await developing(t, cwd, ['agent.mjs'])
    const page = await pageAt(t, url)
    await page.frame('hello')
    t.equal((await runCommand(['test', 'agent.mjs', '--driver', 'the chart'], { cwd })).code, 0)
    t.match(await page.frame('coverage'), {
      chart: 'work',
      reached: {
        states: ['(machine)', '(machine).asking', '(machine).done'],
        transitions: ['(machine).asking on message.received to done']
      },
      missing: []
    })
    const file = join(cwd, '.taskchart/coverage/agent.mjs.json')
    const whole = readFileSync(file, 'utf8')
    await runCommand(['test', 'agent.mjs', '--driver', 'in process', '--only', 'is sent'], { cwd })
    t.equal(readFileSync(file, 'utf8'), whole, 'a partial test stores nothing')
    rmSync(join(cwd, '.taskchart'), { recursive: true })
    writeFileSync(join(cwd, '.taskchart'), '')
    t.match(await runCommand(['test', 'agent.mjs', '--driver', 'the chart'], { cwd }), {
      code: 0,
      stderr: /the coverage could not be saved/
    })
  })

  await t.test('is refused for a port in use, a public host or a missing file', async t => {
    const cwd = t.testdir({ 'agent.mjs': AGENT, 'colour.mjs': "export const colour = 'red'" })
    const { url } = await developing(t, cwd, ['agent.mjs'])
    const refused = async (...argv: string[]) => {
      const { code, stderr } = await runCommand(['dev', ...argv], { cwd })
      return [code, stderr]
    }
    t.match(await refused('agent.mjs', '--port', new URL(url).port), [1, /Port \d+ is in use/])
    t.match(await refused('agent.mjs', '--host', '0.0.0.0'), [2, /anyone could use the agent/])
    t.match(await refused('none.mjs'), [1, /There is no file/])
    const stopped = new AbortController()
    stopped.abort()
    t.equal((await runCommand(['dev', 'agent.mjs'], { cwd, signal: stopped.signal })).code, 0)
  })
})

await t.test('a server is closed again if its inspector fails to open', async t => {
  const failing = {
    tap: { heard: undefined },
    answer: () => undefined,
    open: () => Promise.reject(new Error('no inspector'))
  } as unknown as Inspector
  const { logger } = recordingLogger()
  const module = moduleOf(defineAgent({ card: { name: 'A' }, work: () => ({}) }))
  const parts = {
    address: { port: 0 },
    legacy: undefined,
    store: memoryStore(),
    clock: new TestClock(),
    logger,
    inspector: failing,
    traced: undefined,
    runtimeOptions: () => ({ logger })
  }
  await t.rejects(serveDev(parts, module), { message: 'no inspector' })
})

await t.test('a request between two agents is answered with a delay for a retry', async t => {
  const clock = new TestClock()
  const { logger } = recordingLogger()
  const work = () => new Promise<never>(() => {})
  const inspector = inspect({ token: TOKEN }) as Inspector
  const module = moduleOf(defineAgent({ card: { name: 'A' }, work, cancelGraceMs: 5000 }))
  const served = await serveDev(
    {
      address: { port: 0 },
      legacy: undefined,
      store: memoryStore(),
      clock,
      logger,
      inspector,
      traced: undefined,
      runtimeOptions: () => ({ logger })
    },
    module
  )
  t.teardown(async () => {
    const closing = [served.close(), served.runtime.close()]
    clock.increment(10_000)
    await Promise.all(closing)
  })
  const status = async (path: string) => {
    const socket = new WebSocket(`${served.url.replace('http', 'ws')}${path}`)
    t.teardown(() => socket.terminate())
    socket.on('error', () => {})
    return Promise.race([
      once(socket, 'open').then(() => 101),
      once(socket, 'unexpected-response').then(([, { statusCode }]) => statusCode as number)
    ])
  }
  const first = served.runtime
  const { id } = await open(first)
  await reaches(first, id, 'working')
  await first.cancelTask({ id })
  // Its work cleans up, for as long as it may.
  const replaced = served.replace(module)
  await until(async () => (await fetch(served.url, { method: 'POST' })).status === 503)
  await until(
    async () =>
      (await first.getTask({ id }).catch((error: Error) => error.message)) ===
      'The agent is shutting down. Send the request again later.'
  )
  t.strictSame([await status(''), await status('elsewhere')], [503, 503])
  t.equal((await fetch(`${served.url}stately`)).status, 200, 'the inspector stays')
  clock.increment(1000)
  await replaced
  t.strictSame([await status(''), await status('elsewhere')], [101, 404])
  t.not(served.runtime, first)
})

/** Connects as a page does that is served at an address. */
async function pageAt(t: Test, url: string): Promise<FeedReader> {
  const html = await (await fetch(`${url}stately`)).text()
  const [, token = ''] = /data-token="([^"]+)"/.exec(html) ?? []
  return FeedReader.open(t, url, undefined, { token })
}

await t.test('reloaded modules', async t => {
  await t.test('reload all their imports in any language, except packages', async t => {
    const cwd = t.testdir({
      'package.json': '{}',
      'agent.ts':
        "import { name } from './deep/name.ts'\nimport inner from './deep/inner.cjs'\nexport default { card: { name: name + inner.word as string }, work: () => ({}) }",
      deep: {
        'name.ts': "export const name: string = 'a'",
        'inner.cjs': "exports.word = require('./word.cjs').word",
        'word.cjs': "exports.word = '1'"
      }
    })
    const modules = new FreshModules(() => {}, { ...nodeReader, stripsTypes: false })
    const name = async () => (await loadAgent('agent.ts', cwd, modules.reader)).agent.card.name
    t.equal(await name(), 'a1')
    t.equal(await name(), 'a1')
    t.strictSame([...modules.files].map(file => file.slice(cwd.length + 1)).toSorted(), [
      'agent.ts',
      'deep/inner.cjs',
      'deep/name.ts',
      'deep/word.cjs'
    ])
    writeFileSync(join(cwd, 'deep/name.ts'), "export const name: string = 'b'")
    t.equal(await name(), 'b1')
    writeFileSync(join(cwd, 'deep/word.cjs'), "exports.word = '2'")
    t.equal(await name(), 'b2')
  })

  await t.test('that do not load list the files that they imported', async t => {
    const cwd = t.testdir({ 'agent.mjs': "import './broken.mjs'", 'broken.mjs': 'export const =' })
    const modules = new FreshModules()
    t.match(await rejection(loadAgent('agent.mjs', cwd, modules.reader)), {
      message: /^agent\.mjs could not be loaded: /
    })
    t.strictSame(
      [...modules.files].map(file => file.slice(cwd.length + 1)),
      ['agent.mjs', 'broken.mjs']
    )
    t.match(await syntaxPlace(modules.files), /broken\.mjs:1\nexport const =\n/)
    t.equal(await syntaxPlace([join(cwd, 'agent.mjs'), 'agent.ts']), '')
  })
})

await t.test(
  'a module that is not loaded after five seconds is reported once, and loaded at the next save',
  async t => {
    const cwd = t.testdir({ 'agent.mjs': "export default { card: { name: 'A' }, work: () => ({}) }" })
    const patience = new TestClock()
    const clock: Clock = {
      ...systemClock,
      setTimeout: (callback, delayMs) =>
        (delayMs === SLOW_LOAD_MS ? patience : systemClock).setTimeout(callback, delayMs),
      clearTimeout: timer => [patience, systemClock].forEach(one => one.clearTimeout(timer))
    }
    const reloader = new Reloader('agent.mjs', cwd, clock)
    t.teardown(() => reloader.close())
    t.equal((await reloader.first()).agent.card.name, 'A')
    const loaded: string[] = []
    const errors: string[] = []
    reloader.follow({
      loaded: async ({ agent }) => void loaded.push(agent.card.name),
      failed: error => void errors.push((error as Error).message)
    })
    writeFileSync(join(cwd, 'agent.mjs'), 'globalThis.awaits = true\nawait new Promise(() => {})')
    await until(() => 'awaits' in globalThis && patience.size > 0)
    patience.increment(SLOW_LOAD_MS)
    patience.increment(SLOW_LOAD_MS)
    t.strictSame(errors, [
      'agent.mjs is not loaded after 5 s. Look for an await at the top level of a module that never ends, and save that module again.'
    ])
    writeFileSync(join(cwd, 'agent.mjs'), "export default { card: { name: 'B' }, work: () => ({}) }")
    await until(() => loaded.includes('B') && patience.size === 0)
    t.equal(errors.length, 1)
  }
)

await t.test('a watch of files', async t => {
  await t.test('reports a save once, however many steps it takes, and no other file', async t => {
    const cwd = t.testdir({ a: { 'one.js': '' }, b: { 'two.js': '', 'dev.log': '' } })
    const clock = new TestClock()
    let changes = 0
    const watch = new FileWatch(clock, () => (changes += 1))
    t.teardown(() => watch.close())
    const reports = async (path: string) => {
      const other = watchFolder(join(cwd, dirname(path)))
      writeFileSync(join(cwd, path), 'x', { flag: 'a' })
      await once(other, 'change')
      other.close()
      return clock.size > 0
    }
    watch.watch(new Set([join(cwd, 'a/one.js'), join(cwd, 'b/two.js')]), false)
    t.notOk(await reports('a/other.js'))
    writeFileSync(join(cwd, 'a/one.js'), '1')
    writeFileSync(join(cwd, 'a/one.js'), '2')
    await until(() => clock.size > 0)
    t.equal(changes, 0)
    await until(() => (clock.increment(SETTLE_MS), changes > 0))
    t.equal(changes, 1)
    watch.watch(new Set([join(cwd, 'b/two.js')]), true)
    t.notOk(await reports('b/dev.log'), 'a log of the errors would report itself')
    t.ok(await reports('b/new.js'))
    await until(() => (clock.increment(SETTLE_MS), changes > 1))
    mkdirSync(join(cwd, 'b/lib'))
    await until(() => (clock.increment(SETTLE_MS), changes > 2))
    watch.close()
    watch.close()
    t.equal(clock.size, 0)
  })

  await t.test('continues when a folder is removed', async t => {
    const cwd = t.testdir({ a: { 'one.js': '' } })
    const clock = new TestClock()
    let changes = 0
    const watch = new FileWatch(clock, () => (changes += 1))
    t.teardown(() => watch.close())
    watch.watch(new Set([join(cwd, 'a/one.js')]), false)
    rmSync(join(cwd, 'a'), { recursive: true })
    await until(() => (clock.increment(SETTLE_MS), changes > 0))
    watch.watch(new Set([join(cwd, 'a/one.js'), join(cwd, 'gone/two.js')]), true)
    mkdirSync(join(cwd, 'a'))
    t.pass('and a folder that is not there is no error')
  })
})
