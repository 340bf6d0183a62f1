import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { agentTests, testAgent, type AgentTestOptions } from '../../../../adapters/testing/index.ts'
import { historyText, parseHistory } from '../../../../adapters/testing/histories/history.ts'
import { redactedTask } from '../../../../adapters/testing/histories/redaction.ts'
import {
  differenceText,
  failsTest,
  historyFiles,
  replayFile,
  replayFiles
} from '../../../../adapters/testing/histories/replay-histories.ts'
import ask from '../../../../examples/ask.ts'
import barista from '../../../../examples/barista.ts'
import hotel from '../../../../examples/hotel.ts'
import { defineAgent } from '../../../../runtime/index.ts'
import { memoryStore } from '../../../../runtime/store/memory/memory-store.ts'
import type { RecordedTask } from '../../../../runtime/work-port.ts'
import { CONVERSATIONS } from '../../../fixtures/histories/example-tasks.ts'
import { commitsOf, recordsIn, storeStops } from '../../../fixtures/histories/conversations.ts'
import { collect, rejection } from '../../../fixtures/runtime/runtime-helpers.ts'

/** The records of a conversation with an example, at each of its stops. */
async function recordsOf(name: string): Promise<RecordedTask[]> {
  const conversation = CONVERSATIONS.find(one => one.name === name)
  if (!conversation) throw new TypeError(name)
  const store = memoryStore()
  await storeStops(await commitsOf(conversation), store)
  return recordsIn(store)
}

await t.test('tasks that every release has stored go on with the examples of today', async t => {
  const releases = readdirSync('test/histories')
  t.ok(releases.length >= 2)
  for (const release of releases)
    for (const { name, agent } of CONVERSATIONS) {
      const replays = await collect(replayFiles(agent, await historyFiles(join('test/histories', release, name))))
      t.ok(replays.length > 0)
      t.strictSame(
        replays.filter(({ outcome }) => outcome !== 'same'),
        [],
        `${name} of ${release}`
      )
    }
})

await t.test('a history is the task again, and its text is the same twice', async t => {
  for (const name of ['trip', 'barista', 'refund'])
    for (const record of await recordsOf(name)) {
      const text = historyText(record)
      const parsed = parseHistory(text)
      t.strictSame(parsed, record)
      t.equal(historyText(parsed), text)
      const redacted = historyText(redactedTask(record))
      t.equal(historyText(parseHistory(redacted)), redacted)
    }
  const [record] = await recordsOf('hotel')
  if (!record) throw new TypeError('no record')
  t.match(JSON.parse(historyText(record, '{"format":1,"version":"1"}')), { definition: { version: '1' } })
})

