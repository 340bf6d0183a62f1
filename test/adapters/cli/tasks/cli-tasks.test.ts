import '../../../fixtures/stores/needs-sqlite.ts'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { outputSink } from '../../../../adapters/cli/tasks/export.ts'
import { everyTask, type FoundTask } from '../../../../adapters/cli/tasks/source.ts'
import { sqliteStore } from '../../../../adapters/storage/sqlite.ts'
import type { TaskState } from '../../../../machines/protocol/states.ts'
import { artifact, data, inputRequired, progress, text } from '../../../../runtime/index.ts'
import { receivers } from '../../../fixtures/runtime/receiver.ts'
import { runCommand, type Surroundings } from '../../../fixtures/cli/run-command.ts'
import { collect, open, reaches, rest, say, taskIn, until } from '../../../fixtures/runtime/runtime-helpers.ts'
import { Screen } from '../../../fixtures/cli/screen.ts'
import { scripted } from '../../../fixtures/peers/scripted-agent.ts'
import { obedient, serve } from '../../../fixtures/servers/served-agent.ts'
import { edit, ending, opening } from '../../../fixtures/stores/stored-tasks.ts'
import { TestClock } from '../../../fixtures/runtime/test-clock.ts'

/* oxlint-disable no-control-regex -- control characters are what must not come to a terminal */

const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/

const wide = (columns: number) => ({ columns, hasColours: false })

/** An agent that is served with a file of its own, and `taskchart tasks` in the file's folder. */
async function served(
  t: Test,
  definition: Parameters<typeof serve>[1] = { work: obedient },
  options: Parameters<typeof serve>[2] = {}
) {
  const cwd = t.testdir()
  const agent = await serve(t, definition, { store: sqliteStore(join(cwd, 'tasks.db')), ...options })
  const tasks = (args: readonly string[], more?: Surroundings) =>
    runCommand(['tasks', ...args], { cwd, clock: agent.clock, ...more })
  const places: [string, string[]][] = [
    ['--db', ['--db', 'tasks.db']],
    ['URL', [agent.url]]
  ]
  return { ...agent, cwd, tasks, places, db: ['--db', 'tasks.db'], url: [agent.url] }
}

/** A file of 205 tasks that have ended, and an agent that serves them to their owner. */
async function crowded(t: Test) {
  const cwd = t.testdir()
  const store = sqliteStore(join(cwd, 'tasks.db'))
  const ids = Array.from({ length: 205 }, (_, index) => `t${String(index).padStart(3, '0')}`)
  await Promise.all(ids.flatMap(id => [store.commit(opening(id)), store.commit(ending(id))]))
  const { url, clock } = await serve(t, { work: obedient }, { store, authenticate: () => ({ id: 'anna' }) })
  const tasks = (args: readonly string[], more?: Surroundings) =>
    runCommand(['tasks', ...args], { cwd, clock, ...more })
  return {
    cwd,
    ids,
    tasks,
    places: [
      ['--db', ['--db', 'tasks.db']],
      ['URL', [url]]
    ] as [string, string[]][]
  }
}

/** Work that says, gives, keeps and asks something, all of it hostile to terminals. */
const hostile = {
  deadlineMs: 60 * 60 * 1000,
  work: async function* ({ step }: { step: (name: string, run: () => string) => Promise<string> }) {
    await step('log in\u001b[2J', () => 'hunter2')
    yield progress('Thinking.\u001b[2J')
    const parts = [
      text('abc'),
      text('def'),
      { url: 'https://a.example/\u0007x' },
      { ...data({ a: 1 }), mediaType: 'application/json' },
      { raw: 'AAECAw==', filename: 'ab\u001b.png', mediaType: 'image/png' }
    ]
    yield artifact({ artifactId: 'a1', name: 'story\u009b31m', description: 'One\nline.', parts, metadata: { x: 1 } })
    yield artifact({ artifactId: 'a1', parts: [text('more')] }, { append: true })
    yield* inputRequired('Which day?\nEvents\u001b]0;title\u0007')
  }
} as unknown as Parameters<typeof serve>[1]

const linesOf = (written: string) => written.trimEnd().split('\n')
const json = (written: string) =>
  linesOf(written).map(line => JSON.parse(line) as Record<string, Record<string, unknown>>)

