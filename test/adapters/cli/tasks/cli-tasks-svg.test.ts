import { join } from 'node:path'
import t from 'tap'
import { createMachine, type AnyStateMachine } from 'xstate'
import { taskPicture } from '../../../../adapters/cli/tasks/picture.ts'
import { workSteps } from '../../../../adapters/cli/tasks/work-steps.ts'
import { drawChart } from '../../../../adapters/drawing/chart-drawing.ts'
import { innermost } from '../../../../adapters/inspector/story/chart-path.ts'
import { sqliteStore } from '../../../../adapters/storage/sqlite.ts'
import barista from '../../../../examples/barista.ts'
import negotiate from '../../../../examples/negotiate.ts'
import type { Task } from '../../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../../runtime/store/store.ts'
import { partsOf } from '../../../../runtime/work-port.ts'
import { runCommand } from '../../../fixtures/cli/run-command.ts'
import { CHROMIUM, openPage } from '../../../fixtures/pages/chromium.ts'
import { reaches, say, taskIn } from '../../../fixtures/runtime/runtime-helpers.ts'
import { serve } from '../../../fixtures/servers/served-agent.ts'
import { NO_SQLITE } from '../../../fixtures/stores/sqlite.ts'

type Entry = TaskState | { readonly text: string }

/** An event for each status, and for each text an artifact with it. */
function eventsOf(...entries: readonly Entry[]): TaskEvent[] {
  return entries.map((entry, i) => ({
    taskId: 'task-1',
    generation: i + 2,
    update:
      typeof entry === 'string'
        ? { statusUpdate: { taskId: 'task-1', contextId: 'c', status: { state: entry } } }
        : {
            artifactUpdate: {
              taskId: 'task-1',
              contextId: 'c',
              artifact: { artifactId: `a${i}`, parts: [{ text: entry.text }] }
            }
          }
  }))
}

const [SUBMITTED, WORKING, ASKING, AUTH, COMPLETED, FAILED, CANCELED, REJECTED] = [
  'TASK_STATE_SUBMITTED',
  'TASK_STATE_WORKING',
  'TASK_STATE_INPUT_REQUIRED',
  'TASK_STATE_AUTH_REQUIRED',
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED'
] as const

/** The innermost states of each event, and the transition that led there. */
function litIn(machine: AnyStateMachine, ...entries: readonly Entry[]) {
  return workSteps(partsOf(machine), eventsOf(...entries)).map(({ states, transitions }) =>
    [innermost(states).join(), ...transitions].join(' by ')
  )
}

function tasked(events: readonly TaskEvent[], more: Partial<Task> = {}): Task {
  const last = events.at(-1)?.update
  const status = last && 'statusUpdate' in last ? last.statusUpdate.status : { state: WORKING }
  return { id: 'task-1', contextId: 'c', status, ...more }
}

await t.test('the states of the work are found again from the events of a task', t => {
  t.strictSame(litIn(barista.work as AnyStateMachine, SUBMITTED, WORKING, ASKING, WORKING, { text: 'x' }, COMPLETED), [
    'barista.asking',
    'barista.asking',
    'barista.brewing by barista.asking on message.received to brewing',
    'barista.brewing',
    'barista.served by barista.brewing on xstate.done.actor.0.barista.brewing to served'
  ])
  t.strictSame(litIn(barista.work as AnyStateMachine, WORKING, ASKING, CANCELED), [
    'barista.asking',
    'barista.asking',
    'barista.asking'
  ])
  t.strictSame(workSteps(partsOf(barista.work as AnyStateMachine), []), [])
  t.end()
})

