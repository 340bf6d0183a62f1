import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import type { TaskSource } from '../../../adapters/cli/tasks/source.ts'
import { taskStoryOf } from '../../../adapters/cli/tasks/export.ts'
import type { Chart } from '../../../adapters/inspector/feed.ts'
import { Recorder } from '../../../adapters/inspector/recorder/recorder.ts'
import { eventWords, partsText, rebuiltSteps, statusMessageText } from '../../../adapters/inspector/story/chart-path.ts'
import { storyHtml } from '../../../adapters/inspector/story/story-file.ts'
import { rebuiltTaskSteps, taskChartNames, taskStory } from '../../../adapters/inspector/story/story.ts'
import type { Part, Task } from '../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import { redactValue } from '../../../runtime/ports/logger.ts'
import { memoryStore } from '../../../runtime/store/memory/memory-store.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { CHROMIUM, openPage } from '../../fixtures/pages/chromium.ts'
import { inspected } from '../../fixtures/pages/inspected-agent.ts'
import { runCommand } from '../../fixtures/cli/run-command.ts'
import { say, start, taskIn } from '../../fixtures/runtime/runtime-helpers.ts'
import { obedient } from '../../fixtures/servers/served-agent.ts'
import { TestClock } from '../../fixtures/runtime/test-clock.ts'

const HOSTILE: Part[] = [
  { text: '<script>alert(1)</script>\n  <img src=x onerror=alert(1)>\u0000' },
  { text: 'password=hunter2' },
  { data: { html: '</pre><script>alert(2)</script>', apiKey: 'sk-0123456789abcdef0123' } },
  { url: 'javascript:alert(3)' },
  { url: 'https://example.com/' },
  { url: 'https://example.com/"><script>', filename: '"><script>alert(4)</script>' },
  {
    raw: Buffer.from(
      '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(5)"><script>alert(6)</script></svg>'
    ).toString('base64'),
    mediaType: 'image/svg+xml'
  },
  { raw: Buffer.from('<script>alert(7)</script>').toString('base64'), mediaType: 'text/html', filename: 'page.html' }
]

const task: Task = {
  id: 'task-1',
  contextId: 'c',
  status: {
    state: 'TASK_STATE_COMPLETED',
    timestamp: '2026-01-01T00:00:00Z',
    message: { messageId: 'a2', role: 'ROLE_AGENT', parts: HOSTILE }
  },
  history: [
    { messageId: 'c1', role: 'ROLE_USER', parts: HOSTILE },
    { messageId: 'a1', role: 'ROLE_AGENT', parts: [{ text: 'Which?' }] },
    { messageId: 'c2', role: 'ROLE_USER', parts: [{ text: 'This.' }] }
  ],
  artifacts: [
    { artifactId: 'one', parts: HOSTILE },
    { artifactId: 'two', name: '<b>name</b>', description: '<i>', parts: [] }
  ]
}

function status(generation: number, state: TaskState, messageId?: string): TaskEvent {
  const message =
    messageId === undefined
      ? {}
      : { message: { messageId, role: 'ROLE_AGENT' as const, parts: [{ text: `${messageId} says` }] } }
  return {
    taskId: 'task-1',
    generation,
    update: {
      statusUpdate: {
        taskId: 'task-1',
        contextId: 'c',
        status: { state, timestamp: '2026-01-01T00:00:00Z', ...message }
      }
    }
  }
}

const events: TaskEvent[] = [
  status(1, 'TASK_STATE_SUBMITTED'),
  status(2, 'TASK_STATE_WORKING'),
  status(3, 'TASK_STATE_INPUT_REQUIRED', 'a1'),
  status(4, 'TASK_STATE_WORKING'),
  {
    taskId: 'task-1',
    generation: 5,
    update: {
      artifactUpdate: { taskId: 'task-1', contextId: 'c', append: true, artifact: { artifactId: 'one', parts: [] } }
    }
  },
  status(6, 'TASK_STATE_COMPLETED', 'a2')
]

const chart =
  '<svg class="statechart"><g class="state leaf" data-state="task.completed"/><g class="state" data-state="task.active"/><g class="transition" data-transition="task.active.submitted on task.start to started"/><g class="transition" data-transition="other"/></svg>'