await t.test('tasks ls', async t => {
  await t.test('shows the tasks of a file or an agent, the latest status first', async t => {
    const { runtime, clock, tasks, places } = await served(t)
    const asking = await open(runtime, 'ask', { contextId: 'c1' })
    await reaches(runtime, asking.id, 'input-required')
    clock.increment(3 * 60 * 1000)
    const done = await open(runtime, 'hi', { contextId: 'context-2' })
    await reaches(runtime, done.id, 'completed')
    clock.increment(5000)
    for (const [name, place] of places) {
      const { code, stdout, stderr } = await tasks(['ls', ...place])
      t.strictSame([code, stderr], [0, ''], name)
      const id = (text: string) => text.padEnd(Math.max(asking.id.length, done.id.length))
      t.equal(
        stdout,
        `${id('TASK')}  STATE           AGE  CONTEXT    MESSAGE
${id(done.id)}  completed       5s   context-2
${id(asking.id)}  input-required  3m   c1         And then?
`,
        name
      )
    }
  })

  await t.test('shows only matching tasks', async t => {
    const { runtime, clock, tasks, places } = await served(t)
    const one = await open(runtime, 'ask', { contextId: 'c1' })
    await reaches(runtime, one.id, 'input-required')
    clock.increment(60 * 60 * 1000)
    const two = await open(runtime, 'hi', { contextId: 'c1' })
    await reaches(runtime, two.id, 'completed')
    const three = await open(runtime, 'hi', { contextId: 'c2' })
    await reaches(runtime, three.id, 'completed')
    for (const [name, place] of places) {
      const ids = async (...args: string[]) =>
        json((await tasks(['ls', ...place, '--json', ...args])).stdout)
          .map(({ task }) => String(task?.['id']))
          .toSorted()
      t.strictSame(await ids('--state', 'input-required'), [one.id], name)
      t.strictSame(await ids('--context', 'c1'), [one.id, two.id].toSorted(), name)
      t.strictSame(await ids('--context', 'c1', '--state', 'completed'), [two.id], name)
      for (const since of ['30m', '1799s', '2026-01-02T05:00:00+01:00'])
        t.strictSame(await ids('--since', since), [two.id, three.id].toSorted(), `${name} ${since}`)
      for (const since of ['2h', '1d', '2026-01-02'])
        t.equal((await ids('--since', since)).length, 3, `${name} ${since}`)
      t.strictSame(
        await tasks(['ls', ...place, '--state', 'failed']),
        { code: 0, stdout: '', stderr: 'No tasks match.\n' },
        name
      )
      t.strictSame(
        await tasks(['ls', ...place, '--context', 'none', '--json']),
        { code: 0, stdout: '', stderr: 'No tasks match.\n' },
        name
      )
    }
  })

  await t.test('says when there are more, and shows more than an agent returns at once', async t => {
    const { ids, tasks, places } = await crowded(t)
    for (const [name, place] of places) {
      const few = await tasks(['ls', ...place])
      t.equal(linesOf(few.stdout).length, 51, name)
      t.equal(few.stderr, 'The newest 50 of 205 tasks. All of them: --limit 205\n', name)
      const all = await tasks(['ls', ...place, '--limit', '205', '--json'])
      t.equal(all.stderr, '', name)
      t.strictSame(
        json(all.stdout).map(({ task }) => task?.['id']),
        ids.toReversed(),
        name
      )
    }
  })

  await t.test('ignores a total below the number of received tasks', async t => {
    const task = (id: string) => ({ id, status: { state: 'TASK_STATE_WORKING' } })
    const url = await scripted(t, {
      ListTasks: [{ result: { tasks: [task('a'), task('b')], nextPageToken: '', pageSize: 2, totalSize: 0 } }]
    })
    const { stdout, stderr } = await runCommand(['tasks', 'ls', url, '--limit', '1'])
    t.match(linesOf(stdout)[1], /^a {5}working$/)
    t.equal(stderr, 'The newest 1 of 2 tasks. All of them: --limit 2\n')
  })

  await t.test('shows the tasks of all principals and tenants of a file, with their owners', async t => {
    const { runtime, clock, tasks, db } = await served(t)
    const ids: string[] = []
    for (const [text, principal, tenant] of [
      ['ask', 'anna', ''],
      ['ask', 'bert', ''],
      ['ask', 'anna', 't1']
    ] as const) {
      const task = await open(runtime, text, {}, { principal, tenant })
      await reaches(runtime, task.id, 'input-required', { principal, tenant })
      ids.unshift(task.id)
      clock.increment(1000)
    }
    const { stdout } = await tasks(['ls', ...db])
    t.match(linesOf(stdout)[0], /AGE {2}TENANT {2}PRINCIPAL {2}CONTEXT/)
    t.match(
      linesOf(stdout)
        .slice(1)
        .map(line => line.split(/ +/).slice(0, 5)),
      [
        [ids[0], 'input-required', '1s', 't1', 'anna'],
        [ids[1], 'input-required', '2s', 'bert'],
        [ids[2], 'input-required', '3s', 'anna']
      ]
    )
    const shown = async (...args: string[]) =>
      json((await tasks(['ls', ...db, '--json', ...args])).stdout).map(({ task }) => task?.['id'])
    t.strictSame(await shown('--principal', 'anna'), [ids[0], ids[2]])
    t.strictSame(await shown('--principal', 'anna', '--tenant', ''), [ids[2]])
    t.strictSame(await shown('--limit', '1'), [ids[0]])
    t.match(await tasks(['ls', ...db, '--limit', '2']), { stderr: 'The newest 2 of 3 tasks. All of them: --limit 3\n' })
    t.notMatch((await tasks(['ls', ...db, '--principal', 'bert'])).stdout, 'PRINCIPAL')
    t.match(json((await tasks(['ls', ...db, '--json', '--tenant', 't1'])).stdout), [
      { tenant: 't1', principal: 'anna', generation: 4, task: { id: ids[0] } }
    ])
    t.match(await tasks(['ls', ...db, '--principal', 'nobody']), { code: 0, stdout: '', stderr: 'No tasks match.\n' })
  })

  await t.test('lists tasks with equal times together, across owners', async t => {
    const { runtime, tasks, db } = await served(t)
    for (const principal of ['anna', 'bert'])
      await reaches(runtime, (await open(runtime, 'ask', {}, { principal })).id, 'input-required', { principal })
    t.strictSame(
      json((await tasks(['ls', ...db, '--json'])).stdout).map(({ principal }) => principal),
      ['anna', 'bert']
    )
  })

  await t.test('lists a task whose status has no time last', async t => {
    const cwd = t.testdir()
    const store = sqliteStore(join(cwd, 'tasks.db'))
    const status = { taskId: 'timeless', contextId: 'c', status: { state: 'TASK_STATE_SUBMITTED' as const } }
    await store.commit({
      ...opening('timeless', { contextId: 'c' }),
      log: [{ taskId: 'timeless', generation: 1, update: { statusUpdate: status } }]
    })
    await store.commit(opening('timed'))
    await store.close()
    const { stdout } = await runCommand(['tasks', 'ls', '--db', 'tasks.db'], {
      cwd,
      clock: new TestClock('2026-01-02T03:05:00.000Z')
    })
    t.equal(
      stdout,
      'TASK      STATE      AGE  CONTEXT           MESSAGE\ntimed     submitted  54s  context of timed\ntimeless  submitted       c\n'
    )
    t.match(await runCommand(['tasks', 'show', 'timed', '--db', 'tasks.db'], { cwd }), {
      code: 0,
      stdout: /^wakes {7}at once: its work is running$/m,
      stderr: ''
    })
  })

  await t.test('fits a terminal, and escapes the texts of tasks', async t => {
    const { runtime, tasks, places } = await served(t, hostile)
    const { id } = await open(runtime, 'go', { contextId: `c${'x'.repeat(60)}` })
    await reaches(runtime, id, 'input-required')
    for (const [name, place] of places) {
      const { stdout } = await tasks(['ls', ...place], { screen: wide(70) })
      for (const line of linesOf(stdout)) t.ok(line.length <= 70, name)
      t.match(stdout, `${id}  input-required  0s   c${'x'.repeat(21)}…  Which day`, name)
      for (const written of [
        stdout,
        (await tasks(['ls', ...place])).stdout,
        (await tasks(['ls', ...place, '--json'])).stdout
      ])
        t.notMatch(written, CONTROL, name)
      t.match((await tasks(['ls', ...place])).stdout, /x{60} {2}Which day\? Events\]0;title\n$/, name)
    }
  })

  await t.test('names a damaged task, and shows the others', async t => {
    const { cwd, tasks } = await crowded(t)
    edit(join(cwd, 'tasks.db'), database => database.exec("UPDATE tasks SET messages = 99 WHERE taskId = 't003'"))
    const { code, stdout, stderr } = await tasks(['ls', '--db', 'tasks.db', '--limit', '300'])
    t.strictSame([code, linesOf(stdout).length], [0, 205])
    t.match(stderr, /^taskchart: The task with the row \d+ cannot be read: its stored data is damaged\.\n$/)
  })
})

