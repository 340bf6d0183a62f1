import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import t from 'tap'
import { Inspector, PageFiles } from '../../../../adapters/inspector/inspector.ts'
import { loadStately } from '../../../../adapters/inspector/stately.ts'
import { serve } from '../../../../adapters/serve/serve.ts'
import { createRuntime, defineAgent } from '../../../../runtime/index.ts'
import { redactValue } from '../../../../runtime/ports/logger.ts'
import { CHROMIUM, openPage } from '../../../fixtures/pages/chromium.ts'
import { drawnChart } from '../../../fixtures/pages/fake-hub.ts'
import { mcpPeer, openedTask, questionIn } from '../../../fixtures/peers/mcp-peer.ts'
import { until } from '../../../fixtures/runtime/runtime-helpers.ts'
import { sized } from '../../../fixtures/servers/mcp-agent.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

function texts(page: Page, selector: string): Promise<string[]> {
  return page.locator(selector).allInnerTexts()
}

await t.test(
  'Frames and Sequence show the calls over MCP, with their task',
  { skip: CHROMIUM === undefined && 'no Chromium on this machine' },
  async t => {
    const skills = [{ id: 'coffee', name: 'Coffee', description: 'Makes coffee.', tags: [] }]
    const runtime = createRuntime({ agent: defineAgent({ card: { name: 'Barista', skills }, work: sized }) })
    t.teardown(() => runtime.close())
    const inspector = new Inspector({
      redact: redactValue,
      draw: async () => drawnChart('task', ['task'], []).svg,
      coverage: async () => undefined,
      page: new PageFiles(new URL('dist/adapters/inspector/page/', `${pathToFileURL(process.cwd()).href}/`)),
      loadStately
    })
    const served = await serve(runtime, { port: 0, mcp: true, inspector })
    t.teardown(() => served.close())
    const peer = mcpPeer(request => fetch(request as Request), {
      tasks: true,
      form: true,
      address: served.mcpUrl ?? ''
    })
    const page = await openPage(t)
    page.setDefaultTimeout(30_000)
    await page.setViewportSize({ width: 1440, height: 1800 })
    const troubles: string[] = []
    page.on('pageerror', ({ message }) => troubles.push(message))
    await page.goto(inspector.pageUrl)
    await page.waitForSelector('.link-there')
    await page.click('#tab-frames')
    await until(() => inspector.tap.onFrame)

    const taskId = openedTask(await peer.call('coffee', { message: 'a coffee', data: { token: 'sesame' } }))
    for (let i = 0; i < 3; i += 1) await peer.rpc('tasks/get', { taskId })
    const { key } = questionIn(await peer.rpc('tasks/get', { taskId }))
    await peer.rpc('tasks/update', {
      taskId,
      inputResponses: { [key]: { action: 'accept', content: { size: 'small' } } }
    })
    await peer.rpc('tasks/get', { taskId })
    const other = openedTask(await peer.call('coffee', { message: 'another' }))
    await peer.rpc('tasks/cancel', { taskId: other })
    await peer.rpc('tasks/get', { taskId: 'unknown' })

    // The page follows the tasks over a connection of its own.
    const mcpRows = '.frames-panel .row:has(.frame-connection:text("mcp"))'
    await until(async () => (await texts(page, `${mcpRows} .frame-what`)).at(-1) === 'error')
    const whats = await texts(page, `${mcpRows} .frame-what`)
    t.equal(whats[0], 'tools/call')
    t.strictSame(whats.slice(-10), [
      'tasks/update',
      'result',
      'tasks/get',
      'completed',
      'tools/call',
      'working',
      'tasks/cancel',
      'result',
      'tasks/get',
      'error'
    ])
    const short = taskId.slice(0, 8)
    t.ok(
      (await texts(page, `${mcpRows} .frame-task`)).slice(0, 2).every(text => text.startsWith(short)),
      'the request, too'
    )
    t.notMatch(await page.innerText('.frames-panel'), 'sesame')
    await page.click(`${mcpRows} >> nth=0`)
    t.match(await page.innerText('.detail'), /To the agent[^]*mcp \d+[^]*"name":"coffee"/)
    t.notMatch(await page.innerText('.detail'), 'sesame')
    await page.click('.detail >> text=Show its task')
    await until(() => page.evaluate<boolean>(`location.hash.includes(${JSON.stringify(taskId)})`))

    await page.click('#tab-sequence')
    await page.waitForSelector('.sequence-panel .row >> nth=5')
    const words = await texts(page, '.step-words')
    t.equal(words[0], 'tools/call')
    t.ok(words.includes('tasks/get ×4'), 'polls with one answer are one')
    t.ok(words.indexOf('tasks/update') < words.lastIndexOf('message.received'), 'a call comes before what it does')
    t.equal(words.at(-1), 'completed')
    t.notOk(words.includes('tasks/cancel'), 'not those of other tasks')
    await page.click('.sequence-panel .row >> nth=0')
    t.match(await page.innerText('.detail'), /tools\/call[^]*mcp \d+[^]*client → runtime[^]*"method":"tools\/call"/)
    for (const part of ['sequence', 'frames'] as const) {
      await page.setViewportSize({ width: 1440, height: 900 })
      await page.click(`#tab-${part}`)
      for (const scheme of ['light', 'dark'] as const) {
        for (const width of [1440, 820, 390]) {
          await page.emulateMedia({ colorScheme: scheme })
          await page.setViewportSize({ width, height: 900 })
          if (await page.isHidden('#part')) await page.click('text=a coffee')
          await page.waitForSelector(`.${part}-panel .row`)
          if (process.env.SHOTS)
            await page.screenshot({ path: `${process.env.SHOTS}/mcp-${part}-${scheme}-${width}.png` })
          await page.evaluate(`${AXE}; 0`)
          t.strictSame(
            await page.evaluate(
              "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => `${id}: ${nodes[0].target}`))"
            ),
            [],
            `${part}, ${scheme}, ${width}`
          )
          t.ok(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), 'nothing is too wide')
        }
      }
    }
    await page.setViewportSize({ width: 1440, height: 900 })
    await page.click('#tab-sequence')
    await page.click('text=MCP calls')
    await until(async () => !(await texts(page, '.step-words')).includes('tools/call'))
    t.strictSame(troubles, [])
  }
)