await t.test('what is not certain is not lit', t => {
  const chart = createMachine({
    id: 'm',
    initial: 'first',
    states: {
      first: { always: [{ guard: 'a', target: 'left' }, { target: 'right' }] },
      left: { on: { go: 'ask', fall: 'broken', no: 'refused' } },
      right: { on: { go: 'ask' } },
      ask: { tags: 'input-required', on: { 'message.received': 'permit', other: 'again' } },
      again: { tags: 'input-required', on: { 'message.received': 'end' } },
      permit: { tags: 'auth-required', on: { 'authorization.received': 'loop' } },
      loop: { on: { next: 'end', both: 'end', round: 'loop2' } },
      loop2: { on: { back: 'loop' } },
      broken: { type: 'final', tags: 'failed' },
      refused: { type: 'final', tags: 'rejected' },
      end: { type: 'final' }
    }
  })
  t.strictSame(
    litIn(chart, WORKING, ASKING, WORKING, AUTH, WORKING, { text: 'x' }, COMPLETED),
    [
      'm',
      'm.ask',
      'm.permit by m.ask on message.received to permit',
      'm.permit',
      'm.loop by m.permit on authorization.received to loop',
      'm',
      'm.end'
    ],
    'two ways lead to the question, and a loop may be anywhere; two transitions lead to the end'
  )
  t.strictSame(
    litIn(chart, WORKING, ASKING, WORKING, ASKING, WORKING, COMPLETED).slice(3),
    ['m.again', 'm.end by m.again on message.received to end', 'm.end'],
    'the second question is another one'
  )
  t.strictSame(litIn(chart, WORKING, REJECTED), ['m', 'm'], 'a task may be rejected anywhere')
  t.strictSame(litIn(chart, WORKING, FAILED), ['m', 'm'], 'and fail anywhere')
  t.strictSame(litIn(chart, COMPLETED, ASKING), ['', ''], 'no walk leads there')
  t.end()
})

await t.test('a chart or a task that is too large is not lit', t => {
  const regions = Object.fromEntries(
    Array.from({ length: 12 }, (_, i) => [`r${i}`, { initial: 'a', states: { a: { on: { [`e${i}`]: 'b' } }, b: {} } }])
  )
  t.strictSame(litIn(createMachine({ id: 'm', type: 'parallel', states: regions }), WORKING), [])
  const asking = createMachine({
    id: 'm',
    initial: 's0',
    states: Object.fromEntries(
      Array.from({ length: 1000 }, (_, i) => [
        `s${i}`,
        { tags: i % 2 === 0 ? [] : ['input-required'], on: { go: `s${(i + 1) % 1000}` } }
      ])
    )
  })
  const long = Array.from({ length: 600 }, () => [WORKING, ASKING] as const).flat()
  t.strictSame(litIn(asking, ...long), [])
  t.equal(litIn(asking, ...long.slice(0, 100)).at(-1), 'm.s99 by m.s98 on go to s99')
  t.end()
})

