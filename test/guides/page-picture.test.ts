import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import type { Page } from 'playwright-core'
import t from 'tap'
import { CHROMIUM, openPage } from '../fixtures/pages/chromium.ts'

/** The picture of the page in the README: `npm run picture` writes it. */
const PICTURE = 'docs/pictures/page.webp'
const MOST_BYTES = 150_000
/** Each half of the picture, in CSS pixels. The page has its narrow layout, without the list of tasks. */
const [WIDTH, HEIGHT, GAP] = [600, 850, 12]
const SIZE = { width: 2 * WIDTH + 3 * GAP, height: HEIGHT + 2 * GAP }

/** What is said to the agent of `npm start`. */
const SAID = ['a sailboat', 'make it red']

/** Talks to the agent on the page, and takes a picture of the talk and one of the lit chart. */
async function photograph(page: Page, address: string): Promise<Buffer[]> {
  await page.goto(address)
  await page.waitForSelector('.link-there')
  await page.click('#tab-talk')
  for (const [i, words] of SAID.entries()) {
    await page.fill('#composer', words)
    await page.press('#composer', 'Enter')
    await page.waitForSelector(`.artifact img >> nth=${i}`)
  }
  await page.setViewportSize({ width: WIDTH, height: HEIGHT })
  await page.evaluate("document.querySelector('.talk-box').scrollTo(0, 1e6)")
  await page.waitForSelector('.to-end', { state: 'detached' })
  const talk = await page.screenshot()
  await page.click('#tab-chart')
  await page.waitForSelector('[data-state="sailboat.painted"].active')
  await page.click('text=Fit')
  return [talk, await page.screenshot()]
}

/** Both pictures side by side, as WebP. */
async function sideBySide(page: Page, pictures: readonly Buffer[]): Promise<Buffer> {
  const style = `<style>body{margin:0;padding:${GAP}px;display:flex;gap:${GAP}px;background:#fff}img{width:${WIDTH}px;height:${HEIGHT}px;border-radius:8px;box-shadow:0 0 0 1px #d5dae1}</style>`
  await page.setViewportSize(SIZE)
  await page.setContent(
    style + pictures.map(picture => `<img src="data:image/png;base64,${picture.toString('base64')}">`).join('')
  )
  await page.waitForFunction('[...document.images].every(image => image.complete)')
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 80 })
  return Buffer.from(data, 'base64')
}

/** The size in the header of a lossy WebP. */
function sizeOf(webp: Buffer): { width: number; height: number } {
  const at = webp.indexOf('VP8 ')
  return { width: webp.readUInt16LE(at + 14) & 0x3fff, height: webp.readUInt16LE(at + 16) & 0x3fff }
}

await t.test(
  'the picture of the page in the README is that of npm start',
  { skip: CHROMIUM === undefined && 'no Chromium on this machine' },
  async t => {
    const agent = spawn(
      process.execPath,
      ['dist/adapters/cli/bin.js', 'dev', 'examples/sailboat.ts', '--port', '0', '--json'],
      { stdio: ['ignore', 'pipe', 'ignore'] }
    )
    t.teardown(() => agent.kill('SIGKILL'))
    const [line] = (await once(createInterface(agent.stdout), 'line')) as [string]
    const { page: address } = JSON.parse(line) as { page: string }
    const page = await openPage(t, { deviceScaleFactor: 1.5 })
    const picture = await sideBySide(page, await photograph(page, address))
    t.ok(picture.length < MOST_BYTES, `${picture.length} bytes`)
    if (process.argv.includes('write')) {
      mkdirSync(dirname(PICTURE), { recursive: true })
      writeFileSync(PICTURE, picture)
    }
    t.same(sizeOf(readFileSync(PICTURE)), sizeOf(picture), 'npm run picture takes it again')
  }
)