await t.test('tasks show', async t => {
  await t.test('shows all that a file has of a task, except its journal', async t => {
    const { runtime, clock, tasks, db } = await served(t, hostile)
    const { id } = await open(runtime, 'a boat\nplease', { contextId: 'c1', metadata: { m: 1 } }, { tenant: 't1' })
    await reaches(runtime, id, 'input-required', { tenant: 't1' })
    clock.increment(60 * 1000)
    const { code, stdout, stderr } = await tasks(['show', ...db, id])
    t.strictSame([code, stderr], [0, ''])
    const at = '2026-01-02T03:04:05.006Z'
    const blank = ' '.repeat(at.length)
    t.equal(
      stdout,
      `task        ${id}
context     c1
tenant      t1
principal   anonymous
state       input-required: Which day? Events]0;title
since       ${at} (1m ago)
began       ${at} (1m ago)
generation  7
wakes       2026-01-02T04:04:05.006Z (in 59m)
deadline    2026-01-02T04:04:05.006Z (in 59m)

Messages
  user: a boat
    please
  agent: Thinking.[2J

Artifacts
  story31m (a1, 21 bytes): One line.
    text: story31m, 6 bytes
    url: story31m: https://a.example/ x
    data: story31m (application/json), 7 bytes
    file: ab.png (image/png, 4 bytes)
    text: story31m, 4 bytes

Events
     2  ${at}  submitted
     3  ${at}  working
     4  ${at}  working: Thinking.[2J
     5  ${blank}  artifact story31m (17 bytes)
     6  ${blank}  artifact a1 (more, 4 bytes)
     7  ${at}  input-required: Which day? Events]0;title

Journal
  request
  step/log in[2J/1
`.replace('/ x', '/x')
    )
    t.notMatch(stdout, 'hunter2')
  })

  await t.test('shows the state of webhooks, dead letters included, without secrets', async t => {
    const sender = receivers()
    sender.answer = ({ url }) => ({
      status: url.includes('dead') ? 404 : url.includes('down') ? 503 : url.includes('picky') ? 413 : 200
    })
    const { runtime, tasks, db, clock, log } = await served(t, { work: obedient }, { push: sender })
    const { id } = taskIn(
      await runtime.sendMessage(
        say('ask', {}, { taskPushNotificationConfig: { id: 'good', url: 'https://good.example/hidden' } })
      )
    )
    for (const name of ['dead', 'down', 'picky'])
      await runtime.createTaskPushNotificationConfig({
        taskId: id,
        id: name,
        url: `https://${name}.example/hidden?hidden`,
        token: 'hidden'
      })
    await runtime.sendMessage(say('red', { taskId: id }))
    await until(() => {
      clock.increment(50)
      return log.some(({ message }) => message === 'a webhook is given up')
    })
    await until(async () => /given up[^]*picky.*3 rejected/.test((await tasks(['show', ...db, id])).stdout))
    const { stdout } = await tasks(['show', ...db, id])
    const lines = linesOf(stdout)
    const [good, dead, down, picky] = lines.slice(lines.indexOf('Webhooks') + 1)
    t.equal(good, '  good  https://good.example  told 8 of 8')
    t.equal(dead, '  dead  https://dead.example  told 4 of 8; given up after 8 tries: HTTP 404')
    t.match(
      down,
      /^ {2}down {2}https:\/\/down\.example {2}told 4 of 8; tried \d+ times, the next 2026-\S+ \(.*\): HTTP 503$/
    )
    t.equal(picky, '  picky  https://picky.example  told 8 of 8; 3 rejected, the newest was 8: HTTP 413')
    const [shown] = json((await tasks(['show', ...db, id, '--json'])).stdout)
    t.match(shown?.['webhooks'], [
      { id: 'good', host: 'https://good.example', version: '1.0', told: 8, tries: 0, end: 'told' },
      { id: 'dead', tries: 8, failure: 'HTTP 404', end: 'given up' },
      { id: 'down' }
    ])
    const [exported] = json((await tasks(['export', ...db, id])).stdout)
    t.strictSame(exported?.['webhooks'], shown?.['webhooks'])
    t.notMatch(stdout + JSON.stringify([shown, exported]), 'hidden')
  })

  await t.test('shows the task as its agent returns it', async t => {
    const { runtime, tasks, url } = await served(t, hostile)
    const { id } = await open(runtime, 'a boat', { contextId: 'c1' })
    await reaches(runtime, id, 'input-required')
    const { code, stdout, stderr } = await tasks(['show', ...url, id])
    t.strictSame([code, stderr], [0, ''])
    t.match(
      stdout,
      `task        ${id}\ncontext     c1\nstate       input-required: Which day? Events]0;title\nsince       2026-01-02T03:04:05.006Z (0s ago)\ngeneration  7\n\nMessages\n  user: a boat\n`
    )
    t.notMatch(stdout, /^(?:Events|Journal|Metadata)$/m)
    t.notMatch(stdout, CONTROL)
  })

  await t.test('shows the task as JSON', async t => {
    const { runtime, tasks, places } = await served(t, hostile)
    const { id } = await open(runtime, 'a boat')
    await reaches(runtime, id, 'input-required')
    for (const [name, place] of places) {
      const { code, stdout } = await tasks(['show', ...place, id, '--json'])
      t.strictSame([code, linesOf(stdout).length], [0, 1], name)
      t.match(
        json(stdout)[0],
        {
          id,
          status: { state: 'TASK_STATE_INPUT_REQUIRED' },
          history: [{ parts: [{ text: 'a boat' }] }, {}],
          artifacts: [{ parts: { length: 6 } }]
        },
        name
      )
      t.notMatch(stdout, CONTROL, name)
    }
  })

  await t.test('shows tasks that have ended, are working, or have few details', async t => {
    const { runtime, tasks, db } = await served(t, {
      work: async ({ message, emit, sleep }) => {
        if (message.parts.length === 2)
          return {
            artifact: artifact({ artifactId: 'a', parts: [text('x')] }).artifact,
            metadata: { price: { 'a\u001b': 1 } }
          }
        if (message.messageId === 'sleep') await sleep(60_000)
        emit(progress('going'))
        await new Promise(() => {})
        return {}
      }
    })
    const done = await open(runtime, '', { parts: [text('a'), { raw: 'AA==', filename: 'a.bin' }] })
    await reaches(runtime, done.id, 'completed')
    const { stdout } = await tasks(['show', ...db, done.id])
    t.match(stdout, 'state       completed\n')
    t.match(stdout, '  user: a a.bin (1 byte)\n')
    t.match(stdout, 'Metadata\n  price: {"a\\u001b":1}\n')
    t.match(stdout, 'Artifacts\n  a (1 byte)\n    text: a, 1 byte\n')
    t.notMatch(stdout, /^(?:wakes|deadline|Journal)/m)
    const going = await open(runtime)
    t.match((await tasks(['show', ...db, going.id])).stdout, 'wakes       at once: its work is running\n')
  })

  await t.test('shows an agent of another vendor whose tasks have only required fields', async t => {
    const url = await scripted(t, { GetTask: [{ result: { id: 't1', status: { state: 'TASK_STATE_WORKING' } } }] })
    t.strictSame(await runCommand(['tasks', 'show', url, 't1']), {
      code: 0,
      stdout: 'task        t1\nstate       working\n',
      stderr: ''
    })
  })

  await t.test('reports a task that is missing, damaged or of another caller', async t => {
    const { tasks, places, cwd } = await crowded(t)
    for (const [name, place] of places)
      t.strictSame(
        await tasks(['show', ...place, 'nope']),
        { code: 1, stdout: '', stderr: 'taskchart: Task nope was not found.\n' },
        name
      )
    edit(join(cwd, 'tasks.db'), database => database.exec("UPDATE tasks SET messages = 99 WHERE taskId = 't003'"))
    for (const [name, place] of places)
      t.match(
        await tasks(['show', ...place, 't003']),
        { code: 1, stdout: '', stderr: /^taskchart: Task t003 cannot be read: its stored data is damaged\.\n$/ },
        name
      )
    t.match(await tasks(['show', 't004', '--db', 'tasks.db', '--principal', 'bert']), {
      code: 1,
      stderr: /Task t004 was not found/
    })
  })

  await t.test('shows a task whose context is damaged, and says so', async t => {
    const { runtime, cwd, tasks, db } = await served(t)
    const [{ id }, other] = [
      await open(runtime, 'ask', { contextId: 'c1' }),
      await open(runtime, 'ask', { contextId: 'c1' })
    ]
    for (const task of [id, other.id]) await reaches(runtime, task, 'input-required')
    edit(join(cwd, 'tasks.db'), database =>
      database.prepare('UPDATE tasks SET messages = 99 WHERE taskId = ?').run(other.id)
    )
    t.match(
      await tasks(['export', ...db, id]),
      { code: 0, stderr: '1 task exported.\n' },
      'what else is damaged in its context is no part of it'
    )
    edit(join(cwd, 'tasks.db'), database => database.exec("UPDATE contexts SET snapshot = 'x'"))
    const { code, stdout, stderr } = await tasks(['show', ...db, id])
    t.strictSame([code, stderr], [0, 'taskchart: Context c1 cannot be read: its stored data is damaged.\n'])
    t.match(stdout, 'input-required: And then?')
  })
})

