import '../../../fixtures/stores/needs-sqlite.ts'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { historyText, parseHistory } from '../../../../adapters/testing/histories/history.ts'
import { postgresStore } from '../../../../adapters/postgres/postgres.ts'
import { sqliteStore } from '../../../../adapters/storage/sqlite.ts'
import { createRuntime, defineAgent, inputRequired } from '../../../../runtime/index.ts'
import type { Store } from '../../../../runtime/store/store.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { recordingLogger, say, taskIn } from '../../../fixtures/runtime/runtime-helpers.ts'
import { commitsOf, storeStops } from '../../../fixtures/histories/conversations.ts'
import { CONVERSATIONS } from '../../../fixtures/histories/example-tasks.ts'
import { NO_POSTGRES, PostgresServer } from '../../../fixtures/stores/postgres.ts'
import { opening } from '../../../fixtures/stores/stored-tasks.ts'

const source = (text: string, schema = '') => `
import { defineAgent, inputRequired } from 'taskchart'
import { z } from 'zod'
export default defineAgent({ card: { name: 'A' }, work: async function* () { yield* inputRequired('${text}'${schema}) } })
`

const agents = {
  'same.ts': source('Size?'),
  'text.ts': source('Which size?'),
  'form.ts': source('Size?', ", { schema: z.enum(['a', 'b']) }"),
  'none.js':
    "import { defineAgent } from 'taskchart'\nexport default defineAgent({ card: { name: 'A' }, work: async () => {} })"
}

/** A folder with a file of two tasks that wait, of one that has ended, and with agents. */
async function stored(t: Test) {
  const cwd = t.testdir(agents)
  const store: Store = sqliteStore(join(cwd, 'tasks.db'))
  const agent = defineAgent({
    card: { name: 'A' },
    version: '1',
    work: async function* () {
      yield* inputRequired('Size?')
    }
  })
  const runtime = createRuntime({ agent, store, logger: recordingLogger().logger })
  t.teardown(() => runtime.close())
  const open = async (text: string) => taskIn(await runtime.sendMessage(say(text))).id
  const ids = [await open('one'), await open('two'), await open('ended')]
  await runtime.sendMessage(say('large', { taskId: String(ids[2]) }))
  const [one = '', two = '', ended = ''] = ids
  const command = (...args: string[]) => runCommand(args, { cwd })
  const exported = (...args: string[]) => command('tasks', 'export', '--db', 'tasks.db', ...args)
  return {
    cwd,
    store,
    one,
    two,
    ended,
    command,
    exported,
    files: (folder: string) => readdirSync(join(cwd, folder)).toSorted()
  }
}

await t.test('export writes a file for each open task that is chosen, also while a server uses the file', async t => {
  const { cwd, one, two, ended, exported, files } = await stored(t)
  t.match(await exported('--history', 'all'), { code: 0, stdout: '', stderr: '2 tasks exported to all.\n' })
  t.strictSame(files('all'), [`${one}-4.json`, `${two}-4.json`].toSorted())
  t.match(await exported('--history', 'some', two), { code: 0, stderr: '1 task exported to some.\n' })
  t.strictSame(files('some'), [`${two}-4.json`])
  t.match(parseHistory(readFileSync(join(cwd, 'some', `${two}-4.json`), 'utf8')), { row: { taskId: two } })
  for (const [args, count] of [
    [['--limit', '1'], 1],
    [['--limit', '9'], 2],
    [['--state', 'input-required'], 2],
    [['--state', 'working'], 0],
    [['--state', 'working', '--limit', '2'], 0],
    [['--version', '1'], 2],
    [['--version', '2'], 0],
    [['--principal', 'bob'], 0],
    [['--tenant', '', '--since', '2020-01-01'], 2],
    [['--context', 'other'], 0]
  ] as const)
    t.match(
      await exported('--history', 'chosen', ...args),
      { stderr: `${count === 1 ? '1 task' : `${count} tasks`} exported to chosen.\n` },
      args.join(' ')
    )
  t.match(await exported('--history', 'some', ended, 'gone'), {
    code: 1,
    stderr: `taskchart: Task ${ended} has ended, so it has no history.\ntaskchart: Task gone is not there.\n0 tasks exported to some, 2 left out.\n`
  })
})

await t.test('export with wrong options says what to write', async t => {
  const { cwd, one, exported, command } = await stored(t)
  t.match(await exported('--redact'), { code: 2, stderr: /--redact is for --history DIR/ })
  t.match(await exported('--limit', '1'), { code: 2, stderr: /--limit is for --history DIR/ })
  t.match(await exported('--history', 'h', '--out', 'f'), { code: 2, stderr: /Leave out --out, --html and --svg/ })
  t.match(await exported('--history', 'h', '--limit', 'all'), { code: 2, stderr: /--limit takes a number/ })
  t.match(await command('tasks', 'export', 'http://127.0.0.1:1/', '--history', 'h'), {
    code: 2,
    stderr: /--history needs --db/
  })
  writeFileSync(join(cwd, 'file'), '')
  t.match(await exported('--history', 'file'), {
    code: 1,
    stderr: /file cannot be written: .*Give another folder with --history/
  })
  mkdirSync(join(cwd, 'taken', `${one}-4.json`), { recursive: true })
  t.match(await exported('--history', 'taken'), { code: 1, stderr: /-4\.json cannot be written/ })
})

