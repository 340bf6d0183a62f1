import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { readExample } from '../../../../adapters/inspector/story/story.ts'
import { violations } from '../../../fixtures/pages/axe.ts'
import { CHROMIUM, openPage } from '../../../fixtures/pages/chromium.ts'
import { startDev } from '../../../fixtures/pages/dev-page.ts'
import { actors, known, openHubPage, row, step, texts } from '../../../fixtures/pages/hub-page.ts'
import { until } from '../../../fixtures/runtime/runtime-helpers.ts'

/** The page of `taskchart dev` with an agent, and what breaks in it. */
async function openDev(t: Test, agent: string) {
  const { page: address } = await startDev(t, agent)
  const page = await openPage(t, { viewport: { width: 1440, height: 900 } })
  const troubles: string[] = []
  page.on('pageerror', ({ message }) => troubles.push(message))
  await page.goto(address)
  await page.waitForSelector('.link-there')
  const say = async (words: string) => {
    await page.fill('#composer', words)
    await page.press('#composer', 'Enter')
  }
  return { page, say, troubles }
}

/** The place of an element: its left and upper edges, and its size. */
function boxOf(page: Page, selector: string) {
  return page.locator(selector).evaluate(element => {
    const { left, top, width, height } = (
      element as unknown as { getBoundingClientRect(): Record<'left' | 'top' | 'width' | 'height', number> }
    ).getBoundingClientRect()
    return { left, top, width, height }
  })
}

