import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { drawChart } from '../../../adapters/drawing/chart-drawing.ts'
import { attributeText } from '../../../adapters/drawing/svg-element.ts'
import { MOST_MOMENTS, type Story, storyHtml } from '../../../adapters/inspector/story/story-file.ts'
import { transitionsIn } from '../../../adapters/inspector/story/story-style.ts'
import { rebuiltTaskSteps } from '../../../adapters/inspector/story/story.ts'
import { movePart, offerPart } from '../../../machines/protocol/negotiation.ts'
import type { Message, Part, Task } from '../../../machines/protocol/objects.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import { taskMachine } from '../../../machines/task.machine.ts'
import { redactValue } from '../../../runtime/ports/logger.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { violations } from '../../fixtures/pages/axe.ts'
import { CHROMIUM, openPage } from '../../fixtures/pages/chromium.ts'

function said(messageId: string, role: 'client' | 'agent', ...parts: Part[]): Message {
  return { messageId, role: role === 'agent' ? 'ROLE_AGENT' : 'ROLE_USER', parts }
}

function status(generation: number, state: TaskState, message?: Message, timestamp?: string): TaskEvent {
  const status = { state, ...(message && { message }), ...(timestamp && { timestamp }) }
  const update = { taskId: 't', contextId: 'c', status }
  return { taskId: 't', generation, update: { statusUpdate: update } }
}

function artifact(generation: number, artifactId: string, append = false): TaskEvent {
  const update = { taskId: 't', contextId: 'c', append, artifact: { artifactId, parts: [] } }
  return { taskId: 't', generation, update: { artifactUpdate: update } }
}

const offer = (offerId: string, euros: number): Part =>
  offerPart({ offerId, round: 1, terms: { euros, note: 'with <b>van</b>' }, expiresAt: '2026-01-02T00:00:00Z' })

const question = said('a1', 'agent', { text: 'Small or large?' }, { data: { name: 'Small' } }, { data: 'large' })
const task: Task = {
  id: 't',
  contextId: 'c',
  status: { state: 'TASK_STATE_COMPLETED', message: said('a3', 'agent', { text: 'Enjoy it.' }) },
  history: [
    said('c1', 'client', { text: 'A coffee, please.' }),
    question,
    said('c2', 'client', { data: { name: 'Small' } }),
    said('a2', 'agent', { text: 'Brewing.' })
  ],
  artifacts: [
    { artifactId: 'coffee', name: 'coffee.txt', parts: [{ text: 'a small coffee' }] },
    { artifactId: 'log', parts: [{ raw: 'A'.repeat(100_000), mediaType: 'application/pdf' }] }
  ]
}
const events = [
  status(2, 'TASK_STATE_SUBMITTED'),
  status(3, 'TASK_STATE_WORKING'),
  status(4, 'TASK_STATE_INPUT_REQUIRED', question),
  status(6, 'TASK_STATE_WORKING', said('a2', 'agent', { text: 'Brewing.' })),
  artifact(7, 'coffee'),
  artifact(8, 'coffee', true),
  artifact(9, 'log'),
  artifact(10, 'gone'),
  status(11, 'TASK_STATE_COMPLETED', said('a3', 'agent', { text: 'Enjoy it.' }))
]
const before = [
  said('c-1', 'client', { text: 'Coffee?' }),
  said('o1', 'agent', { text: 'For that:' }, offer('first', 4)),
  said('c-2', 'client', movePart({ propose: { terms: { euros: 2 } } })),
  said('o2', 'agent', offer('second', 3)),
  said('c-3', 'client', movePart({ decline: { offerId: 'second' } })),
  said('o3', 'agent', offer('third', 2)),
  said('r1', 'agent', { text: 'Well?' }),
  said('c-4', 'client', movePart({ accept: { offerId: 'third' } }))
]

const withChart = async (more: Partial<Story> = {}): Promise<string> => {
  const svg = await drawChart(taskMachine)
  const work = { title: 'The work', svg, steps: rebuiltTaskSteps(events), isRebuilt: true }
  return storyHtml(
    { agent: 'Barista', task, events, work, charts: [{ ...work, title: 'A task' }], ...more },
    redactValue
  )
}
const withPoints = () => storyHtml({ agent: 'Barista', task, events, charts: [] }, redactValue)

