// In an empty project with the packed package: builds a page with vite, esbuild and webpack, and runs each in Chromium against a real
// server. Prints how much of the client each page loads, and fails above the limit. Then runs the example's page, with a question and a
// hostile picture, as wide as a desk and as a phone. Arguments: the clone, for playwright-core, and the folder of the example's page.
import { createServer } from 'node:http'
import { mkdirSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build as viteBuild } from 'vite'
import { build as esbuild } from 'esbuild'
import webpack from 'webpack'
import { artifact, createRuntime, defineAgent, inputRequired, text } from 'taskchart'
import { serve } from 'taskchart/http'
import { z } from 'zod'

/** Bytes of gzip that a page may load. */
const MOST = { WEBSOCKET: 29_000, JSONRPC: 32_000 }
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(path => existsSync(path))
const [clone, example] = process.argv.slice(2)
const { chromium } = createRequire(join(clone, 'package.json'))('playwright-core')

const SCRIPT = `import { connect } from 'taskchart/client'
window.ask = async (url, binding) => {
  const client = await connect(url, { bindings: [binding] })
  const answers = []
  for await (const event of client.sendStreamingMessage({ message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }] } })) {
    if ('artifactUpdate' in event) answers.push(event.artifactUpdate.artifact.parts[0].text)
  }
  await client.close()
  return answers.join() + ' over ' + client.binding
}
`
writeFileSync('page.js', SCRIPT)
writeFileSync('index.html', '<!doctype html><script type="module" src="/page.js"></script>')

const cwd = process.cwd()
const BUILDERS = {
  vite: async outDir => {
    await viteBuild({ root: cwd, logLevel: 'warn', build: { outDir } })
  },
  esbuild: async outdir => {
    await esbuild({ entryPoints: ['page.js'], bundle: true, splitting: true, format: 'esm', minify: true, outdir, logLevel: 'warning' })
  },
  webpack: async path => {
    const compiler = webpack({ mode: 'production', entry: './page.js', output: { path, filename: 'page.js', publicPath: 'auto' }, performance: false })
    const stats = await new Promise((resolve, reject) => compiler.run((error, stats) => (error ? reject(error) : resolve(stats))))
    if (stats.hasErrors() || stats.hasWarnings()) throw new Error(stats.toString({ all: false, errors: true, warnings: true }))
  }
}

const TYPES = { js: 'text/javascript', css: 'text/css' }
let served = ''
const loaded = new Map()
const files = createServer((request, response) => {
  const path = join(served, new URL(request.url, 'http://localhost').pathname.replace(/\/$/, '/index.html'))
  if (!existsSync(path)) return response.writeHead(404).end()
  const body = readFileSync(path)
  if (path.endsWith('.js')) loaded.set(path, gzipSync(body).length)
  response.writeHead(200, { 'content-type': TYPES[path.split('.').at(-1)] ?? 'text/html', 'cache-control': 'no-store' }).end(body)
})
await new Promise(resolve => files.listen(0, '127.0.0.1', resolve))
const origin = `http://127.0.0.1:${files.address().port}`
const runtime = createRuntime({ agent: defineAgent({ card: { name: 'Page' }, work: async () => ({ artifact: text('It works') }) }), origins: [origin] })
const agent = await serve(runtime, { port: 0 })
const SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="30" height="30"><script>parent.document.title = "hostile"</script></svg>'
const askingRuntime = createRuntime({
  origins: [origin],
  agent: defineAgent({
    card: { name: 'Asks' },
    work: async function* () {
      const { colour } = yield* inputRequired('Which colour?', { schema: z.object({ colour: z.enum(['red', 'blue']) }) })
      yield artifact({ name: 'boat', parts: [{ raw: Buffer.from(SVG).toString('base64'), mediaType: 'image/svg+xml' }, { url: 'javascript:document.title="hostile"' }] })
      return { message: `It is ${colour}.` }
    }
  })
})
const asking = await serve(askingRuntime, { port: 0 })
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'] })

try {
  for (const [name, build] of Object.entries(BUILDERS)) {
    served = join(cwd, `built-by-${name}`)
    mkdirSync(served)
    await build(served)
    if (name !== 'vite') writeFileSync(join(served, 'index.html'), '<!doctype html><script type="module" src="/page.js"></script>')
    for (const binding of ['WEBSOCKET', 'JSONRPC']) {
      loaded.clear()
      const page = await browser.newPage()
      await page.goto(`${origin}/`)
      await page.waitForFunction('window.ask')
      const answer = await page.evaluate(([url, binding]) => window.ask(url, binding), [agent.url.replace(/^ws/, 'http'), binding])
      await page.close()
      const bytes = [...loaded.values()].reduce((sum, size) => sum + size, 0)
      console.log(`${name}: ${answer}, ${(bytes / 1000).toFixed(1)} kB gzip in ${loaded.size} files`)
      if (answer !== `It works over ${binding}`) throw new Error(`the page built by ${name} answered ${answer}`)
      if (bytes > MOST[binding]) throw new Error(`the page built by ${name} loads ${bytes} bytes; at most ${MOST[binding]} are allowed`)
    }
  }
  served = join(cwd, example)
  for (const width of [1440, 390]) {
    const page = await browser.newPage({ viewport: { width, height: 844 } })
    const errors = []
    page.on('console', message => message.type() === 'error' && errors.push(message.text()))
    page.on('pageerror', error => errors.push(error.message))
    await page.goto(`${origin}/?agent=${encodeURIComponent(asking.url.replace(/^ws/, 'http'))}`)
    await page.fill('.say input', 'a boat')
    await page.click('.say button')
    await page.selectOption('fieldset select', { label: 'red' })
    await page.click('fieldset ~ .buttons button')
    await page.waitForSelector('text=It is red.')
    await page.reload()
    await page.waitForSelector('text=It is red.')
    await page.waitForFunction('document.querySelector("img")?.naturalWidth === 30')
    const [title, links, overflow] = await page.evaluate('[document.title, document.querySelectorAll("main a").length, document.documentElement.scrollWidth - innerWidth]')
    if (title === 'hostile' || links > 0 || overflow > 0 || errors.length > 0) throw new Error(`the example's page: ${JSON.stringify({ title, links, overflow, errors })}`)
    await page.close()
    console.log(`the example's page works ${width} pixels wide`)
  }
} finally {
  await browser.close()
  await asking.close()
  await askingRuntime.close()
  await agent.close()
  await runtime.close()
  files.close()
}