await t.test('a long task has a picture of at most thirty moments and forty seconds', async t => {
  const events = eventsOf(...Array.from({ length: 5000 }, (_, i) => ({ text: `word ${i}` })), COMPLETED)
  const svg = await drawChart(barista.work as AnyStateMachine)
  const picture = taskPicture({ task: tasked(events), events, svg, steps: [] })
  t.match(picture, 'agent: word 14. …: 4970 moments are left out. agent: word 4985.')
  t.equal(picture.match(/class="said\d+"/g)?.length, 31)
  t.ok(Array.from(picture.matchAll(/ (\d+(?:\.\d)?)s step-end/g), ([, seconds]) => Number(seconds)).every(s => s <= 40))
  t.ok(picture.length < 100_000)
  t.match(picture, /translateY\(-\d/, 'the talk moves up')
})

await t.test('a task without events has a picture too', async t => {
  const svg = await drawChart(barista.work as AnyStateMachine)
  const picture = taskPicture({ task: tasked([]), events: [], svg, steps: [] })
  t.match(picture, '<desc>The task is working.</desc>')
})

await t.test('tasks export --svg', async t => {
  await t.test('draws a task from an agent, with its own chart or that of its work', async t => {
    const { url, runtime } = await serve(t, barista)
    const { id } = taskIn(await runtime.sendMessage(say('A coffee, please.')))
    await runtime.sendMessage(say('large', { taskId: id }))
    await reaches(runtime, id, 'completed')
    const run = (...args: string[]) => runCommand(['tasks', 'export', url, id, '--svg', ...args])
    const own = await run()
    t.match(own, { code: 0, stderr: '1 task exported.\n' })
    t.match(
      own.stdout,
      /^<svg [^>]*role="img"[^>]*><title>Task [^<]*: its chart, and what client and agent say<\/title>/
    )
    t.match(own.stdout, /class="state leaf atomic lit\d+" data-state="task.active.started.inputRequired"/)
    const { stdout } = await run('--agent', 'examples/barista.ts')
    t.match(
      stdout,
      '<desc>client: A coffee, please. agent: Small or large? (asking). client: large (asking). agent: Brewing a large one. (brewing). agent: a large coffee (brewing). the chart goes on (served). The task is completed.</desc>'
    )
    t.match(stdout, /class="transition lit\d+" data-transition="barista.asking on message.received to brewing"/)
    t.notMatch(stdout, /lit\d+" data-state="barista"/, 'the chart itself is active all the time')
    t.match(stdout, '@media (prefers-reduced-motion:reduce){*{animation:none!important}}')
  })

  await t.test('draws a task from a file', { skip: NO_SQLITE }, async t => {
    const cwd = t.testdir()
    const { runtime } = await serve(t, barista, { store: sqliteStore(join(cwd, 'tasks.db')) })
    const { id } = taskIn(await runtime.sendMessage(say('A coffee, please.')))
    const drawn = await runCommand(['tasks', 'export', '--db', 'tasks.db', id, '--svg'], { cwd })
    t.match(drawn, { code: 0, stdout: /agent: Small or large\? \(asking\)\. The task is input-required\./ })
  })

  await t.test('refuses what it cannot draw', async t => {
    const { url } = await serve(t, barista)
    for (const [args, message] of [
      [['--svg'], /--svg exports one task\. Give its id\./],
      [['a', 'b', '--svg'], /--svg exports one task\. Give its id\./],
      [['a', '--svg', '--html'], /--html and --svg exclude each other\. Give one of them\./],
      [['a', '--agent', 'examples/barista.ts'], /--agent is for --html and --svg\./]
    ] as const)
      t.match(await runCommand(['tasks', 'export', url, ...args]), { code: 2, stdout: '', stderr: message })
    t.match(await runCommand(['tasks', 'export', url, 'a', '--svg', '--agent', 'examples/hello.ts']), {
      code: 1,
      stdout: '',
      stderr: /The work of examples\/hello\.ts is no chart\. Leave --agent out: then the chart of the task is drawn\./
    })
    t.match(await runCommand(['tasks', 'export', url, 'nope', '--svg']), {
      code: 1,
      stdout: '',
      stderr: /nope was not found/
    })
  })
})

await t.test('tasks export --html', async t => {
  await t.test('has the chart of the work of a given agent', async t => {
    const { url, runtime } = await serve(t, barista)
    const { id } = taskIn(await runtime.sendMessage(say('A coffee, please.')))
    const run = (...args: string[]) => runCommand(['tasks', 'export', url, id, '--html', ...args])
    const { stdout } = await run('--agent', 'examples/barista.ts')
    t.match(stdout, /data-state="barista.asking" data-at="[\d ]+"/)
    t.match(stdout, 'The agent waits for the client&#39;s answer: “Small or large?”')
    t.match(stdout, '<b> The answer leads to brewing.</b>')
    t.notMatch((await run()).stdout, 'data-state="barista')
  })

  await t.test(
    'has the chart with which an open task of a file is stored, and the offers before',
    { skip: NO_SQLITE },
    async t => {
      const cwd = t.testdir()
      const store = sqliteStore(join(cwd, 'tasks.db'))
      const { runtime } = await serve(t, { ...barista, negotiate: negotiate.negotiate } as never, { store })
      const first = await runtime.sendMessage(say('A coffee, please.'))
      const contextId = 'message' in first ? first.message.contextId : undefined
      const { id } = taskIn(await runtime.sendMessage(say('Deal', { contextId: contextId ?? '' })))
      await reaches(runtime, id, 'input-required')
      const run = (...args: string[]) => runCommand(['tasks', 'export', '--db', 'tasks.db', id, ...args], { cwd })
      const open = await run('--html')
      t.match(open, { code: 0, stdout: /data-state="barista.asking" data-at="[\d ]+"/ })
      t.match(open.stdout, /agent offers[^]*<dt>euros<\/dt><dd>60<\/dd>/)
      t.match(open.stdout, 'class="run negotiation"')
      t.match(await run('--svg'), { code: 0, stdout: /agent: Small or large\? \(asking\)/ })
      await runtime.cancelTask({ id })
      const { stdout } = await run('--html')
      t.notMatch(stdout, 'data-state="barista', 'a task that has ended has no definition')
      t.match(stdout, 'class="points"')
    }
  )
})

await t.test('in a browser', { skip: CHROMIUM === undefined && 'no Chromium on this machine' }, async t => {
  const hostile = `</text><script>alert('x')</script>" & ]]> \u0000\u001b[31m ${'long '.repeat(100)}`
  const machine = createMachine({
    id: 'a "b" <c> & d',
    initial: "it's",
    states: { "it's": { on: { 'x"]{}': 'end' } }, end: { type: 'final' } }
  })
  const events = eventsOf(SUBMITTED, WORKING, { text: hostile }, COMPLETED)
  const picture = taskPicture({
    task: tasked(events, {
      id: hostile,
      history: [{ messageId: '1', role: 'ROLE_USER', parts: [{ text: `sk-0123456789abcdef0123 ${hostile}` }] }]
    }),
    events,
    svg: await drawChart(machine),
    steps: workSteps(partsOf(machine), events)
  })

  await t.test('a picture is well-formed and without secrets, whatever a task says', async t => {
    t.notMatch(picture, /<script|sk-0123/)
    const page = await openPage(t)
    t.equal(
      await page.evaluate(
        `new DOMParser().parseFromString(${JSON.stringify(picture)}, 'image/svg+xml').querySelector('parsererror')?.textContent ?? 'well-formed'`
      ),
      'well-formed'
    )
    await page.setContent(picture)
    const beside = `[...document.querySelectorAll('.talk text:not(.who)')].filter(text => { const [a, b] = [text, text.parentElement.querySelector('rect')].map(one => one.getBBox()); return a.x < b.x + 4 || a.x + a.width > b.x + b.width - 4 || a.y + a.height > b.y + b.height }).length`
    t.equal(await page.evaluate(beside), 0, 'each text is in its bubble')
  })

  await t.test('it moves, and a reader without motion sees its end', async t => {
    const page = await openPage(t)
    await page.setContent(picture)
    const strokeOf = (id: string) =>
      `getComputedStyle([...document.querySelectorAll('[data-state]')].find(one => one.dataset.state.endsWith(${JSON.stringify(id)})).querySelector('.box')).stroke`
    const at = (seconds: number) =>
      page.evaluate(`for (const one of document.getAnimations()) { one.pause(); one.currentTime = ${seconds * 1000} }`)
    await at(3)
    const [lit, unlit] = [await page.evaluate(strokeOf("it's")), await page.evaluate(strokeOf('end'))]
    t.not(lit, unlit)
    await at(7)
    t.strictSame([await page.evaluate(strokeOf("it's")), await page.evaluate(strokeOf('end'))], [unlit, lit])
    await page.emulateMedia({ reducedMotion: 'reduce' })
    t.equal(await page.evaluate('document.getAnimations().length'), 0)
    t.strictSame([await page.evaluate(strokeOf("it's")), await page.evaluate(strokeOf('end'))], [unlit, lit])
  })
})
