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
/** The size of the picture, in CSS pixels. */
const SIZE = { width: 1236, height: 874 }

/** What is said to the agent of `npm start`. */
const SAID = ['a sailboat', 'make it red']

/** Talks to the agent on the page, and takes a picture of its first view, as WebP. */
async function photograph(page: Page, address: string): Promise<Buffer> {
  await page.setViewportSize(SIZE)
  await page.goto(address)
  await page.waitForSelector('.example-note')
  for (const words of SAID) {
    await page.fill('#composer', words)
    await page.press('#composer', 'Enter')
    await page.waitForSelector(`.task-title >> text=${words}`)
    await page.waitForSelector('.run-chosen .state-completed')
  }
  await page.waitForSelector('.artifact img >> nth=1')
  await page.waitForSelector('.story-run [data-state="sailboat.painted"].active')
  await page.evaluate("document.querySelector('.talk-box').scrollTo(0, 1e6)")
  await page.waitForSelector('.to-end', { state: 'detached' })
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
    const picture = await photograph(page, address)
    t.ok(picture.length < MOST_BYTES, `${picture.length} bytes`)
    if (process.argv.includes('write')) {
      mkdirSync(dirname(PICTURE), { recursive: true })
      writeFileSync(PICTURE, picture)
    }
    t.same(sizeOf(readFileSync(PICTURE)), sizeOf(picture), 'npm run picture takes it again')
  }
)
