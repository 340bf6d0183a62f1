import t, { type Test } from 'tap'
import { z } from 'zod'
import { serve } from '../../../../adapters/serve/serve.ts'
import type { Part } from '../../../../machines/protocol/objects.ts'
import {
  accepted,
  createRuntime,
  defineAgent,
  inputRequired,
  negotiation,
  offer,
  progress,
  reply,
  textOf
} from '../../../../runtime/index.ts'
import { violations } from '../../../fixtures/pages/axe.ts'
import { CHROMIUM, openPage } from '../../../fixtures/pages/chromium.ts'
import { drawnChart, fakeHub } from '../../../fixtures/pages/fake-hub.ts'
import { until } from '../../../fixtures/runtime/runtime-helpers.ts'

const WEB = 'https://elsewhere.example'

/** Text that a page must neither run nor load. */
const HOSTILE = [
  '<script>document.title = "run"</script><img src=x onerror="document.title = 1">\u202egnp.exe\u2066',
  '<form id="composer" name="fake"></form>',
  'w'.repeat(2000),
  `![a](${WEB}/pixel.png) <img src="${WEB}/b.png">`,
  '[click](javascript:document.title=2) [data](data:text/html,x)',
  `[web](${WEB}/page)`,
  `<style>@import url("${WEB}/c.css")</style>`,
  `[r]\n\n[r]: ${WEB}/d`,
  '> '.repeat(300) + 'deep',
  '['.repeat(3000),
  '*a '.repeat(3000)
].join('\n\n')

/** An id that pretends to be an element. */
const FAKE_ID = '"><img id="fake" src=x onerror="document.title=5">'

const SVG = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="parent.document.title=3"><script>parent.document.title=4</script><image href="${WEB}/e.png" width="9" height="9"/></svg>`

const ANYTHING: Part[] = [
  { text: HOSTILE },
  { text: SVG, mediaType: 'image/svg+xml', filename: 'x.svg' },
  { raw: Buffer.from(SVG).toString('base64'), mediaType: 'image/svg+xml', filename: 'y.svg' },
  { raw: Buffer.from(HOSTILE).toString('base64'), mediaType: 'text/markdown', filename: 'z.md' },
  { text: 'name,price\n"<b>a</b>",1\nb,2', mediaType: 'text/csv', filename: 't.csv' },
  { data: [{ '<i>x</i>': '<b>1</b>' }, { '<i>x</i>': 2 }] },
  { url: 'javascript:alert(1)', filename: HOSTILE.slice(0, 40) },
  { text: 'const a = 1', filename: 'a.ts' }
]

/** Negotiates a price, asks once, and says hostile things. */
const agent = defineAgent({
  card: { name: 'Gardener', description: 'Mows your lawn.' },
  negotiate: negotiation({
    terms: z.object({ euros: z.number().meta({ title: 'Price in euros' }) }),
    respond: ({ message, proposal }) => {
      const wish = textOf(message)
      if (wish === 'hello') return reply('**Hello** yourself.')
      if (wish === 'hostile words') return reply({ parts: [{ text: HOSTILE }] })
      if (wish === 'hostile' || wish === 'ask') return accepted({ euros: 1 })
      return offer({ euros: proposal ? 50 : 60 }, { message: 'I would do it tomorrow.' })
    }
  }),
  work: async function* ({ message, terms }) {
    if (textOf(message) === 'hostile') {
      yield progress(HOSTILE)
      return { artifact: { name: HOSTILE.slice(0, 60), parts: ANYTHING } }
    }
    yield progress('Mowing.')
    if (textOf(message) === 'ask') yield* inputRequired('Small or large?', { schema: z.enum(['small', 'large']) })
    return {
      artifact: { name: 'receipt', parts: [{ text: `# Mown\n\n| for | euros |\n|---|---|\n| you | ${terms.euros} |` }] }
    }
  }
})

async function openTalk(t: Test) {
  const page = await openPage(t)
  const runtime = createRuntime({ agent })
  t.teardown(() => runtime.close())
  const served = await serve(runtime, { port: 0, http: false })
  t.teardown(() => served.close())
  const hub = await fakeHub(t, Number(new URL(served.url).port), {
    // A page that was busy takes the hub's clock for late.
    nowMs: Date.now() - 60_000,
    charts: [drawnChart('work', ['painter', 'painter.choosing'], [])],
    agent: {
      name: 'Gardener',
      description: 'Mows your lawn.',
      version: '1.0.0',
      examples: ['hello'],
      terms: { type: 'object', properties: { euros: { type: 'number', title: 'Price in euros' } }, required: ['euros'] }
    }
  })
  const troubles: string[] = []
  const asked: string[] = []
  page.on('pageerror', ({ message }) => troubles.push(message))
  page.on('request', request => asked.push(request.url()))
  await page.goto(`${hub.url}#part=talk`)
  await page.waitForSelector('.link-there')
  const say = async (words: string) => {
    await page.fill('#composer', words)
    // While a message is being sent, Enter does nothing.
    await page.waitForSelector('form:has(#composer) button[type=submit]:not([disabled])')
    await page.press('#composer', 'Enter')
  }
  return { page, hub, troubles, asked, say }
}