await t.test('Story', { skip: CHROMIUM === undefined && 'no Chromium on this machine' }, async t => {
  await t.test(
    'is the first view: a question where it happens, the lit chart beside it, one slider for both',
    async t => {
      const { page, say, troubles } = await openDev(t, 'examples/barista.ts')
      t.equal(await page.getAttribute('#tab-story', 'aria-selected'), 'true')
      await page.click('.example-note button >> text=a coffee')
      await page.waitForSelector('.question-open')
      await page.waitForSelector('.story-run [data-state="barista.asking"].active')
      t.match(
        await page.innerText('.story-now'),
        /input-required\s+The agent waits for your answer: “Small or large\?” Your answer \(small or large\) leads to brewing\./
      )
      t.match(await page.innerText('.story-run'), 'Now: asking')
      await page.click('.question-open button >> text=large')
      await page.waitForSelector('.artifact >> text=a large coffee')
      await page.waitForSelector('.story-run [data-state="barista.served"].active')
      t.match(await page.innerText('.story-now'), /completed\s+The task has ended\. Its result: coffee\.txt\./)
      await page.focus('.story-panel [aria-label=Moment]')
      for (let back = 0; back < 20; back += 1) {
        await page.keyboard.press('ArrowLeft')
        if ((await page.innerText('.story-now')).includes('waits for your answer')) break
      }
      await page.waitForSelector('.story-run [data-state="barista.asking"].active')
      await until(async () => (await page.innerText('.story-talk')).includes('Small or large?'))
      t.equal(await page.locator('.story-talk .artifact').count(), 0, 'the conversation is that of then')
      t.equal(await page.locator('.question-open').count(), 0, 'an earlier question is not answered again')
      t.match(await page.innerText('.story-now'), 'The agent waits for your answer')
      await page.click('.story-panel >> text=Newest')
      await page.waitForSelector('.story-talk .artifact')
      await say('another')
      await page.waitForSelector('.question-open')
      await page.keyboard.press('Escape')
      await page.keyboard.press('n')
      await page.keyboard.type('a third')
      t.equal(await page.inputValue('#composer'), 'a third', 'n writes the first message of a new context here')
      t.same(troubles, [])
    }
  )

  await t.test('shows a recorded example before the first message, marked as one and stored nowhere', async t => {
    const { page, say, troubles } = await openDev(t, 'examples/sailboat.ts')
    await page.waitForSelector('.story-run [data-state="sailboat.painted"].active')
    await page.waitForSelector('.story-talk .artifact img')
    t.match(await page.innerText('.story-now'), /recorded example\s+completed/)
    t.match(await page.innerText('.example-note'), /A recorded example\.[^]*nothing of it is stored/)
    t.match(await page.innerText('.tasks'), 'No task yet')
    t.same(await violations(page), [])
    t.notMatch(await page.innerText('.story-panel'), /Cancel the task|Save story/)
    await page.keyboard.press(',')
    await page.keyboard.press(',')
    await page.waitForSelector('.story-run [data-state="sailboat.painting"].active')
    t.equal(await page.locator('.story-talk .artifact').count(), 0, 'its time goes back')
    await page.click('#tab-chart')
    await page.waitForSelector('.chart-panel [data-state="sailboat.painting"].active')
    await page.click('#tab-story')
    await page.keyboard.press('n')
    await page.waitForSelector('.example-note', { state: 'detached' })
    t.equal(await page.locator('.story-talk .message').count(), 0, 'a new context begins empty')
    await page.reload()
    await page.waitForSelector('.example-note')
    t.equal(await page.locator('.story-note').count(), 0)
    await say('hello')
    await page.waitForSelector('.story-talk >> text=What shall I draw?')
    t.equal(await page.locator('.example-note, .story-talk .artifact').count(), 0, 'a message replaces the example')
    t.equal(await page.locator('.story-run .active').count(), 0)
    await say('a sailboat')
    await page.waitForSelector('.run-chosen .state-completed')
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('text=Save as example')])
    t.match(readExample(readFileSync(await file.path(), 'utf8')).said[0]?.parts, [{ text: 'a sailboat' }])
    t.same(troubles, [])
  })

  await t.test('of a function has its words, steps, questions and results as a line in place of a chart', async t => {
    const { page, say, troubles } = await openDev(t, 'examples/trip.ts')
    t.match(await page.innerText('.story-run'), 'The work of this agent is a function')
    t.match(await page.innerText('.story-now'), 'Nothing has run yet')
    t.ok(
      await page.locator('.story-talk .choices button >> text=a trip to Rome').isVisible(),
      'its example is a button'
    )
    await say('a trip to Rome')
    await page.waitForSelector('.question-open')
    await say('Monday')
    await page.waitForSelector('.question-open >> text=How many euros')
    t.match(await page.innerText('.story-now'), 'With your answer the work goes on after this question.')
    await say('300')
    await page.waitForSelector('.question-open >> text=Please authorize')
    t.match(await page.innerText('.question-open'), 'payment (required)')
    t.match(await page.getAttribute('#composer', 'placeholder'), 'Authorize it above')
    await page.fill('.question-open input', 'cash')
    await page.click('.question-open .main')
    await page.waitForSelector('.run-step-completed')
    await page.waitForSelector('.run-step-step')
    t.match(
      (await texts(page, '.run-steps li')).map(text =>
        text
          .split(/\s*\n\s*/)
          .slice(0, 2)
          .join(' ')
      ),
      [
        'you a trip to Rome',
        'asks Which day do you want to see Rome?',
        'you Monday',
        'asks How many euros may it cost?',
        'you 300',
        'says Looking at what there is in Rome on Monday.',
        'result artifact itinerary.txt',
        'asks Please authorize a payment of 300 euros.',
        'step book',
        'result artifact ticket.txt',
        'ended completed: Have a nice day in Rome!'
      ]
    )
    t.equal(await page.locator('.story-run svg').count(), 0, 'there is no chart of ours')
    t.same(await violations(page), [], 'the line of steps is accessible')
    await page.emulateMedia({ colorScheme: 'dark' })
    await page.click('.run-steps button >> text=Which day')
    await page.waitForSelector('[aria-current=step] >> text=Which day')
    t.equal(await page.locator('.run-step-later').count(), 9)
    t.same(await violations(page), [], 'in dark and at an earlier moment too')
    t.notMatch(await page.innerText('.story-talk'), 'How many euros', 'the conversation goes there too')
    await page.waitForSelector('.run summary .state >> text=input-required', { timeout: 0 })
    await page.click('.run-step-completed button')
    await until(async () => (await page.locator('.run .state-input-required, .run .state-auth-required').count()) === 0)
    t.equal(await page.locator('.run .state >> text=answered').count(), 3, 'earlier questions are answered')
    await page.waitForSelector('.run-step-completed[aria-current=step]')
    t.equal(await page.locator('.run-step-later').count(), 0)
    t.same(troubles, [])
  })

  await t.test('while an offer stands shows what was said, and what each answer leads to, then the work', async t => {
    const { page, say, troubles } = await openDev(t, 'examples/negotiate.ts')
    await say('Mow my lawn')
    await page.waitForSelector('.offer-open')
    await page.waitForSelector('.run-step-offers[aria-current=step]')
    t.match(await page.innerText('.run-steps'), /you\s+Mow my lawn\s+offers\s+euros 60/)
    t.equal(
      await page.locator('.story-run svg, .run-steps button').count(),
      0,
      'there is no chart of ours, and no time yet'
    )
    t.match(await page.innerText('.tasks-tools'), 'All (1)', 'a context without a task counts')
    t.match(
      await page.innerText('.story-now'),
      /offer stands\s+The agent offers: euros 60\. That stands for .+\. Accept it, and the work begins\./
    )
    t.match(
      await page.innerText('.offer-moves'),
      /Accept\s+The work begins[^]*Counter…\s+You propose other terms[^]*Decline\s+There is no deal/
    )
    t.same(await violations(page), [])
    await page.click('.offer-open >> text=Decline')
    await page.waitForSelector('.story-now >> text=The agent answered without a task')
    t.match(
      await page.innerText('.run-steps'),
      /offers\s+euros 60\s+you\s+decline the offer\s+says\s+The offer is declined/
    )
    await say('Mow my lawn after all')
    await page.click('.offer-open >> text=Counter…')
    await page.fill('.offer-open input', '40')
    await page.click('text=Propose these terms')
    await page.waitForSelector('.run-step-offers >> text=euros 50')
    t.match(await page.innerText('.run-steps'), /you\s+propose euros 40/)
    await page.click('.offer-open >> text=Accept')
    await page.waitForSelector('.run-step-completed')
    t.match(await page.innerText('.story-now'), /completed[^]*receipt\.txt/)
    t.match(await page.getAttribute('#composer', 'placeholder'), 'The next message of this context')
    t.same(troubles, [])
  })

  await t.test("lights the author's chart of a negotiation where the offer left it", async t => {
    const { page, say, troubles } = await openDev(t, 'examples/haggle.ts')
    await say('Move me, on Friday')
    await page.waitForSelector('.story-run [data-state="haggling.bargaining.high"].active')
    t.match(await page.innerText('.story-run'), 'Now: high, until you answer the offer')
    await say('20 euros')
    await page.waitForSelector('.story-run [data-state="haggling.bargaining.lowest"].active')
    await page.click('.offer-open >> text=Accept')
    await page.waitForSelector('.story-run [data-state="moving.moved"].active')
    t.same(troubles, [])
  })

  await t.test('has two halves beside each other, above each other, and on a phone one at a time', async t => {
    const { page, hub, troubles } = await openHubPage(t, '')
    await hub.tell(known([row(1, { state: 'TASK_STATE_INPUT_REQUIRED' })]))
    await until(() => hub.asked.some(asked => asked.type === 'watch' && asked.contextId === 'context-1'))
    await hub.tell({ type: 'actors', contextId: 'context-1', rows: actors, gone: [] })
    await page.waitForSelector('.story-run .active')
    const halves = async () => ({ talk: await boxOf(page, '.story-talk'), run: await boxOf(page, '.story-run') })
    for (const width of [1440, 1100]) {
      await page.setViewportSize({ width, height: 900 })
      const { talk, run } = await halves()
      t.ok(talk.left + talk.width <= run.left && talk.top === run.top && talk.width > 300, `${width}: side by side`)
    }
    for (const width of [1099, 820, 700]) {
      await page.setViewportSize({ width, height: 900 })
      const { talk, run } = await halves()
      t.ok(run.top + run.height <= talk.top && talk.left === run.left, `${width}: one above the other`)
    }
    await page.setViewportSize({ width: 390, height: 844 })
    if (await page.locator('.tasks').isVisible()) await page.click('.tasks [role=option]')
    t.ok(await page.locator('.story-talk').isVisible())
    t.notOk(await page.locator('.story-run').isVisible())
    await page.click('.story-switch >> text=Chart')
    t.ok(await page.locator('.story-run .active >> nth=0').isVisible())
    t.notOk(await page.locator('.story-talk').isVisible())
    await page.keyboard.press('m')
    await until(() => page.locator('.story-talk').isVisible())
    t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'nothing is off the screen')
    t.same(troubles, [])
  })

  await t.test('says that the chart has changed since the example was recorded', async t => {
    const { page, hub, troubles } = await openHubPage(t, '')
    const example = readExample(readFileSync('examples/sailboat.example.json', 'utf8'))
    await hub.tell(known([]))
    await hub.tell(example)
    await page.waitForSelector('.story-talk .artifact')
    await page.waitForSelector('.story-note >> text=The chart has changed since this example was recorded')
    t.same(troubles, [])
  })

  await t.test('says of a chart that nobody recorded what the task said, and shows that as text', async t => {
    const { page, hub, troubles } = await openHubPage(t, '')
    const hostile = '<img src=x onerror="document.title=1">'
    await page.fill('#composer', hostile)
    await page.press('#composer', 'Enter')
    await page.waitForSelector('.artifact')
    const { context: contextId = '', task: taskId = '' } = Object.fromEntries(
      new URLSearchParams(new URL(page.url()).hash.slice(1))
    )
    await hub.tell({ type: 'actors', contextId, rows: [], gone: [] })
    await page.waitForSelector('.run-steps')
    await hub.tell({
      type: 'steps',
      contextId,
      steps: [step(1, { kind: 'stored', taskId, atMs: Date.now(), event: { type: 'step x', name: hostile } })]
    })
    await page.waitForSelector('.run-step-step')
    t.match(await page.innerText('.story-run'), /were not recorded[^]*you\s+<img src[^]*step\s+<img src/)
    t.equal(await page.locator('.story-run img').count(), 0)
    t.equal(await page.title(), 'taskchart')
    t.same(troubles, [])
  })
})