await t.test('the conversation has questions, offers and results where they happened', async t => {
  const html = await withChart({ before })
  const order = [
    'Coffee?',
    'agent offers',
    'It stood until 2026-01-02T00:00:00',
    'Proposes other terms:',
    'The client declined it.',
    'Declines the offer.',
    'The client accepted it.',
    'Accepts the offer.',
    'agent asks',
    '<li>Small</li><li>large</li>',
    '<p class="progress">Brewing.</p>',
    'a small coffee',
    'The whole artifact is below.',
    'The task is completed.'
  ].map(text => html.indexOf(text, html.indexOf('class="talk"')))
  t.strictSame(
    order,
    order.toSorted((a, b) => a - b)
  )
  t.match(html, '<pre class="text">Small</pre>', 'an answer by a choice is its label')
  t.match(html, '<dt>note</dt><dd>with &lt;b&gt;van&lt;/b&gt;</dd>')
  t.match(html, 'An offer of the agent stands. If the client accepts it, the work begins.')
  t.match(html, 'The client answers: “…”')
  t.equal(html.split('A'.repeat(100_000)).length, 2, 'a long artifact stands there once')
  t.match(html, /class="run negotiation"[^]*euros 4, note with &lt;b&gt;van&lt;\/b&gt;/)
  t.notMatch(await withChart(), 'class="run negotiation"')
})

await t.test('a long task has a file of a bounded number of rules and one drawing', async t => {
  const many = Array.from({ length: 5000 }, (_, i) =>
    status(
      i + 2,
      i % 2 === 0 ? 'TASK_STATE_WORKING' : 'TASK_STATE_INPUT_REQUIRED',
      said(`m${i}`, 'agent', { text: `word ${i}` })
    )
  )
  const html = await withChart({
    events: many,
    work: { title: 'The work', svg: await drawChart(taskMachine), steps: rebuiltTaskSteps(many), isRebuilt: true },
    charts: []
  })
  t.equal(html.match(/<svg /g)?.length, 1)
  t.ok(Number(html.match(/name="moment"/g)?.length) <= MOST_MOMENTS)
  const [, style = ''] = /<style>([^]*?)<\/style>/.exec(html) ?? []
  t.ok(style.length < 40_000, `${style.length} characters of style`)
  t.ok(Number(style.match(/\{/g)?.length) < 200)
  t.match(html, 'word 4999')
  t.comment(`${html.length} characters`)
})

await t.test('the names of a drawing are read as they were written', t => {
  const name = `a "b" <c> & 'd'\n\te on message.received to f`
  t.strictSame(transitionsIn(`<g data-transition="${attributeText(name)}"/>`), [name])
  t.end()
})

await t.test('a story of which nothing is known has its place', t => {
  const html = storyHtml(
    { task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }, events: [], charts: [] },
    redactValue
  )
  t.match(html, 'Nothing of this run is known.')
  t.notMatch(html, 'name="moment"')
  t.end()
})

