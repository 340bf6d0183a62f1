import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import t, { type Test } from 'tap'
import { drawChart } from '../../../../adapters/drawing/chart-drawing.ts'
import { drawnCharts } from '../../../fixtures/charts/drawn/charts.ts'
import { CHROMIUM, openPage } from '../../../fixtures/pages/chromium.ts'
import { fakeHub } from '../../../fixtures/pages/fake-hub.ts'
import { until } from '../../../fixtures/runtime/runtime-helpers.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

const machine = drawnCharts['sixty']

/** The page with a chart of over sixty states, and a hub that draws what the page asks for. */
async function openChart(t: Test, width: number) {
  if (!machine) throw new Error('the chart exists')
  const page = await openPage(t, { viewport: { width, height: 800 } })
  page.setDefaultTimeout(60_000)
  const troubles: string[] = []
  page.on('pageerror', ({ message }) => troubles.push(message))
  const svg = await drawChart(machine)
  const hub = await fakeHub(t, 1, { charts: [{ id: 'work', title: 'The work', svg, mermaid: '', source: '' }] })
  await page.goto(`${hub.url}#part=chart`)
  await page.click('#tab-chart')
  await page.waitForSelector('.chart-panel .statechart')
  let answered = 0
  /** Answers the requests for drawings; gives the collapsed states of the newest one. */
  const answer = async () => {
    const requests = () => hub.asked.flatMap(asked => (asked.type === 'draw' ? [asked] : []))
    await until(() => requests().length > answered)
    answered = requests().length
    const { chart, collapsed } = requests().at(-1) ?? { chart: 'work' as const, collapsed: [] }
    await hub.tell({ type: 'drawn', chart, collapsed, svg: await drawChart(machine, collapsed) })
    return collapsed
  }
  const count = (selector: string) => page.locator(`.chart-panel ${selector}`).count()
  return { page, troubles, answer, count }
}

await t.test(
  'a large chart on the page',
  { skip: CHROMIUM === undefined && 'no Chromium on this machine' },
  async t => {
    for (const width of [1440, 820])
      await t.test(`regions are collapsed and expanded, at ${width} px`, async t => {
        const { page, answer, count, troubles } = await openChart(t, width)
        const states = await count('[data-state]')
        t.ok(states > 60)
        await page.click('.chart-panel summary')
        const part = (id: string) => page.getByLabel(id, { exact: true })
        await part('sixty.running.stock').uncheck()
        t.strictSame(await answer(), ['sixty.running.stock'])
        await page.waitForSelector('.chart-panel .collapsed[data-state="sixty.running.stock"]')
        t.equal(await count('[data-state^="sixty.running.stock."]'), 0)
        t.equal(await count('[data-state^="sixty.running.audit."]'), 11)
        t.match(await page.textContent('.chart-panel .collapsed'), /11 states are hidden/)
        await page.click('text=Collapse all')
        await answer()
        await page.waitForSelector('.chart-panel .collapsed[data-state="sixty.running"]')
        t.equal(await count('[data-state]'), 3)
        await page.evaluate(AXE)
        t.same(
          await page.evaluate(
            "axe.run('.chart-panel', { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].target} ${nodes[0].failureSummary}`))"
          ),
          []
        )
        await page.click('text=Expand all')
        await until(async () => (await count('[data-state]')) === states)
        t.same(troubles, [])
      })

    await t.test('a double click on a state collapses it, and one more expands it', async t => {
      const { page, answer, count } = await openChart(t, 1440)
      await page.click('.chart-zoom >> text=Fit')
      await page.dblclick('.chart-panel [data-state="sixty.running.billing"] > .key')
      t.strictSame(await answer(), ['sixty.running.billing'])
      await page.waitForSelector('.chart-panel .collapsed')
      await page.dblclick('.chart-panel .collapsed > .box')
      await until(async () => (await count('.collapsed')) === 0)
    })

    await t.test('a state is found by its name, also in a collapsed region', async t => {
      const { page, answer, count } = await openChart(t, 820)
      const found = () => page.getAttribute('.chart-panel .found', 'data-state')
      await page.getByLabel('Find a state').fill('third')
      await page.waitForSelector('.chart-panel .found')
      t.equal(await found(), 'sixty.running.intake.busy.third')
      t.equal(await page.textContent('.chart-find [aria-live]'), '1 of 5')
      await page.getByLabel('Find a state').press('Enter')
      await until(async () => (await found()) === 'sixty.running.pricing.busy.third')
      const isShown = `(() => {
      const [box, chart] = ['.chart-panel .found > .box', '.chart-panel .chart-box'].map(one => document.querySelector(one).getBoundingClientRect())
      return box.left >= chart.left && box.right <= chart.right && box.top >= chart.top && box.bottom <= chart.bottom
    })()`
      t.equal(await page.evaluate(isShown), true)
      await page.getByLabel('Find a state').fill('no such')
      await until(async () => (await page.textContent('.chart-find [aria-live]')) === 'none')
      t.equal(await count('.found'), 0)
      await page.getByLabel('Find a state').fill('')
      await page.click('.chart-panel summary')
      await page.getByLabel('sixty.running.audit', { exact: true }).uncheck()
      await answer()
      await page.waitForSelector('.chart-panel .collapsed')
      await page.click('.chart-panel summary')
      await page.getByLabel('Find a state').fill('idle')
      for (let i = 0; i < 4; i += 1) await page.getByLabel('Find a state').press('Enter')
      await until(async () => (await count('.found')) === 1 && (await found()) === 'sixty.running.audit.idle')
      t.equal(await count('.collapsed'), 0)
    })
  }
)