await t.test('a file that is no history is named with what is wrong', async t => {
  const records = await recordsOf('hotel')
  const whole = historyText(records.at(-1) as RecordedTask)
  const history = JSON.parse(whole) as {
    readonly task: object
    readonly snapshot: object
    readonly events: readonly { readonly generation: number; readonly update: object }[]
    readonly messages: readonly { readonly message: object }[]
  }
  const { task, snapshot, events, messages } = history
  const [{ message } = { message: {} }] = messages
  const of = (changes: object) => JSON.stringify({ ...history, ...changes })
  const files = {
    'cut.json': whole.slice(0, 300),
    'list.json': '[]',
    'newer.json': of({ format: 2 }),
    'no-format.json': of({ format: undefined }),
    'no-task.json': of({ task: { taskId: 'a', state: 'TASK_STATE_ODD', generation: 1 } }),
    'ended.json': of({ task: { taskId: 'a', state: 'TASK_STATE_FAILED', generation: 1 } }),
    'odd-event.json': of({ events: events.map(event => ({ ...event, update: {} })) }),
    'event-of-no-log.json': of({ events: [{ ...events[0], update: { message } }, ...events.slice(1)] }),
    'odd-artifact.json': of({ events: [{ ...events[0], update: { artifactUpdate: { artifact: {} } } }] }),
    'odd-message.json': of({ messages: [{ generation: 1, message: { ...message, parts: null } }] }),
    'odd-journal.json': of({ journal: [{ key: 'step/price/1', value: 7 }] }),
    'odd-wake.json': of({ task: { ...task, wakeAtMs: {} } }),
    'huge.json': of({ task: { ...task, generation: 2 ** 31 - 1 } }),
    'more.json': of({ task: { ...task, generation: 1 } }),
    'deep-snapshot.json': whole.replace('"queue": []', `"queue": ${'['.repeat(99_999)}${']'.repeat(99_999)}`),
    'no-snapshot.json': of({ snapshot: {} }),
    'no-state.json': of({ snapshot: { ...snapshot, value: 'nowhere' } }),
    'no-work.json': of({ snapshot: { ...snapshot, children: {} } }),
    'over.json': of({ snapshot: { ...snapshot, status: 'done' } }),
    'other-task.json': of({ task: { ...task, taskId: '../other' } }),
    'newer-snapshot.json': of({ snapshot: { format: 2 } }),
    'format-0.json': of({ format: 0 }),
    'gap.json': of({ events: events.slice(1) }),
    'unopened.json': of({
      messages: [],
      task: { ...task, generation: 2 },
      events: [1, 2].map(generation => ({ ...events[0], generation }))
    }),
    'other.txt': 'left out'
  }
  const folder = t.testdir({ ...files, 'folder.json': {}, 'loop.json': t.fixture('symlink', 'loop.json') })
  execFileSync('mkfifo', [join(folder, 'pipe.json')])
  const replays = await collect(replayFiles(hotel, await historyFiles(folder)))
  const found = Object.fromEntries(replays.map(({ file, reason = '' }) => [file.slice(folder.length + 1), reason]))
  t.ok(replays.every(replay => replay.outcome === 'unreadable' && failsTest(replay)))
  t.match(found, {
    'cut.json': /^is not whole JSON: /,
    'list.json': 'is no history: it has no format number',
    'newer.json': 'has format 2, and this taskchart knows formats up to 1. Update taskchart',
    'no-format.json': 'is no history: it has no format number',
    'no-task.json': /^is no whole history: task\.state /,
    'ended.json': 'is of a task that has ended',
    'odd-event.json': /^is no whole history: events\[0\]\.update must have exactly one of /,
    'gap.json': /^is no whole history: it has no entry 2 of \d+$/,
    'unopened.json': 'is no whole history: it has no message that opened the task',
    'folder.json': 'is no file',
    'pipe.json': 'is no file',
    'loop.json': /^ELOOP/,
    'event-of-no-log.json': 'is no whole history: its event 0 is neither a status nor an artifact',
    'odd-artifact.json': /^is no whole history: events\[0\]\.update\.artifactUpdate\./,
    'odd-message.json': /^is no whole history: messages\[0\]\.message\.parts /,
    'odd-journal.json': 'is no whole history: its journal has no value for step/price/1',
    'odd-wake.json': 'is no whole history: task.wakeAtMs must be a number',
    'huge.json': /^is no whole history: it has no entry \d of 2147483647$/,
    'more.json': 'is no whole history: it has entries after 1, its last',
    'deep-snapshot.json': /^cannot be replayed: Maximum call stack/,
    'no-snapshot.json': /^is no whole history: snapshot\.status is required/,
    'no-state.json': 'is no whole history: no task is in the state "nowhere"',
    'no-work.json': 'is no whole history: its snapshot has no work',
    'over.json': 'is of a task that has ended',
    'other-task.json': 'is no whole history: its snapshot is of another task',
    'newer-snapshot.json': /stored by a newer taskchart, in format 2/,
    'format-0.json': 'is no history: it has no format number'
  })
  t.match(await rejection(historyFiles(join(folder, 'gone'))), {
    name: 'TypeError',
    message: /^There is no folder of histories: ENOENT/
  })
  t.match(await rejection(historyFiles(t.testdir({}))), { message: /has no histories \(\*\.json\)\. Write some: npx/ })
})

await t.test('a replay that throws fails the test with the error, and the other files are replayed', async t => {
  const [record] = await recordsOf('hotel')
  const folder = t.testdir({ 'a.json': historyText(record as RecordedTask) })
  const broken = Object.defineProperty({ ...hotel }, 'earlier', {
    get: () => {
      throw new RangeError('no')
    }
  })
  t.match(await replayFile(broken, join(folder, 'a.json')), { outcome: 'unreadable', reason: 'cannot be replayed: no' })
})

