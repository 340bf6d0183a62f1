import '../../fixtures/stores/needs-sqlite.ts'
import { join } from 'node:path'
import t from 'tap'
import { sqliteStore } from '../../../adapters/storage/sqlite.ts'
import { inputRequired, type WorkFunction } from '../../../runtime/index.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { lives } from '../../fixtures/runtime/lives.ts'
import { open, reaches, say } from '../../fixtures/runtime/runtime-helpers.ts'

const asks: WorkFunction = async ({ ask }) => void (await ask(inputRequired('Go?')))

const agent = (more: string) => `
import { defineAgent } from 'taskchart'
const work = async ({ ask }) => {}
export default defineAgent({ card: { name: 'A' }, version: '3', work${more} })
`

await t.test('open tasks are listed by the version that opened them, and doctor says what earlier serves', async t => {
  const cwd = t.testdir({
    'agent.mjs': agent(", earlier: { '1': work, '2': work }"),
    'only.mjs': agent(", earlier: { '1': work }"),
    'none.mjs': agent(''),
    'wrong.mjs': agent(', earlier: 5')
  })
  const store = sqliteStore(join(cwd, 'tasks.db'))
  const life = lives(t, { work: asks, version: '1' }, { store })
  t.teardown(() => store.close())
  const opened = async (count: number) => {
    const ids: string[] = []
    for (let n = 0; n < count; n += 1) {
      const { id } = await open(life.runtime)
      await reaches(life.runtime, id, 'input-required')
      ids.push(id)
      life.clock.increment(1000)
    }
    return ids
  }
  const [one = '', two = '', ended = ''] = await opened(3)
  await life.runtime.sendMessage(say('go', { taskId: ended }))
  await life.restart({ work: asks, version: '0.9' })
  const [old = ''] = await opened(1)
  const ls = async (...args: string[]) => runCommand(['tasks', 'ls', '--db', 'tasks.db', '--json', ...args], { cwd })
  const idsIn = ({ stdout }: { readonly stdout: string }) =>
    stdout.split('\n').flatMap(line => (line === '' ? [] : [(JSON.parse(line) as { task: { id: string } }).task.id]))
  t.strictSame(idsIn(await ls('--version', '1')), [two, one])
  t.strictSame(idsIn(await ls('--version', '0.9')), [old])
  t.match(await ls('--version', '2'), { code: 0, stdout: '', stderr: 'No tasks match.\n' })
  t.strictSame(idsIn(await ls('--version', '1', '--state', 'completed')), [])
  t.match(await ls('--version', '1', '--limit', '1'), { stderr: /^The newest 1 of 2 tasks\. / })
  t.match(await runCommand(['tasks', 'ls', 'ws://127.0.0.1:1/', '--version', '1']), {
    code: 2,
    stderr: /--version is for --db: an agent does not tell which version opened a task\./
  })

  const doctor = (file: string, db = 'tasks.db') => runCommand(['doctor', file, '--db', db], { cwd })
  t.match(await doctor('agent.mjs'), {
    code: 0,
    stdout: `ok     agent.mjs is the agent A
ok     the entry of version 1 in earlier serves 2 open tasks
       They are: taskchart tasks ls --db tasks.db --version 1
note   the entry of version 2 in earlier serves no open task
       Remove it, once no process runs version 2
note   1 open task of version 0.9, which has no entry in earlier
       What becomes of them says: taskchart diff --db tasks.db agent.mjs
`
  })
  t.match(
    (await doctor('only.mjs')).stdout,
    /of version 1 in earlier serves 2 open tasks\n.*\n.*1 open task of version 0\.9/
  )
  t.notMatch((await doctor('none.mjs')).stdout, /earlier/)
  t.match((await doctor('agent.mjs', 'absent.db')).stdout, /is the agent A\n$/)
  t.match(await doctor('wrong.mjs'), { code: 1, stdout: /WRONG {2}.*earlier has to be an object/ })
})

await t.test('doctor names open tasks that no version has stored', async t => {
  const cwd = t.testdir({ 'agent.mjs': agent(", earlier: { '1': work }") })
  const store = sqliteStore(join(cwd, 'tasks.db'))
  t.teardown(() => store.close())
  const key = { tenant: '', principal: 'anna', contextId: 'c' }
  await store.commit({
    key,
    expected: 0,
    atMs: 0,
    snapshot: '{}',
    tasks: [{ taskId: 't', generation: 1, state: 'TASK_STATE_WORKING', snapshot: '{}', wakeAtMs: 0 }],
    log: [
      {
        taskId: 't',
        generation: 1,
        update: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } }
      }
    ],
    journal: [],
    sends: [],
    webhooks: []
  })
  t.match(await runCommand(['doctor', 'agent.mjs', '--db', 'tasks.db'], { cwd }), {
    stdout: /serves no open task\n.*\nnote {3}1 open task of no version, which has no entry in earlier\n/
  })
})