await t.test('a task whose id is no name of a file has a digest in its name', async t => {
  const { store, exported, files } = await stored(t)
  for (const taskId of ['../a/b', 'o'.repeat(101)]) {
    const { tasks, ...others } = opening(taskId)
    await store.commit({ ...others, tasks: tasks.map(row => ({ ...row, snapshot: '{"format":1,"status":"active"}' })) })
  }
  t.match(await exported('--history', 'odd', '--principal', 'anna'), { code: 0, stderr: '2 tasks exported to odd.\n' })
  const { tasks, ...others } = opening('damaged')
  await store.commit({ ...others, tasks: tasks.map(row => ({ ...row, generation: 3, snapshot: '{"format":1}' })) })
  t.match(await exported('--history', 'damaged', 'damaged'), {
    code: 1,
    stderr: /0 tasks exported to damaged, 1 left out/
  })
  t.match(files('odd'), [/^_\.\._a_b-[\da-f]{12}-1\.json$/, /^_o{100}-[\da-f]{12}-1\.json$/])
})

await t.test('test --histories says of each task whether it goes on, and fails if one does not', async t => {
  const { cwd, one, exported, command } = await stored(t)
  await exported('--history', 'h', one)
  const replay = (agent: string, ...more: string[]) => command('test', agent, '--histories', 'h', ...more)
  t.match(await replay('same.ts'), { code: 0, stdout: '1 history: 1 same\n' })
  t.match(await replay('text.ts'), {
    code: 0,
    stdout: `h/${one}-4.json  otherwise\n  word 1: it was question "Size?", and is now question "Which size?"\n1 history: 1 otherwise\n`
  })
  t.match(await replay('text.ts', '--strict'), { code: 10 })
  t.match(await replay('form.ts'), { code: 10, stdout: /other answer/ })
  t.match(await replay('none.js'), {
    code: 10,
    stdout: /diverges\n {2}word 1: it was question "Size\?", and is now end of the work\n/
  })
  writeFileSync(join(cwd, 'h', 'cut.json'), '{')
  t.match(await replay('same.ts'), { code: 10, stdout: /2 histories: / })
  t.match(await replay('same.ts', '--tap'), {
    code: 10,
    stdout: /^TAP version 14\n1\.\.2\nok 1 - h\/.*-4\.json\nnot ok 2 - h\/cut\.json: unreadable: is not whole JSON/
  })
  t.match(await replay('same.ts', '--only', 'a'), { code: 2, stderr: /--only is for paths/ })
  t.match(await command('test', 'same.ts', '--histories', 'gone'), {
    code: 1,
    stderr: /There is no folder of histories/
  })
})

await t.test('PostgreSQL gives the histories, and the verdicts, of a SQLite file', { skip: NO_POSTGRES }, async t => {
  const server = await PostgresServer.start()
  t.teardown(() => server.stop())
  const cwd = t.testdir({})
  const file = join(cwd, 'tasks.db')
  const { logger } = recordingLogger()
  const stores: readonly Store[] = [sqliteStore(file), await postgresStore(server.url(), { logger })]
  t.teardown(() => Promise.all(stores.map(store => store.close())))
  for (const [round, conversation] of CONVERSATIONS.entries())
    if (['barista', 'trip'].includes(conversation.name)) {
      const commits = await commitsOf(conversation)
      for (const store of stores) t.ok(await storeStops(commits, store, round))
    }
  const agent = resolve('examples/trip.ts')
  /** What a command says of the tasks, in no order, and the files that it writes. */
  const saidBy = async (db: string, args: readonly string[]) => {
    const { code, stdout, stderr } = await runCommand(args, { cwd })
    const lines = `${stdout}${stderr}`.split('\n').filter(line => !line.includes('fsync off'))
    const folder = join(cwd, 'h')
    const files = existsSync(folder)
      ? readdirSync(folder)
          .toSorted()
          .map(name => [name, readFileSync(join(folder, name), 'utf8')])
      : []
    rmSync(folder, { recursive: true, force: true })
    return { code, lines: lines.map(line => line.replaceAll(db, 'DB')).toSorted(), files }
  }
  for (const more of [[], ['--redact'], ['--state', 'working'], ['--since', '1970-01-01'], ['--limit', '4']]) {
    const [one, other] = [
      await saidBy(file, ['tasks', 'export', '--db', file, '--history', 'h', ...more]),
      await saidBy(server.url(), ['tasks', 'export', '--db', server.url(), '--history', 'h', ...more])
    ]
    t.strictSame(other, one, more.join(' '))
    t.ok(one.files.length > 0, more.join(' '))
    for (const [, text] of one.files) t.equal(historyText(parseHistory(String(text))), text)
  }
  for (const args of [
    ['diff', agent, '-o', 'lines'],
    ['tasks', 'migrate', agent, '--dry-run', '-o', 'lines'],
    ['tasks', 'patches', '-o', 'lines']
  ])
    t.strictSame(
      await saidBy(server.url(), [...args, '--db', server.url()]),
      await saidBy(file, [...args, '--db', file]),
      args.join(' ')
    )
})
