import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { serve } from '../../adapters/serve/serve.ts'
import barista from '../../examples/barista.ts'
import gardener from '../../examples/negotiate.ts'
import { createRuntime, type Agent } from '../../runtime/index.ts'
import { CHROMIUM, openPage } from '../fixtures/pages/chromium.ts'
import { recordingLogger } from '../fixtures/runtime/runtime-helpers.ts'

const FOLDER = resolve('examples/copilot')
const VITE = join(FOLDER, 'node_modules', 'vite', 'bin', 'vite.js')
const PRELOAD = resolve('test/fixtures/network/loopback-only.cjs')

const skip =
  CHROMIUM === undefined
    ? 'no Chromium on this machine'
    : !existsSync(VITE) && 'no packages: npm ci --prefix examples/copilot --ignore-scripts'

/** The URL of an agent over AG-UI. */
async function served(t: Test, agent: Agent): Promise<string> {
  const runtime = createRuntime({ agent, origins: ['loopback'], logger: recordingLogger().logger })
  const { agUiUrl, close } = await serve(runtime, { port: 0, agui: true })
  t.teardown(async () => {
    await close()
    await runtime.close()
  })
  return String(agUiUrl)
}

/** The built page, served by vite in processes that reach no other machine, and the hosts that they wanted to reach. */
async function builtPage(t: Test): Promise<{ readonly url: string; readonly dialled: () => string }> {
  const out = mkdtempSync(join(tmpdir(), 'taskchart-copilot-'))
  const log = join(out, 'dialled')
  writeFileSync(log, '')
  const dist = join(out, 'dist')
  const options = { cwd: FOLDER, env: { ...process.env, LOOPBACK_LOG: log, DO_NOT_TRACK: '1', NO_COLOR: '1' } }
  const vite = (...args: readonly string[]) => ['--require', PRELOAD, VITE, ...args, '--outDir', dist]
  const built = spawnSync(process.execPath, vite('build', '--emptyOutDir'), options)
  t.equal(built.status, 0, String(built.stderr))
  const server = spawn(process.execPath, vite('preview', '--host', '127.0.0.1', '--port', '0'), {
    ...options,
    stdio: ['ignore', 'pipe', 'inherit']
  })
  t.teardown(async () => {
    server.kill()
    await once(server, 'exit')
    rmSync(out, { recursive: true })
  })
  for await (const line of createInterface(server.stdout)) {
    const [url] = /http:\/\/127\.0\.0\.1:\d+\//.exec(line) ?? []
    if (url !== undefined) return { url, dialled: () => readFileSync(log, 'utf8') }
  }
  throw new Error('vite preview has ended.')
}

/** Notes each address of another machine that a page requests, or that its policy keeps it from. */
async function watch(page: Page): Promise<string[]> {
  const foreign: string[] = []
  page.on('request', request => {
    const { protocol, hostname } = new URL(request.url())
    if (/^(?:http|ws)/.test(protocol) && hostname !== '127.0.0.1') foreign.push(hostname)
  })
  await page.exposeFunction('noteForeign', (url: string) => foreign.push(url))
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', ({ blockedURI }) => /^(?:http|ws)/.test(blockedURI) && noteForeign(blockedURI))"
  )
  return foreign
}

async function say(page: Page, words: string): Promise<void> {
  await page.fill('textarea', words)
  await page.press('textarea', 'Enter')
}

await t.test(
  'the page with CopilotKit talks to the barista and the gardener, and to no other machine',
  { skip },
  async t => {
    const { url, dialled } = await builtPage(t)
    const agents = new URLSearchParams({ barista: await served(t, barista), gardener: await served(t, gardener) })
    const page = await openPage(t)
    const foreign = await watch(page)

    await page.goto(`${url}?${agents.toString()}#barista`)
    await say(page, 'a coffee')
    await page.selectOption('.card select', 'large')
    await page.reload()
    await page.selectOption('.card select', 'large')
    await page.click('text=Answer')
    await page.waitForSelector('figure >> text=a large coffee')
    await page.waitForSelector('text=Task: completed')
    t.equal(await page.locator('.card').count(), 0, 'the question is answered')

    await page.click('nav >> text=gardener')
    await say(page, 'Mow my lawn')
    await page.fill('.card input[name=euros]', '40')
    await page.click('text=Counter')
    await page.waitForSelector('.card >> nth=1')
    await page.locator('.card').last().locator('text=Accept').click()
    await page.waitForSelector('figure >> text=One lawn, mown for 50 euros.')

    t.strictSame(foreign, [], 'the page has asked this machine alone')
    t.equal(dialled(), '', 'so have the processes that build and serve it')
    await page.evaluate("fetch('https://outside.example/').catch(() => undefined)")
    await page.waitForFunction('true')
    t.strictSame(foreign, ['https://outside.example/'], 'another address would have been seen')
    const escaping = spawnSync(
      process.execPath,
      ['--require', PRELOAD, '-e', "require('node:net').connect(443, '192.0.2.1')"],
      {
        env: { ...process.env, LOOPBACK_LOG: join(mkdtempSync(join(tmpdir(), 'taskchart-copilot-')), 'dialled') }
      }
    )
    t.match(String(escaping.stderr), /not with 192\.0\.2\.1/, 'and so would another destination')
  }
)
