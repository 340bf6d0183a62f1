import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { violations } from '../../../fixtures/pages/axe.ts'
import { CHROMIUM, openPage } from '../../../fixtures/pages/chromium.ts'
import { startDev } from '../../../fixtures/pages/dev-page.ts'
import { holds } from '../../../fixtures/pages/hub-page.ts'

/** Whether an element is in sight. */
const isShown = (selector: string) => `document.querySelector('${selector}')?.getClientRects().length > 0`

await t.test(
  'a task that waits while its agent is edited is shown before and now',
  { skip: CHROMIUM === undefined && 'no Chromium on this machine' },
  async t => {
    const source = readFileSync('examples/barista.ts', 'utf8')
    const file = join(t.testdir({ 'agent.ts': source }), 'agent.ts')
    const { page: address } = await startDev(t, file)
    const page = await openPage(t, { viewport: { width: 1440, height: 900 } })
    const troubles: string[] = []
    page.on('pageerror', ({ message }) => troubles.push(message))
    await page.goto(address)
    await page.waitForSelector('.link-there')
    await page.fill('#composer', 'a coffee')
    await page.press('#composer', 'Enter')
    await page.waitForSelector('.statechart .active[data-state="barista.asking"]')
    t.equal(await page.locator('.changed-line').count(), 0)

    writeFileSync(
      file,
      source
        .replace("target: 'brewing', actions", "target: 'grinding', actions")
        .replace('    brewing: {', "    grinding: { after: { 500: 'brewing' } },\n    brewing: {")
    )
    await page.waitForSelector('.changed-line')
    t.match(
      await page.textContent('.changed-line'),
      /^The agent has changed since this task was opened\. It goes on, but not the same way\./
    )
    await page.focus('.changed-line button')
    await page.keyboard.press('Enter')
    await page.waitForSelector('.side-before .statechart .active[data-state="barista.asking"]')
    await page.waitForSelector('.side-now .statechart .active[data-state="barista.asking"]')
    t.equal(await page.locator('.side-now .added[data-state="barista.grinding"]').count(), 1)
    t.equal(await page.locator('.side-before [data-state="barista.grinding"]').count(), 0)
    t.match(await page.textContent('.compared'), 'asking on message.received: it leads to grinding')
    t.same(await violations(page), [])
    const besides = `(() => {
      const [before, now] = ['.side-before', '.side-now'].map(one => document.querySelector(one).getBoundingClientRect())
      return before.top === now.top && before.right <= now.left
    })()`
    await holds(page, besides)
    await page.setViewportSize({ width: 820, height: 900 })
    await holds(page, `!${besides} && ${isShown('.side-before')} && ${isShown('.side-now')}`)
    await page.setViewportSize({ width: 390, height: 800 })
    await page.emulateMedia({ colorScheme: 'dark' })
    await holds(page, `!(${isShown('.side-before')}) && ${isShown('.side-now')}`)
    await page.click('.before-after-switch >> text=Before')
    await holds(page, `${isShown('.side-before')} && !(${isShown('.side-now')})`)
    t.same(await violations(page), [])
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.click('text=Before and now')
    await holds(page, "!document.querySelector('.before-after')")

    writeFileSync(file, source.replaceAll('asking', 'choosing'))
    await page.waitForSelector('.compared .tone-bad')
    t.match(await page.textContent('.compared'), /It is not restored[^]*the chart has no state barista\.asking/)
    await page.click('text=Story')
    await page.waitForSelector('.changed-line .tone-bad')
    t.equal(await page.locator('.story-hint').count(), 0, 'the story says nothing of what an answer leads to')
    await page.click('text=See what has changed')
    writeFileSync(file, source)
    await holds(page, "!document.querySelector('.compared')")
    await page.click('text=Story')
    await page.waitForSelector('.story-hint')
    t.same(troubles, [])
  }
)
