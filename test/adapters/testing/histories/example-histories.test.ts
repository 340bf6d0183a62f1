import '../../../fixtures/stores/needs-sqlite.ts'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createMachine } from 'xstate'
import { parseHistory } from '../../../../adapters/testing/histories/history.ts'
import {
  historyFiles,
  replayFiles,
  type HistoryReplay
} from '../../../../adapters/testing/histories/replay-histories.ts'
import { sqliteStore } from '../../../../adapters/storage/sqlite.ts'
import {
  progress,
  type Agent,
  type Question,
  type WorkFunction,
  type WorkGenerator,
  type WorkWords
} from '../../../../runtime/index.ts'
import { IS_DEEP } from '../../../fixtures/sample.ts'
import { isInterrupted } from '../../../../machines/protocol/states.ts'
import type { WorkEnd } from '../../../../runtime/work-port.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { collect } from '../../../fixtures/runtime/runtime-helpers.ts'
import { commitsOf, storeStops } from '../../../fixtures/histories/conversations.ts'
import { CONVERSATIONS } from '../../../fixtures/histories/example-tasks.ts'

/** With 25 rounds there are more than 1,000 tasks. */
const ROUNDS = IS_DEEP ? 25 : 3

/** The agent with a word before its first one, or with a chart that neither asks nor waits. */
function planted(agent: Agent): Agent {
  const { work } = agent
  if (typeof work === 'object') {
    const { config, implementations } = work
    const states = Object.entries(config.states as Record<string, object>).map(([name, state]) => {
      const { tags: _, after: __, ...others } = state as { tags?: unknown; after?: unknown }
      return [name, others]
    })
    return {
      ...agent,
      work: createMachine({ ...config, states: Object.fromEntries(states) }, implementations as never)
    }
  }
  async function* first(given: never): AsyncGenerator<WorkWords | Question, WorkEnd> {
    yield progress('planted')
    const run: unknown = (work as WorkFunction)(given)
    return isGenerator(run) ? yield* run : (run as WorkEnd)
  }
  return { ...agent, work: first as WorkGenerator }
}

function isGenerator(run: unknown): run is AsyncGenerator<never, WorkEnd> {
  return Object.prototype.toString.call(run) === '[object AsyncGenerator]'
}

await t.test('open tasks of the examples, stopped at each question, step and timer, replay identically', async t => {
  let tasks = 0
  for (const conversation of CONVERSATIONS) {
    const { name, agent } = conversation
    const cwd = t.testdir()
    const store = sqliteStore(join(cwd, 'tasks.db'))
    const commits = await commitsOf(conversation)
    let stored = 0
    for (let round = 0; round < ROUNDS; round += 1) stored += await storeStops(commits, store, round)
    const exported = (folder: string, ...more: string[]) =>
      runCommand(['tasks', 'export', '--db', 'tasks.db', '--history', folder, ...more], { cwd })
    t.match(await exported('one'), {
      code: 0,
      stderr: `${stored === 1 ? '1 task' : `${stored} tasks`} exported to one.\n`
    })
    await exported('two')
    await exported('redacted', '--redact')
    await store.close()
    const names = readdirSync(join(cwd, 'one'))
    t.equal(names.length, stored, 'one file a task')
    for (const file of names)
      t.ok(
        readFileSync(join(cwd, 'one', file)).equals(readFileSync(join(cwd, 'two', file))),
        `${file} is the same twice`
      )
    const replays = async (folder: string, by: Agent): Promise<HistoryReplay[]> =>
      collect(replayFiles(by, await historyFiles(join(cwd, folder))))
    t.strictSame(
      (await replays('one', agent)).filter(({ outcome }) => outcome !== 'same'),
      [],
      `${name}: every task goes on`
    )
    for (const { outcome, file } of await replays('redacted', agent))
      t.ok(['same', 'cannot say'].includes(outcome), `${file}: ${outcome}`)
    const hasPlace = (file: string) => {
      const { row, events, journal } = parseHistory(readFileSync(file, 'utf8'))
      return typeof agent.work === 'object'
        ? isInterrupted(row.state) || row.snapshot.includes('"delayed"')
        : events.some(({ ordinal }) => ordinal !== undefined) || journal.some(({ key }) => key !== 'request')
    }
    for (const { outcome, file, difference } of await replays('one', planted(agent))) {
      if (!hasPlace(file)) t.equal(outcome, 'same', `${file} has neither a word nor a wait`)
      else if (typeof agent.work === 'object')
        t.match(difference, { was: /^(question|request|timer)/, is: /^(work|no transition)/ })
      else t.match(difference, { at: /^word [12]$/, is: /^progress/ }, file)
    }
    tasks += stored
  }
  t.ok(tasks >= (IS_DEEP ? 1000 : 100), `${tasks} tasks`)
})