/** The elements that make the page larger than its window. */
const BEYOND = `(() => {
  const { scrollWidth, scrollHeight } = document.documentElement
  if (scrollWidth <= innerWidth && scrollHeight <= innerHeight) return []
  const isCut = element => element.parentElement !== null && (getComputedStyle(element.parentElement).overflow !== 'visible' || isCut(element.parentElement))
  return [...document.querySelectorAll('body *')].filter(element => !isCut(element) && (element.getBoundingClientRect().right > innerWidth || element.getBoundingClientRect().bottom > innerHeight)).map(({ outerHTML }) => outerHTML.slice(0, 80))
})()`

/** The elements whose text could turn the direction of the text beside it. */
const TURNED = `[...document.querySelectorAll('body :not(option)')]
  .filter(({ childNodes }) => [...childNodes].some(({ nodeType, data }) => nodeType === 3 && data.includes('\u202e')))
  .filter(element => getComputedStyle(element).unicodeBidi === 'normal').map(({ outerHTML }) => outerHTML.slice(0, 80))`

await t.test('Talk', { skip: CHROMIUM === undefined && 'no Chromium on this machine' }, async t => {
  await t.test('shows messages, offers and tasks in the order of time', async t => {
    const { page, say, troubles } = await openTalk(t)
    await say('hello')
    await page.waitForSelector('.message-agent b >> text=Hello')
    await say('Mow my lawn')
    await page.waitForSelector('.offer-open')
    t.match(await page.innerText('.offer-open'), /stands for[^]*Price in euros\s+60[^]*Accept[^]*Counter…[^]*Decline/)
    await page.click('text=Counter…')
    await page.fill('.offer-open input', '40')
    await page.click('text=Propose these terms')
    await page.waitForSelector('.offer-open >> text=50')
    t.equal(await page.locator('.offer-open').count(), 1, 'the earlier offer no longer stands')
    await page.click('.offer-open >> text=Accept')
    await page.waitForSelector('.artifact table')
    t.match(
      await page.innerText('.talk'),
      /hello[^]*Hello yourself[^]*Mow my lawn[^]*60[^]*Proposes other terms[^]*40[^]*50[^]*Accepts the offer[^]*completed[^]*Mowing[^]*receipt/
    )
    await page.click('.run summary')
    t.match(await page.innerText('.run li >> nth=0'), 'submitted')
    await say('Again')
    await page.click('.offer-open >> text=Decline')
    await page.waitForSelector('text=Declines the offer.')
    await say('ask')
    await page.click('.question-open button >> text=large')
    await page.waitForSelector('.artifact >> nth=1')
    t.equal(
      await page.evaluate(
        "(box => box.scrollTop + box.clientHeight >= box.scrollHeight - 60)(document.querySelector('.talk-box'))"
      ),
      true,
      'the newest is in view'
    )
    t.same(troubles, [])
  })

  await t.test('no part of the page runs or loads what an agent says, nor lets it out of its place', async t => {
    const { page, hub, say, troubles, asked } = await openTalk(t)
    await page.click('text=New')
    await say('hostile words')
    await page.waitForSelector('.message-agent')
    await say('hostile')
    await page.waitForSelector('.artifact img')
    await page.click('.run summary >> nth=-1')
    const { context: contextId = '', task: taskId = '' } = Object.fromEntries(
      new URLSearchParams(new URL(page.url()).hash.slice(1))
    )
    const owner = { tenant: '', principal: HOSTILE }
    await hub.tell({
      type: 'tasks',
      removed: [],
      rows: [
        {
          taskId,
          contextId,
          owner,
          state: 'TASK_STATE_WORKING',
          generation: 1,
          openedMs: 3,
          changedMs: 3,
          title: HOSTILE
        },
        {
          taskId: FAKE_ID,
          contextId: FAKE_ID,
          owner,
          state: 'TASK_STATE_WORKING',
          generation: 1,
          openedMs: 1,
          changedMs: 1,
          title: HOSTILE
        }
      ]
    })
    await hub.tell({
      type: 'contexts',
      removed: [],
      rows: [{ contextId: 'c-2', owner, title: HOSTILE, openedMs: 2, changedMs: 2 }]
    })
    await hub.tell({ type: 'crash', taskId, error: HOSTILE })
    await hub.tell({
      type: 'actors',
      contextId,
      gone: [],
      rows: [
        {
          sessionId: FAKE_ID,
          name: HOSTILE,
          kind: 'work',
          chart: 'work',
          taskId,
          status: 'active',
          states: ['painter', 'painter.choosing']
        },
        { sessionId: 'x:9', name: HOSTILE, kind: 'child', parent: FAKE_ID, taskId, status: 'active', states: [] }
      ]
    })
    const step = { atMs: 1, kind: 'event', to: FAKE_ID, taskId, event: { type: HOSTILE, text: HOSTILE } } as const
    await hub.tell({
      type: 'steps',
      contextId,
      steps: [
        { n: 1, ...step, from: 'x:9' },
        { n: 2, ...step, kind: 'microstep', states: ['painter', 'painter.choosing'], transitions: [HOSTILE] }
      ]
    })
    await hub.tell({
      type: 'coverage',
      chart: 'work',
      atMs: 1,
      reached: { states: [HOSTILE], transitions: [HOSTILE] },
      missing: [{ name: HOSTILE, why: HOSTILE }],
      failed: [
        {
          name: HOSTILE,
          driver: HOSTILE,
          message: HOSTILE,
          alone: HOSTILE,
          at: 0,
          steps: [{ move: HOSTILE, states: [HOSTILE], transitions: [HOSTILE] }]
        }
      ]
    })
    const hostile = {
      steps: [{ move: HOSTILE, states: [HOSTILE], transitions: [HOSTILE], told: HOSTILE }],
      loops: 0,
      ending: HOSTILE,
      alone: HOSTILE
    }
    await hub.tell({
      type: 'proving',
      isRunning: false,
      proof: {
        atMs: 1,
        head: HOSTILE,
        bounds: [HOSTILE],
        verdicts: [{ property: HOSTILE, outcome: 'confirmed', means: HOSTILE, says: HOSTILE, walk: hostile }]
      }
    })
    /** The parts, each with the place of hostile text, and a click that shows more of it. */
    const parts: readonly (readonly [part: string, place: string, click?: string])[] = [
      ['talk', '.talk'],
      ['story', '.talk'],
      ['story', '.story-now'],
      ['chart', '.trail li >> nth=1'],
      ['sequence', '.detail', '.sequence-panel [role=option]'],
      ['timeline', '.timeline > .rows'],
      ['frames', '.detail', '.frames-panel [role=option]'],
      ['paths', '.walk', '.missing button'],
      ['paths', '.walk[aria-label="A counterexample"]', '.missing button']
    ]
    for (const [part, place, click] of parts) {
      await page.click(`#tab-${part}`)
      if (part === 'frames') await until(() => hub.asked.some(({ type }) => type === 'frames'))
      if (part === 'frames')
        await hub.tell({
          type: 'frames',
          frames: [{ n: 1, atMs: 1, connection: HOSTILE, direction: 'in', bytes: 9, text: HOSTILE }]
        })
      if (place.includes('counterexample')) await page.selectOption('#part select', 'proof')
      if (click !== undefined) await page.click(click)
      t.match(
        part === 'chart' ? await page.getAttribute(place, 'title') : await page.innerText(place),
        '<script>document.title',
        `${part} shows it as text`
      )
      t.equal(await page.title(), 'taskchart', part)
      t.equal(
        await page
          .locator(
            'script:not([src]), iframe, .talk svg, #part style:not(svg style), [onload], [onerror], [id="fake"], [name="fake"]'
          )
          .count(),
        0,
        `${part} has no element of it`
      )
      t.equal(
        await page.locator('#composer').count(),
        part === 'talk' || part === 'story' ? 1 : 0,
        `${part} has no element that takes the place of another`
      )
      t.same(await page.evaluate(BEYOND), [], `${part} stays in the window`)
      t.same(await page.evaluate(TURNED), [], `${part} keeps the direction of its own text`)
    }
    t.match(
      await page.innerText('.tasks'),
      /<script>document\.title[^]*<script>document\.title/,
      'the list shows it as text'
    )
    t.same(
      await page
        .locator('a[href]')
        .evaluateAll(links =>
          links
            .map(link => link.getAttribute('href') ?? '')
            .filter(
              href =>
                !/^(?:https:\/\/elsewhere\.example\/|blob:http:\/\/127\.0\.0\.1|http:\/\/127\.0\.0\.1|\/)/.test(href)
            )
        ),
      [],
      'links lead to the web, or save'
    )
    t.same(
      asked.filter(url => !/^(?:http|ws|blob:http):\/\/127\.0\.0\.1:/.test(url)),
      [],
      'nothing is asked of another host'
    )
    t.same(troubles, [])
  })

  await t.test('a message that is written while another is sent stays, and none is sent twice', async t => {
    const { page } = await openTalk(t)
    await page.fill('#composer', 'hello')
    await page.locator('#composer').evaluate(element => {
      const composer = element as unknown as { value: string; dispatchEvent(event: Event): void }
      const enter = () =>
        composer.dispatchEvent(
          Object.assign(new Event('keydown', { bubbles: true, cancelable: true }), { key: 'Enter' })
        )
      enter()
      composer.value = 'the next'
      composer.dispatchEvent(new Event('input', { bubbles: true }))
      enter()
    })
    await page.waitForSelector('.message-agent b >> text=Hello')
    t.equal(await page.inputValue('#composer'), 'the next')
    t.equal(await page.locator('.message-client').count(), 1)
  })

  await t.test('every part is accessible, in light and dark, wide and on a phone', async t => {
    const { page, hub, say } = await openTalk(t)
    t.same(await violations(page), [], 'before the first message')
    await say('hello')
    await page.waitForSelector('.message-agent b >> text=Hello')
    await say('Mow my lawn')
    await page.waitForSelector('.offer-open')
    await say('ask')
    await page.waitForSelector('.question-open')
    const { context, task } = Object.fromEntries(new URLSearchParams(new URL(page.url()).hash.slice(1)))
    await hub.tell({
      type: 'tasks',
      removed: [],
      rows: [
        {
          taskId: task ?? '',
          contextId: context ?? '',
          owner: { tenant: '', principal: '' },
          state: 'TASK_STATE_INPUT_REQUIRED',
          generation: 4,
          openedMs: 1,
          changedMs: 1,
          title: 'ask'
        }
      ]
    })
    await hub.tell({
      type: 'contexts',
      removed: [],
      rows: [{ contextId: 'c-2', owner: { tenant: '', principal: '' }, title: 'another', openedMs: 2, changedMs: 2 }]
    })
    await page.waitForSelector('.tasks [role=option] >> nth=1')
    for (const part of ['story', 'chart', 'sequence', 'timeline', 'frames', 'paths', 'talk']) {
      await page.click(`#tab-${part}`)
      t.same(await violations(page), [], part)
    }
    await page.click('#tab-paths')
    await page.selectOption('#part select', 'tasks')
    await until(() => hub.asked.some(({ type }) => type === 'heat'))
    await hub.tell({
      type: 'heat',
      charts: [
        {
          chart: 'work',
          transitions: [
            { name: 'choosing to painting', count: 0 },
            { name: 'painting to painted', count: 3 }
          ]
        }
      ]
    })
    await page.waitForSelector('.heat-panel')
    const verdicts = (['proved', 'confirmed', 'possible', 'unknown'] as const).map(outcome => ({
      property: `it is ${outcome}`,
      outcome,
      means: 'so',
      says: 'if so',
      ...(outcome === 'confirmed' && {
        walk: {
          steps: [{ move: 'opened', states: ['painter'], transitions: [], told: 'tells WORKING' }],
          loops: 0,
          ending: '',
          alone: 'npx'
        }
      })
    }))
    await hub.tell({
      type: 'proving',
      isRunning: false,
      proof: { atMs: 1, head: '2 configurations', bounds: ['No case.'], verdicts }
    })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.selectOption('#part select', 'tasks')
      t.same(await violations(page), [], `what tasks took, in ${colorScheme}`)
      await page.selectOption('#part select', 'proof')
      t.same(await violations(page), [], `what is proved, in ${colorScheme}`)
      await page.click('.missing button')
      t.same(await violations(page), [], `a counterexample, in ${colorScheme}`)
      await page.click('text=← All')
    }
    await page.click('#tab-talk')
    t.same(await violations(page), [], 'Talk in dark')
    await page.click('#tab-chart')
    t.same(await violations(page), [], 'the chart in dark')
    await page.click('#tab-story')
    t.same(await violations(page), [], 'Story in dark')
    await page.setViewportSize({ width: 390, height: 844 })
    t.same(await violations(page), [], 'a phone with a task')
    t.ok((await page.locator('.time-bar').evaluate(bar => bar.clientHeight)) < 50, 'the time takes one row')
    await page.click('.story-switch button >> nth=1')
    t.same(await violations(page), [], 'the other half of Story on a phone')
    await page.click('.story-switch button >> nth=0')
    t.equal(await page.locator('.tasks').isVisible(), false)
    await page.click('.to-list')
    t.same(await violations(page), [], 'a phone with the list')
    t.equal(await page.locator('#part').isVisible(), false)
    await page.click('.tasks [role=option] >> nth=0')
    await until(() => page.locator('#part').isVisible())
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'nothing is off the screen')
  })
})