await t.test("a task chart's steps are rebuilt from events, with each unambiguous transition", t => {
  const steps = rebuiltSteps([...events.slice(0, 4), status(5, 'TASK_STATE_FAILED')], taskChartNames())
  t.strictSame(
    steps.map(({ states }) => states?.at(-1)),
    [
      'task.active.submitted',
      'task.active.started.working',
      'task.active.started.inputRequired',
      'task.active.started.working',
      'task.failed'
    ]
  )
  t.strictSame(
    steps.map(({ transitions }) => transitions),
    [
      [],
      ['task.active.submitted on task.start to started'],
      ['task.active.started on work.asked (branch 2) to inputRequired'],
      ['task.active.started.inputRequired on work.resumed to working'],
      []
    ]
  )
  t.strictSame(rebuiltSteps(events, taskChartNames())[4]?.transitions, ['task.active.started on work.produced stays'])
  t.strictSame(rebuiltSteps([status(1, 'TASK_STATE_UNSPECIFIED' as TaskState)], taskChartNames())[0]?.states, [])
  t.end()
})

await t.test('a story has messages and events in one order', t => {
  const html = storyHtml({ task, events, charts: [] }, redactValue)
  const rows = Array.from(
    html.matchAll(/<tr><td>(\d*)<\/td><td>(\w+) → \w+<\/td><td>([^<]*)<\/td>/g),
    ([, generation, from, what]) => `${generation} ${from} ${what}`
  )
  t.strictSame(rows, [
    ' client message',
    '1 agent submitted',
    '2 agent working',
    '3 agent input-required',
    ' client message',
    '4 agent working',
    '5 agent more of artifact one',
    '6 agent completed'
  ])
  const without = storyHtml(
    {
      task: {
        ...task,
        history: task.history?.slice(0, 2) ?? [],
        artifacts: [],
        status: { state: 'TASK_STATE_WORKING' }
      },
      events: [],
      charts: []
    },
    redactValue
  )
  t.equal(without.match(/<tr><td><\/td>/g)?.length, 2)
  t.match(without, 'None.')
  t.end()
})

await t.test('an event is one line of words', t => {
  const named: TaskEvent = {
    taskId: 'task-1',
    generation: 7,
    update: {
      artifactUpdate: {
        taskId: 'task-1',
        contextId: 'c',
        artifact: { artifactId: 'two', name: 'boat.png', parts: [{ data: 1 }] }
      }
    }
  }
  t.strictSame([...events.slice(1, 5), named].map(eventWords), [
    'working',
    'input-required: a1 says',
    'working',
    'more of artifact one',
    'artifact boat.png'
  ])
  t.equal(statusMessageText(named), '')
  t.equal(partsText([{ text: ' Well' }, { data: 1 }, { text: 'x'.repeat(1000) }]).length, 299)
  t.end()
})

