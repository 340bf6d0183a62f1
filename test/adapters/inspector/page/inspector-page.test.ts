import { readdirSync, readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { CHROMIUM, openPage } from '../../../fixtures/pages/chromium.ts'
import { startDev } from '../../../fixtures/pages/dev-page.ts'

/** The page, what it asks for, and what breaks in it. */
async function watchSailboat(t: Test) {
  const { page: address } = await startDev(t, 'examples/sailboat.ts')
  const page = await openPage(t)
  const asked: string[] = []
  const troubles: string[] = []
  page.on('request', request => asked.push(request.url()))
  page.on('websocket', socket => asked.push(socket.url()))
  page.on('pageerror', ({ message }) => troubles.push(message))
  await page.goto(address)
  await page.waitForSelector('.link-there')
  return { page, asked, troubles }
}

async function send(page: Page, words: string): Promise<void> {
  await page.click('#tab-talk')
  await page.fill('#composer', words)
  await page.press('#composer', 'Enter')
  await page.waitForSelector(`.message-client:has-text("${words}")`)
}

async function paints(page: Page, words: string): Promise<void> {
  await send(page, words)
  await page.waitForSelector('.artifact img')
  await page.waitForSelector('.run-chosen .state-completed')
}

/** The states that are lit in the chart. */
function lit(page: Page): Promise<string[]> {
  return page
    .locator('[data-state].active')
    .evaluateAll(elements => elements.map(element => element.getAttribute('data-state') ?? ''))
}

function taken(page: Page): Promise<string[]> {
  return page
    .locator('[data-transition].taken')
    .evaluateAll(elements => elements.map(element => element.getAttribute('data-transition') ?? ''))
}

await t.test(
  'the page of taskchart dev',
  { skip: CHROMIUM === undefined && 'no Chromium on this machine' },
  async t => {
    const { page, asked, troubles } = await watchSailboat(t)

    await t.test('shows the path of a task through its chart', async t => {
      await send(page, 'hello')
      await page.waitForSelector('text=What shall I draw?')
      await paints(page, 'a sailboat')
      await page.click('#tab-chart')
      await page.waitForSelector('[data-state="sailboat.painted"].active')
      t.same(await lit(page), ['sailboat', 'sailboat.painted'])
      t.same((await taken(page)).toSorted(), [
        'sailboat.choosing on its own (branch 2) to painting',
        'sailboat.painting on xstate.done.actor.0.sailboat.painting to painted'
      ])
      await page.waitForSelector('.trail >> text=painted')
      t.match(await page.innerText('.trail'), /choosing\s+painting\s+painted/)
    })

    await t.test('lights the question, accepts its answer in a form, and follows it', async t => {
      await paints(page, 'a green sailboat')
      await send(page, 'make it red')
      await page.waitForSelector('.question-open')
      await page.click('#tab-chart')
      await page.waitForSelector('[data-state="sailboat.finding"].active')
      t.same(await lit(page), ['sailboat', 'sailboat.finding'])
      await page.click('#tab-talk')
      await page.fill('#composer', 'that one')
      await page.press('#composer', 'Enter')
      await page.waitForSelector('.question-open >> text=There is no picture of that name')
      await page.click('.choices >> text=sailboat_image_2.png')
      await page.waitForSelector('.run-chosen .state-completed')
      t.match(await page.innerText('.artifact >> nth=-1'), /sailboat_image_2\.png[^]*red sailboat/)
      await page.click('#tab-chart')
      await page.waitForSelector('[data-state="sailboat.painted"].active')
      await page.waitForSelector('.trail >> text=painted')
      t.match(await page.innerText('.trail'), /choosing\s+finding\s+painting\s+painted/)
    })

    t.ok(asked.length > 5)
    t.same(
      asked.filter(url => !/^(?:http|ws|blob:http):\/\/127\.0\.0\.1:/.test(url)),
      [],
      'no other host is contacted'
    )
    t.same(troubles, [])
  }
)

await t.test(
  'the page of an agent with authenticate',
  { skip: CHROMIUM === undefined && 'no Chromium on this machine' },
  async t => {
    const { page: address } = await startDev(t, 'examples/sailboat.ts', '--api-key', 'a-long-key-of-anna')
    const page = await openPage(t)
    await page.goto(address)
    await page.fill('#key', 'a-guess')
    await page.click('text=Use it')
    await page.waitForSelector('text=credentials that this agent knows')
    await page.fill('#key', 'a-long-key-of-anna')
    await page.click('text=Use it')
    await page.waitForSelector('.link-there')
    t.equal(await page.locator('.key-form').count(), 0)
    await paints(page, 'a sailboat')
    t.match(await page.innerText('.tasks'), /a sailboat[^]*completed/)
  }
)

/** The most that the files of the page may have together, compressed. */
const MOST_PAGE_BYTES = 165_000

await t.test('the files of the page stay small', async t => {
  const folder = 'dist/adapters/inspector/page/assets'
  const sizes = readdirSync(folder)
    .filter(name => !name.endsWith('.map'))
    .map(name => gzipSync(readFileSync(`${folder}/${name}`)).length)
  const total = sizes.reduce((sum, size) => sum + size, 0)
  t.comment(`${total} bytes, compressed`)
  t.ok(sizes.length > 2 && total < MOST_PAGE_BYTES)
})
