import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { readExampleFile } from '../../../adapters/cli/files.ts'
import { EXAMPLE_ID } from '../../../adapters/inspector/feed.ts'
import { Recorder } from '../../../adapters/inspector/recorder/recorder.ts'
import { LONGEST_EXAMPLE, readExample } from '../../../adapters/inspector/story/story.ts'
import { taskExample } from '../../../adapters/inspector/story/story.ts'
import { artifact, data, inputRequired } from '../../../runtime/index.ts'
import { redactValue } from '../../../runtime/ports/logger.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import { inspected } from '../../fixtures/pages/inspected-agent.ts'
import { recordingLogger, open, reaches, say, start } from '../../fixtures/runtime/runtime-helpers.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'

const SECRET = 'password=hunter2'

await t.test('a task becomes an example without ids and secrets, which a page receives again', async t => {
  const { url, runtime, inspector, page } = await inspected(t, {
    work: async function* ({ step }) {
      yield artifact({
        artifactId: 'r',
        name: 'r',
        parts: [{ text: SECRET }, data({ apiKey: 'sk-0123456789abcdef0123' })]
      })
      yield artifact({ artifactId: 'p', parts: [{ raw: 'AAAA', filename: 'p.zip' }] })
      yield* inputRequired('Which?')
      await step('price', () => ({ euros: 60 }))
      return { message: 'Done.' }
    }
  })
  await (await page()).frame('hello')
  const { id, contextId = '' } = await open(runtime, `a price, ${SECRET}`)
  const example = (task: string, token = inspector.token) =>
    fetch(`${url}inspector/example?${String(new URLSearchParams({ token, task }))}`)
  await reaches(runtime, id, 'input-required')
  t.match(
    readExample(await (await example(id)).text()).said.at(-1),
    { parts: [{ text: 'Which?' }] },
    'the question is there'
  )
  await runtime.sendMessage(say('this', { taskId: id }))
  await reaches(runtime, id, 'completed')
  t.equal((await example(id, 'guess')).status, 401)
  t.equal((await example('unknown')).status, 404)
  const found = await example(id)
  t.equal(found.headers.get('content-disposition'), 'attachment; filename="agent.example.json"')
  t.match(found.headers.get('content-type'), 'application/json')
  const text = await found.text()
  for (const hidden of [id, contextId, 'hunter2', 'sk-0123']) t.notMatch(text, hidden, `${hidden} is not in it`)
  t.match(text, '"raw":"AAAA"')
  const read = readExample(text)
  t.match(
    read.said.map(({ role, taskId }) => `${role} ${taskId}`),
    [`ROLE_USER ${EXAMPLE_ID}`, `ROLE_AGENT ${EXAMPLE_ID}`, `ROLE_USER ${EXAMPLE_ID}`, `ROLE_AGENT ${EXAMPLE_ID}`]
  )
  t.match(read.events.at(-1)?.update, {
    statusUpdate: { taskId: EXAMPLE_ID, status: { state: 'TASK_STATE_COMPLETED' } }
  })
  t.match(read.steps, [{ kind: 'stored', event: { name: 'price' }, taskId: EXAMPLE_ID }])

  const other = await inspected(t, { work: async () => ({}) }, { example: async () => read })
  t.strictSame(await (await other.page()).frame('example'), read)
})

await t.test('an example has the steps in the chart of the work', async t => {
  const { url, runtime, inspector, page } = await inspected(t, { work: obedient })
  await (await page()).frame('hello')
  const { id } = await open(runtime, 'red')
  await reaches(runtime, id, 'completed')
  const query = new URLSearchParams({ token: inspector.token, task: id })
  const { steps, said } = readExample(await (await fetch(`${url}inspector/example?${String(query)}`)).text())
  t.match(
    said.map(({ role }) => role),
    ['ROLE_USER'],
    'the agent said nothing'
  )
  t.ok(steps.length > 0)
  t.ok(steps.every(({ kind, states = [] }) => kind === 'microstep' && states[0] === '(machine)'))
})

await t.test('there is no example of an unknown task', async t => {
  const store = memoryStore()
  start(t, { work: obedient }, { store })
  const recorder = new Recorder(new TestClock(), { stirred() {}, inspected() {}, began() {}, troubled() {} })
  const scope = { tenant: '', principal: 'anonymous' }
  t.equal(await taskExample({ store, recorder, redact: redactValue }, scope, 'unknown'), undefined)
})

await t.test('what is no recorded example is refused with the reason', t => {
  const event = {
    generation: 2,
    update: { statusUpdate: { taskId: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } }
  }
  const step = { n: 1, atMs: 1, event: { type: 'x' }, states: ['a'], transitions: [] }
  const text = (more: object) => JSON.stringify({ said: [], events: [event], steps: [step], ...more })
  t.equal(readExample(text({})).steps.length, 1)
  t.equal(
    readExample(text({ steps: [{ n: 1, atMs: 1, event: { type: 'x' } }] })).steps.length,
    1,
    'a step without states'
  )
  for (const [given, reason] of [
    ['', /no recorded example: .*JSON/],
    ['[]', 'said is no list'],
    [text({ said: {} }), 'said is no list'],
    [text({ said: [{ role: 'ROLE_USER' }] }), /messageId/],
    [text({ events: [1] }), /no recorded example/],
    [text({ events: [{ ...event, generation: 'two' }] }), 'an event has no generation'],
    [
      text({
        events: [{ generation: 1, update: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'a' }] } } }]
      }),
      'no event of a task'
    ],
    [text({ steps: [1] }), 'a step has no number'],
    [text({ steps: [{ ...step, atMs: '1' }] }), 'a step has no number'],
    [text({ steps: [{ ...step, event: {} }] }), 'a step has no number'],
    [text({ steps: [{ ...step, states: [1] }] }), 'a step has no number'],
    [text({ steps: [{ ...step, transitions: 'all' }] }), 'a step has no number'],
    [' '.repeat(LONGEST_EXAMPLE + 1), /at most 1048576 characters, not 1048577/]
  ] as const)
    t.throws(() => readExample(given), { name: 'TypeError', message: reason }, given.slice(0, 60))
  t.end()
})

await t.test('the example of a module is the file beside it; one that cannot be read is logged', async t => {
  const folder = t.testdir({})
  const { logger, log } = recordingLogger()
  const module = join(folder, 'agent.mts')
  t.equal(await readExampleFile(module, logger), undefined)
  t.strictSame(log, [])
  await writeFile(join(folder, 'agent.example.json'), '{"said":[],"events":[],"steps":[]}')
  t.match(await readExampleFile(module, logger), { type: 'example', said: [] })
  await writeFile(join(folder, 'agent.example.json'), '{')
  t.equal(await readExampleFile(module, logger), undefined)
  t.match(JSON.stringify(log), 'the recorded example is not shown')
})

await t.test('the examples of the repository are readable', async t => {
  for (const name of ['sailboat', 'barista']) {
    const { logger, log } = recordingLogger()
    const example = await readExampleFile(join('examples', `${name}.ts`), logger)
    t.match(example?.events.at(-1)?.update, { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } }, name)
    t.strictSame(log, [])
  }
})