await t.test('tasks export', async t => {
  await t.test('writes every task of a file or an agent as a line, page by page', async t => {
    const { ids, tasks, places } = await crowded(t)
    for (const [name, place] of places) {
      const { code, stdout, stderr } = await tasks(['export', ...place])
      t.strictSame([code, stderr], [0, '205 tasks exported.\n'], name)
      const lines = json(stdout)
      t.strictSame(
        lines.map(({ task }) => task?.['id']),
        ids.toReversed(),
        name
      )
      t.match(
        lines[0],
        {
          generation: 3,
          task: {
            history: [{ parts: [{ text: 'words of t204' }] }],
            artifacts: [{ parts: [{ text: 'result of t204' }] }]
          }
        },
        name
      )
    }
  })

  await t.test('writes the additional fields of a file, without the journal', async t => {
    const { runtime, tasks, db } = await served(t, hostile)
    const { id } = await open(runtime, 'a boat')
    await reaches(runtime, id, 'input-required')
    const { stdout, stderr } = await tasks(['export', ...db, id])
    t.equal(stderr, '1 task exported.\n')
    t.match(json(stdout), [
      {
        tenant: '',
        principal: 'anonymous',
        generation: 7,
        task: { id },
        journal: ['request', 'step/log in\u001b[2J/1'],
        wakeAtMs: Date.parse('2026-01-02T04:04:05.006Z'),
        deadlineAtMs: Date.parse('2026-01-02T04:04:05.006Z'),
        events: [
          { generation: 2, statusUpdate: { status: { state: 'TASK_STATE_SUBMITTED' } } },
          {},
          {},
          { generation: 5, artifactUpdate: {} },
          {},
          { generation: 7 }
        ]
      }
    ])
    t.notMatch(stdout, /hunter2|[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
  })

  await t.test('writes the named tasks, and lists the unreadable ones', async t => {
    const { cwd, tasks, places } = await crowded(t)
    edit(join(cwd, 'tasks.db'), database => database.exec("UPDATE tasks SET messages = 99 WHERE taskId = 't003'"))
    for (const [name, place] of places) {
      const { code, stdout, stderr } = await tasks(['export', ...place, 't001', 'nope', 't003', 't002'])
      t.equal(code, 1, name)
      t.strictSame(
        json(stdout).map(({ task }) => task?.['id']),
        ['t001', 't002'],
        name
      )
      t.equal(
        stderr,
        'taskchart: Task nope was not found.\ntaskchart: Task t003 cannot be read: its stored data is damaged.\n2 tasks exported, 2 left out.\n',
        name
      )
    }
    t.match(await tasks(['export', '--db', 'tasks.db']), {
      code: 1,
      stderr: /^taskchart: The task with the row \d+ .*\n204 tasks exported, 1 left out\.\n$/
    })
  })

  await t.test('neither misses nor repeats a task that changes meanwhile', async t => {
    const at = (id: string, timestamp?: string, state: TaskState = 'TASK_STATE_WORKING'): FoundTask => ({
      task: { id, status: { state, ...(timestamp !== undefined && { timestamp }) } }
    })
    const exported = async (pages: Record<string, { tasks: FoundTask[]; next?: string }>) => {
      const asked: string[] = []
      const found = await collect(
        everyTask<string>(async (since = '', after = '') => {
          const page = `${since}/${after}`
          asked.push(page)
          return pages[page] ?? { tasks: [] }
        })
      )
      return { ids: found.map(({ task }) => task.id), asked }
    }
    // While the second page is read c moves to the front, and a ends; then d moves to the front. e is new.
    const moving = {
      '/': { tasks: [at('a', '19')], next: 'a' },
      '/a': { tasks: [at('b', '18', 'TASK_STATE_COMPLETED')] },
      '19/': { tasks: [at('c', '21', 'TASK_STATE_FAILED'), at('a', '20', 'TASK_STATE_COMPLETED')], next: 'a' },
      '19/a': { tasks: [at('b', '18', 'TASK_STATE_COMPLETED')] },
      '21/': { tasks: [at('e', '23'), at('d', '22'), at('c', '21', 'TASK_STATE_FAILED')] }
    }
    t.strictSame(await exported(moving), { ids: ['a', 'b', 'c', 'e', 'd'], asked: ['/', '/a', '19/', '19/a', '21/'] })
    const timeless = {
      '/': { tasks: [at('a')], next: 'a' },
      '/a': { tasks: [at('b', undefined, 'TASK_STATE_FAILED')] }
    }
    t.strictSame(await exported(timeless), { ids: ['a', 'b'], asked: ['/', '/a', '/', '/a'] })
  })

  await t.test('ends at an empty page and at a repeated token, as tasks ls does', async t => {
    const tasks = [{ id: 'a', status: { state: 'TASK_STATE_WORKING' } }]
    const page = (nextPageToken: string, listed: object[] = tasks) => ({
      result: { tasks: listed, nextPageToken, pageSize: 1, totalSize: 1 }
    })
    for (const always of [page('1', []), page('1')]) {
      const url = await scripted(t, { ListTasks: [always], GetTask: [{ result: tasks[0] }] })
      for (const command of ['ls', 'export']) t.equal((await runCommand(['tasks', command, url])).code, 0, command)
    }
  })

  await t.test('omits tasks that are removed meanwhile', async t => {
    const tasks = ['a', 'b'].map(id => ({ id, status: { state: 'TASK_STATE_WORKING' } }))
    const url = await scripted(t, {
      ListTasks: [{ result: { tasks, nextPageToken: '', pageSize: 2, totalSize: 2 } }],
      GetTask: [{ error: { code: -32001, message: 'Task not found' } }]
    })
    t.strictSame(await runCommand(['tasks', 'export', url]), { code: 0, stdout: '', stderr: '0 tasks exported.\n' })
  })

  await t.test('ends at any other error', async t => {
    const url = await scripted(t, { GetTask: [{ error: { code: -31403, message: 'Not yours' } }] })
    const cwd = t.testdir()
    t.match(await runCommand(['tasks', 'export', url, 'a', '--out', 'all.jsonl'], { cwd }), {
      code: 4,
      stdout: '',
      stderr: /^taskchart: Not yours\n$/
    })
    t.strictSame(readdirSync(cwd), [])
  })

  await t.test('writes a new file, and never overwrites one', async t => {
    const { cwd, tasks } = await crowded(t)
    const all = ['export', '--db', 'tasks.db']
    const { stdout } = await tasks(all)
    t.strictSame(await tasks([...all, '--out', 'all.jsonl']), { code: 0, stdout: '', stderr: '205 tasks exported.\n' })
    t.equal(readFileSync(join(cwd, 'all.jsonl'), 'utf8'), stdout)
    t.match(await tasks(['export', 't001', '--db', 'tasks.db', '--out', 'all.jsonl']), {
      code: 1,
      stderr: /all\.jsonl exists, and files are never overwritten\. Give another name with --out\.\n$/
    })
    t.equal(readFileSync(join(cwd, 'all.jsonl'), 'utf8'), stdout)
    t.match(await tasks([...all, '--out', 'none/all.jsonl']), {
      code: 1,
      stderr: /none\/all\.jsonl cannot be written: ENOENT/
    })
  })

  await t.test('has its name when it is whole, and overwrites none that came meanwhile', async t => {
    const { cwd, tasks } = await crowded(t)
    const exporting = tasks(['export', '--db', 'tasks.db', '--out', 'all.jsonl'])
    await until(() => readdirSync(cwd).some(name => name.endsWith('.part')))
    t.notOk(readdirSync(cwd).includes('all.jsonl'))
    writeFileSync(join(cwd, 'all.jsonl'), 'mine')
    t.match(await exporting, { code: 1, stderr: /all\.jsonl exists, and files are never overwritten/ })
    t.equal(readFileSync(join(cwd, 'all.jsonl'), 'utf8'), 'mine')
    t.notOk(readdirSync(cwd).some(name => name.endsWith('.part')))
  })

  await t.test('shows its progress on a terminal without other output', async t => {
    const { tasks } = await crowded(t)
    // The first timer is that of the line, which is drawn at once; others never come.
    const run = async (args: readonly string[], more: Surroundings) => {
      let timers = 0
      const clock = {
        now: () => 0,
        setTimeout: (call: () => void) => void ((timers += 1) === 1 && call()),
        clearTimeout() {}
      }
      const screen = new Screen()
      const drawn: string[] = []
      const heard = (text: string) => {
        screen.write(text)
        drawn.push(screen.last ?? '')
      }
      await tasks(['export', '--db', 'tasks.db', ...args], { clock, heard, terminal: wide(80), ...more })
      return { drawn, lines: screen.lines }
    }
    t.match(await run([], {}), { drawn: ['exporting: 0 tasks exported'], lines: ['205 tasks exported.', ''] })
    t.match(await run(['--out', 'one.jsonl'], { screen: wide(80) }), { drawn: ['exporting: 0 tasks exported'] })
    t.strictSame((await run([], { screen: wide(80) })).drawn, [''])
  })

  await t.test('waits for each written line before it reads on', async t => {
    const waiting: (() => void)[] = []
    const sink = outputSink({ write: (_, written = () => {}) => void waiting.push(written) })
    const order: string[] = []
    const writing = sink.write('one\n').then(() => order.push('written'))
    await rest()
    order.push('out')
    for (const written of waiting) written()
    await writing
    t.strictSame(order, ['out', 'written'])
  })

  await t.test('writes all lines to a pipe before the command ends', async t => {
    const { cwd, ids } = await crowded(t)
    const child = spawn(process.execPath, [
      'dist/adapters/cli/bin.js',
      'tasks',
      'export',
      '--db',
      join(cwd, 'tasks.db')
    ])
    t.teardown(() => child.kill('SIGKILL'))
    let written = ''
    child.stdout.on('data', chunk => (written += String(chunk)))
    t.strictSame(await once(child, 'close'), [0, null])
    t.equal(linesOf(written).length, ids.length)
  })

  await t.test('ends quietly when its output is closed', async t => {
    const { cwd } = await crowded(t)
    const child = spawn(process.execPath, [
      'dist/adapters/cli/bin.js',
      'tasks',
      'export',
      '--db',
      join(cwd, 'tasks.db')
    ])
    t.teardown(() => child.kill('SIGKILL'))
    child.stdout.destroy()
    const [code] = (await once(child, 'close')) as [number]
    t.equal(code, 1)
    t.equal(child.stderr.read(), null)
  })

  await t.test('leaves no file when it is stopped halfway', async t => {
    const { cwd, tasks, places } = await crowded(t)
    for (const [name, place] of places) {
      const stop = new AbortController()
      let count = 0
      const printed = () => void ((count += 1) === 120 && stop.abort())
      const { code, stdout } = await tasks(['export', ...place], { signal: stop.signal, printed })
      t.strictSame([code, linesOf(stdout).length], [130, 120], name)
    }
    const signal = {
      aborted: false,
      throwIfAborted: () => {
        throw new Error('stopped')
      }
    } as unknown as AbortSignal
    t.equal((await tasks(['export', '--db', 'tasks.db', '--out', 'all.jsonl'], { signal })).code, 1)
    t.notOk(readdirSync(cwd).includes('all.jsonl'))
  })
})

await t.test('tasks cancel', async t => {
  await t.test('cancels a task, and prints its state', async t => {
    const { runtime, tasks, url } = await served(t)
    const [one, two, ended] = [await open(runtime, 'wait'), await open(runtime, 'ask'), await open(runtime, 'hi')]
    await reaches(runtime, ended.id, 'completed')
    t.strictSame(await tasks(['cancel', ...url, one.id]), { code: 0, stdout: 'canceled\n', stderr: '' })
    const { code, stdout } = await tasks(['cancel', ...url, two.id, '--json'])
    t.equal(code, 0)
    t.match(json(stdout), [{ id: two.id, status: { state: 'TASK_STATE_CANCELED' } }])
    t.strictSame(await tasks(['cancel', ...url, ended.id]), {
      code: 1,
      stdout: '',
      stderr: `taskchart: Task ${ended.id} has ended (TASK_STATE_COMPLETED) and cannot be canceled.\n`
    })
    t.strictSame(await tasks(['cancel', ...url, 'nope']), {
      code: 1,
      stdout: '',
      stderr: 'taskchart: Task nope was not found.\n'
    })
  })

  await t.test('does not change a file, and says why', async t => {
    const { tasks, db } = await served(t)
    t.match(await tasks(['cancel', ...db, 't1']), {
      code: 2,
      stdout: '',
      stderr:
        /a server that uses it would not notice\. Cancel through the server: taskchart tasks cancel URL TASK\.\nUsage: taskchart tasks/
    })
    t.match(await tasks(['cancel', 't1']), { code: 2, stderr: /^taskchart: TASK is missing\./ })
  })
})

await t.test('a key is sent to an agent that requires one', async t => {
  const { runtime, tasks, url } = await served(
    t,
    { work: obedient },
    { authenticate: ({ headers }) => (headers['authorization'] === 'Bearer secret' ? { id: 'me' } : undefined) }
  )
  const mine = await open(runtime, 'wait', {}, { principal: 'me' })
  await open(runtime, 'wait', {}, { principal: 'others' })
  t.match(await tasks(['ls', ...url]), {
    code: 4,
    stdout: '',
    stderr: /requires a key\. Give one with --api-key KEY\.\n$/
  })
  t.strictSame(
    json((await tasks(['ls', ...url, '--json', '--api-key', 'secret'])).stdout).map(({ task }) => task?.['id']),
    [mine.id]
  )
  t.match(await tasks(['cancel', ...url, mine.id, '--api-key', 'secret']), { code: 0, stdout: 'canceled\n' })
})

await t.test('a file without tasks prints none, and a missing file is an error', async t => {
  const cwd = t.testdir()
  await sqliteStore(join(cwd, 'empty.db')).close()
  t.strictSame(await runCommand(['tasks', 'ls', '--db', 'empty.db'], { cwd }), {
    code: 0,
    stdout: '',
    stderr: 'No tasks match.\n'
  })
  t.strictSame(await runCommand(['tasks', 'export', '--db', 'empty.db'], { cwd }), {
    code: 0,
    stdout: '',
    stderr: '0 tasks exported.\n'
  })
  for (const args of [['ls'], ['show', 't1'], ['export', '--out', 'all.jsonl']])
    t.match(await runCommand(['tasks', ...args, '--db', 'none.db'], { cwd }), {
      code: 1,
      stdout: '',
      stderr: /none\.db does not exist\.\n$/
    })
  t.notOk(readdirSync(cwd).includes('all.jsonl'))
})

await t.test('doctor reads the file, and says if a task is damaged', async t => {
  const { cwd, db } = await served(t)
  t.match(await runCommand(['doctor', ...db], { cwd }), {
    code: 0,
    stdout: /\nok {5}tasks\.db can be read: 0 tasks\n$/
  })
  const store = sqliteStore(join(cwd, 'one.db'))
  t.teardown(() => store.close())
  await store.commit(opening('t003'))
  t.match(await runCommand(['doctor', '--db', 'one.db'], { cwd }), {
    code: 0,
    stdout: /\nok {5}one\.db can be read: 1 task\n$/
  })
  edit(join(cwd, 'one.db'), database => database.exec("UPDATE tasks SET messages = 99 WHERE taskId = 't003'"))
  t.match(await runCommand(['doctor', '--db', 'one.db'], { cwd }), {
    code: 1,
    stdout: /\nWRONG {2}one\.db is damaged: The task with the row \d+ cannot be read[^\n]*\n {7}Restore a backup: /
  })
})

await t.test('Ctrl-C stops it', async t => {
  const { tasks, places } = await crowded(t)
  for (const [name, place] of places)
    t.match(await tasks(['ls', ...place], { signal: AbortSignal.abort() }), { code: 130, stdout: '', stderr: '' }, name)
})

await t.test('help lists every action, option and exit code', async t => {
  for (const argv of [
    ['help', 'tasks'],
    ['tasks', '--help'],
    ['tasks', 'ls', '-h']
  ]) {
    const { code, stdout } = await runCommand(argv)
    t.equal(code, 0)
    t.match(
      stdout,
      /^Usage: taskchart tasks ls URL\|--db FILE\|URL [\s\S]*--db FILE[\s\S]*--since TIME[\s\S]*Exit codes: 0/
    )
  }
  t.match((await runCommand([])).stdout, /\n {2}taskchart tasks +list, show/)
})

await t.test('wrong usage is reported with the usage line and exit code 2', async t => {
  const place = ['ws://127.0.0.1:1/']
  const cases: [string[], RegExp][] = [
    [[], /Say what to do with tasks: ls, show, export, patches, migrate or cancel\./],
    [['rm'], /Tasks have no "rm"\. There are: ls, show, export, patches, migrate, cancel\./],
    [['constructor'], /Tasks have no "constructor"/],
    [['sohw'], /Tasks have no "sohw"\. Did you mean show\?/],
    [['ls'], /URL or --db FILE is missing\./],
    [['ls', ...place, '--db', 'x.db'], /URL and --db FILE exclude each other\./],
    [['ls', ...place, '--tenant', 'x'], /--tenant and --principal are for --db/],
    [['ls', ...place, '--principal', 'x'], /--tenant and --principal are for --db/],
    [['ls', '--db', 'x.db', '--api-key', 'x'], /--api-key is for a URL/],
    [['ls', ...place, '--api-key', 'two words'], /--api-key takes printable ASCII/],
    [['ls', 'nowhere'], /"nowhere" is not a URL\. Give the agent's URL first, or --db FILE\./],
    [['cancel', 'nowhere', 't1'], /"nowhere" is not the address of an agent/],
    [
      ['ls', ...place, '--state', 'unspecified'],
      /--state takes submitted, working, completed, .*, not "unspecified"\./
    ],
    [['ls', ...place, '--state', 'TASK_STATE_WORKING'], /--state takes/],
    [['ls', ...place, '--since', 'yesterday'], /--since takes a time such as .*, not "yesterday"\./],
    [['ls', ...place, '--since', '2026-02-30'], /--since takes/],
    [['ls', ...place, '--since', '999999d'], /--since takes/],
    [['ls', ...place, '--limit', '0'], /--limit takes a number from 1 on, not "0"\./],
    [['ls', ...place, '--limit', '1e3'], /--limit takes a number/],
    [['ls', ...place, 't1'], /"t1" is one argument too many/],
    [['show', ...place], /TASK is missing\./],
    [['show', ...place, 'a', 'b'], /"b" is one argument too many/],
    [['export', ...place, '--jsonl'], /There is no option --jsonl\. There are: --db, /],
    [['cancel', ...place], /TASK is missing\./]
  ]
  for (const [argv, message] of cases) {
    const { code, stdout, stderr } = await runCommand(['tasks', ...argv])
    t.strictSame([code, stdout], [2, ''], argv.join(' '))
    t.match(stderr, message)
    t.match(stderr, /\nUsage: taskchart tasks .*\n(?: {7}taskchart tasks .*\n)+$/)
  }
})