await t.test('a long message is shortened in the list of moments, and points have the time since the first', t => {
  const timed = [
    status(2, 'TASK_STATE_INPUT_REQUIRED', question, '2026-01-01T00:00:00.500Z'),
    status(3, 'TASK_STATE_COMPLETED', undefined, '2026-01-01T00:00:02.500Z')
  ]
  const asked = said('c1', 'client', { text: `A coffee, ${'very '.repeat(40)}hot.` })
  const html = storyHtml({ task: { ...task, history: [asked], artifacts: [] }, events: timed, charts: [] }, redactValue)
  t.match(html, /<span class="quiet">\+2\.0 s<\/span>/)
  t.match(html, /: client: A coffee, (?:very )+[very]{0,4} ?…"/)
  t.end()
})

await t.test('a task that failed is not marked as one that ended well', t => {
  for (const [state, kind] of [
    ['TASK_STATE_COMPLETED', 'completed'],
    ['TASK_STATE_FAILED', 'failed'],
    ['TASK_STATE_REJECTED', 'failed'],
    ['TASK_STATE_CANCELED', 'canceled']
  ] as const) {
    const ended: Task = { id: 't', contextId: 'c', status: { state } }
    const html = storyHtml({ task: ended, events: [status(1, state)], charts: [] }, redactValue)
    t.match(html, `<li id="p0" class="${kind}">`)
    t.match(html, `class="badge ${kind}"`)
  }
  t.end()
})

/** A page with a story as a file. What it asks for beside itself is an error. */
async function opened(t: Test, html: string, width: number, more: object = {}): Promise<Page> {
  const page = await openPage(t, { viewport: { width, height: 900 }, ...more })
  const address = pathToFileURL(join(t.testdir({ 'story.html': html }), 'story.html')).href
  page.on('request', request => t.equal(request.url(), address))
  page.on('pageerror', error => t.fail(error.message))
  await page.goto(address)
  return page
}

function box(page: Page, selector: string): Promise<{ x: number; y: number; width: number; height: number } | null> {
  return page.locator(selector).first().boundingBox()
}

await t.test('in Chromium', { skip: CHROMIUM === undefined && 'no Chromium on this machine' }, async t => {
  const chart = await withChart({ before })

  await t.test('both halves are beside each other, and one slider takes both to a moment', async t => {
    const page = await opened(t, chart, 1440)
    const [talk, run, slider] = [await box(page, '.talk'), await box(page, '.runs'), await box(page, '.slider')]
    t.ok(talk && run && slider && talk.x + talk.width <= run.x && talk.y === run.y)
    t.ok(talk && slider && slider.y >= talk.y + talk.height - 1 && slider.y + slider.height <= 900)
    t.match(await page.innerText('.nows'), /completed\s+The task has ended: “Enjoy it\.” Its result: coffee/)
    const strokeOf = (id: string) =>
      page.evaluate(`getComputedStyle(document.querySelector('.runs [data-state="${id}"]>.box')).stroke`)
    const lit = await strokeOf('task.completed')
    await page.focus('.radios :checked')
    for (let back = 0; back < 20 && !(await page.innerText('.nows')).includes('waits'); back += 1)
      await page.keyboard.press('ArrowLeft')
    t.match(
      await page.innerText('.nows'),
      /input-required\s+The agent waits for the client's answer: “Small or large\? … …”/
    )
    t.equal(await strokeOf('task.active.started.inputRequired'), lit)
    t.not(await strokeOf('task.completed'), lit)
    const talkThen = await page.innerText('.talk')
    t.match(talkThen, 'Small or large?')
    t.notMatch(talkThen, 'Brewing')
    t.equal(await page.isVisible('.negotiation'), false)
    await page.click('.slider p:visible label:has-text("▶")')
    t.match(await page.innerText('.nows'), 'The client answers')
    await page.focus('.radios :checked')
    for (let back = 0; back < 20 && !(await page.isVisible('.negotiation')); back += 1)
      await page.keyboard.press('ArrowLeft')
    t.equal(await page.locator('.run:visible').count(), 1, 'what was said before the task alone')
    t.same(await violations(page), [])
  })

  await t.test('on a tablet the halves are above each other, on a phone one is shown', async t => {
    const tablet = await opened(t, chart, 820, { colorScheme: 'dark' })
    const [talk, run] = [await box(tablet, '.talk'), await box(tablet, '.runs')]
    t.ok(talk && run && run.y + run.height <= talk.y + 1 && run.width === talk.width)
    t.same(await violations(tablet), [])
    const phone = await opened(t, chart, 390)
    t.strictSame([await phone.isVisible('.talk'), await phone.isVisible('.runs')], [true, false])
    t.equal(await phone.evaluate('document.documentElement.scrollWidth'), 390)
    await phone.focus('.switch :checked')
    await phone.keyboard.press('ArrowRight')
    t.strictSame([await phone.isVisible('.talk'), await phone.isVisible('.runs')], [false, true])
    t.same(await violations(phone), [])
  })

  await t.test('a function has its points, and a click on one goes there', async t => {
    const page = await opened(t, withPoints(), 1440)
    await page.click('.points li >> text=Small or large?')
    t.match(await page.innerText('.nows'), "waits for the client's answer")
    t.equal(
      await page.evaluate("getComputedStyle(document.querySelector('.points li.completed')).borderLeftStyle"),
      'dashed'
    )
    t.same(await violations(page), [])
  })

  await t.test('on paper everything is there, lit as it was at last', async t => {
    const page = await opened(t, chart, 1440)
    await page.focus('.radios :checked')
    await page.keyboard.press('ArrowLeft')
    await page.emulateMedia({ media: 'print' })
    t.equal(await page.isVisible('.slider'), false)
    t.match(await page.innerText('main'), /Coffee\?[^]*Small or large\?[^]*The task is completed\./)
    t.equal(await page.locator('.now:visible').count(), 1)
    t.match(await page.innerText('.nows'), 'The task has ended')
    t.equal(await page.locator('.run:visible').count(), 2)
  })
})