await t.test('redaction keeps types and lengths, and what the protocol needs', async t => {
  const [record] = (await recordsOf('trip')).slice(-1)
  if (!record) throw new TypeError('no record')
  const rows = [
    {
      taskId: record.row.taskId,
      key: 'step/price/1',
      value: { result: { euros: -12.5, big: 1.5e21, none: null, 'a/b~': 'ok', is: true, '': [7] } }
    },
    { taskId: record.row.taskId, key: 'patch/tax', value: { isPatched: true, atMs: 5 } },
    { taskId: record.row.taskId, key: 'needs/other', value: { untilMs: 0 } }
  ]
  const { key, row, events, messages, journal, redacted } = redactedTask({
    ...record,
    journal: [...record.journal, ...rows]
  })
  t.strictSame(key, { tenant: '', principal: 'xxxxxxxxx', contextId: record.key.contextId })
  t.equal(row.taskId, record.row.taskId)
  t.match(messages[0]?.message, {
    messageId: record.messages[0]?.message.messageId,
    parts: [{ text: 'x'.repeat('a trip to Rome'.length) }]
  })
  t.strictSame(
    journal.slice(-3).map(({ value }) => value),
    [
      { result: { euros: -11.1, big: 1.1e21, none: null, 'a/b~': 'xx', is: true, '': [1] } },
      { isPatched: true, atMs: 5 },
      { untilMs: 0 }
    ]
  )
  const at = `/journal/${record.journal.length}/value/result`
  t.strictSame(
    redacted?.filter(pointer => pointer.startsWith(at)),
    [`${at}/euros`, `${at}/big`, `${at}/a~1b~0`, `${at}//0`]
  )
  t.notMatch(JSON.stringify({ events, messages, journal, row }), /Rome|Friday|400/)
})

await t.test('testAgent and agentTests replay the histories of a folder', async t => {
  const folder = t.testdir()
  for (const record of await recordsOf('barista'))
    writeFileSync(join(folder, `${record.row.state}.json`), historyText(record))
  const options: AgentTestOptions = { drivers: ['the chart'], only: 'cancels', histories: folder }
  const { tests } = await agentTests(barista, options)
  const own = tests.filter(({ driver }) => driver === 'histories')
  t.equal(own.length, 3)
  for (const test of own) {
    await test.run()
    t.strictSame(test.steps(), [])
  }
  const names: string[] = []
  const context = {
    test: async (name: string, run: (t: never) => Promise<void>) => {
      names.push(name)
      await run(context as never)
    }
  }
  await testAgent(context, barista, options)
  t.ok(names.includes('histories'))

  const other = await agentTests(ask, { drivers: ['in process'], only: 'cancels', histories: folder })
  const last = other.tests.find(({ name }) => name.includes('INPUT_REQUIRED'))
  t.match(await rejection(last?.run() ?? Promise.resolve()), {
    name: 'PathError',
    message: /not restored: This task cannot be resumed with the present agent: the work was a statechart/
  })
})

await t.test('a history that diverges fails its test with what was and what is', async t => {
  const folder = t.testdir()
  const [record] = await recordsOf('hotel')
  writeFileSync(join(folder, 'one.json'), historyText(record as RecordedTask))
  const idle = defineAgent({ card: { name: 'Idle' }, work: async () => {} })
  const { tests } = await agentTests(idle, { drivers: ['in process'], histories: folder })
  const error = await rejection(tests.find(({ driver }) => driver === 'histories')?.run() ?? Promise.resolve())
  const replay = await replayFile(idle, join(folder, 'one.json'))
  t.equal(replay.outcome, 'diverges')
  t.match(replay.difference, { is: 'end of the work' })
  t.match(error, {
    name: 'PathError',
    message: `diverges: ${differenceText(replay)}`,
    wanted: replay.difference?.was,
    found: replay.difference?.is
  })
})

await t.test('an outcome that passes is a line of the notes', async t => {
  const folder = t.testdir()
  const records = (await recordsOf('hotel')).slice(-1).map(redactedTask)
  for (const record of records) writeFileSync(join(folder, 'one.json'), historyText(record))
  const { tests, notes } = await agentTests(hotel, { drivers: ['in process'], only: 'cancels', histories: folder })
  await tests.find(({ driver }) => driver === 'histories')?.run()
  t.match(notes().at(-1), /one\.json: cannot say: it needs the message that opened it/)
  const replay = await replayFile(hotel, join(folder, 'one.json'))
  t.ok(!failsTest(replay) && failsTest(replay, true))
  t.equal(differenceText(replay), replay.reason)
  t.equal(readFileSync(join(folder, 'one.json'), 'utf8').includes('Helsinki'), false)
})