await t.test('a story lights its charts, and says where they come from', t => {
  const steps = rebuiltTaskSteps(events)
  const charts = [
    { title: 'A task', svg: chart, steps, isRebuilt: true },
    { title: 'Other', svg: chart, steps: [], isRebuilt: false },
    { title: 'Seen', svg: '<svg/>', steps, isRebuilt: false }
  ]
  const html = storyHtml({ agent: 'A & B', task, events, work: charts[0], charts }, redactValue)
  t.match(html, 'data-state="task.completed" data-at="7"', 'the last of eight moments')
  t.match(html, 'data-state="task.active" data-at="0 1 2 3 4 5 6 v7"')
  t.match(html, 'data-transition="task.active.submitted on task.start to started" data-at="t2 v3 v4 v5 v6 v7"')
  t.match(html, '<g class="transition" data-transition="other"/>')
  t.match(html, /\[data-at~="7"\]\{--lit:var\(--active\)/, 'what is lit at last is lit without a slider')
  t.match(html, /Rebuilt from the stored events\.[^]*No step of it was recorded\./)
  t.match(html, '<title>A &amp; B: task task-1</title>')
  t.match(html, '>A task, now: inputRequired</p>')
  t.end()
})

await t.test('hostile output in a story is text', async t => {
  const html = storyHtml({ task, events, charts: [] }, redactValue)
  t.notMatch(html, /<script|<img src=x|href="javascript|hunter2|sk-0123|\0/)
  t.match(html, /<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:;/)
  t.match(html, 'href="data:application/octet-stream;base64,')
  t.match(html, '<img src="data:image/svg+xml;base64,')
  await t.test('in Chromium too', { skip: CHROMIUM === undefined && 'no Chromium on this machine' }, async t => {
    const page = await openPage(t)
    const asked: string[] = []
    page.on('request', request => asked.push(request.url()))
    page.on('dialog', () => asked.push('a dialog'))
    const folder = t.testdir({ 'story.html': html })
    const address = pathToFileURL(join(folder, 'story.html')).href
    await page.goto(address)
    t.same(
      asked.filter(url => url !== address && !url.startsWith('data:')),
      []
    )
  })
})

await t.test('the inspector gives a story to those who have its token', async t => {
  const { url, runtime, inspector, page } = await inspected(
    t,
    { work: obedient, card: { name: 'Obedient' } },
    { draw: async () => chart }
  )
  const reader = await page()
  await reader.frame('hello')
  const { id } = taskIn(await runtime.sendMessage(say('ask')))
  const story = (task: string, token = inspector.token) =>
    fetch(`${url}inspector/story?${String(new URLSearchParams({ token, task }))}`)
  t.equal((await story(id, 'guess')).status, 401)
  t.equal((await story('unknown')).status, 404)
  const unnamed = await fetch(`${url}inspector/story?token=${inspector.token}`)
  t.equal(unnamed.status, 404)
  t.strictSame(await unnamed.json(), { error: 'There is no task "".' })
  const found = await story(id)
  t.equal(found.headers.get('content-disposition'), `attachment; filename="task-${id}.html"`)
  t.match(await found.text(), /Obedient: task [^]*data-state="task.active"[^]*client → agent[^]*input-required/)
  await runtime.erase({ contextId: (await runtime.getTask({ id })).contextId ?? '' })
  t.equal((await story(id)).status, 404)

  const agent = url.replace('http', 'ws')
  const { id: other } = taskIn(await runtime.sendMessage(say('red')))
  t.match(await runCommand(['tasks', 'export', agent, other, '--html']), {
    code: 0,
    stdout: /<!doctype html>[^]*completed[^]*Rebuilt from the stored events/
  })
  t.match(await runCommand(['tasks', 'export', agent, '--html']), {
    code: 2,
    stderr: /--html exports one task\. Give its id\./
  })
})

await t.test('the inspector gives the story of a task from before its first page', async t => {
  const { url, runtime, inspector } = await inspected(t, { work: obedient }, { draw: async () => chart })
  const { id } = taskIn(await runtime.sendMessage(say('ask')))
  t.equal(
    (await fetch(`${url}inspector/story?${String(new URLSearchParams({ token: inspector.token, task: id }))}`)).status,
    200
  )
})

await t.test('the story of a task on the command line has its events from wherever they are', async t => {
  const source = (more: Partial<TaskSource>, record: object = {}) =>
    ({ read: async () => ({ task, ...record }), ...more }) as TaskSource
  const count = async (given: TaskSource) => (await taskStoryOf(given, 'task-1')).match(/<tr><td>\d/g)?.length ?? 0
  t.equal(await count(source({}, { events })), 6, 'a file')
  t.equal(
    await count(source({ events: async (_, generation) => events.slice(0, generation) }, { generation: 2 })),
    2,
    'an agent'
  )
  t.equal(await count(source({}, { generation: 2 })), 0)
  t.equal(await count(source({})), 0, 'an agent that numbers no events')
})

await t.test('the story of a task that was not recorded has the chart of a task alone', async t => {
  const store = memoryStore()
  const { runtime } = start(t, { work: obedient }, { store })
  const { id } = taskIn(await runtime.sendMessage(say('red')))
  const recorder = new Recorder(new TestClock(), { stirred() {}, inspected() {}, began() {}, troubled() {} })
  const charts: Chart[] = [
    { id: 'work', title: 'The work', svg: chart, mermaid: '', source: '' },
    { id: 'task', title: 'A task', svg: chart, mermaid: '', source: '' }
  ]
  const source = { agent: 'A', store, recorder, charts, redact: redactValue }
  const anyone = { tenant: '', principal: 'anonymous' }
  t.equal(await taskStory(source, anyone, 'unknown'), undefined)
  const html = String(await taskStory(source, anyone, id))
  t.match(html, /<h2>A task<\/h2>[^]*Rebuilt from the stored events/)
  t.notMatch(html, 'The work')
})
