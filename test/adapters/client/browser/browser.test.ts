import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { normalize } from 'node:path'
import t, { type Test } from 'tap'
import { emit, fromPromise } from 'xstate'
import { apiKey } from '../../../../adapters/auth/index.ts'
import { serve } from '../../../../adapters/serve/serve.ts'
import { RELIABILITY_EXTENSION } from '../../../../machines/protocol/uris.ts'
import { createRuntime, defineAgent, progress, setupWork, text } from '../../../../runtime/index.ts'
import { CHROMIUM, openPage } from '../../../fixtures/pages/chromium.ts'
import { cuttingProxy } from '../../../fixtures/network/cutting-proxy.ts'
import { deferred } from '../../../fixtures/runtime/runtime-helpers.ts'
import { httpAgent, reliable, stream } from '../../../fixtures/peers/scripted-http.ts'

/** The page loads the client as the package has it for browsers, without a bundler. */
const PAGE = `<!doctype html>
<script type="module">
  import { connect } from '/dist/browser/client.js'
  window.talk = async (url, words, headers, credentials) => {
    window.states = []
    window.words = []
    const client = window.client = await connect(url, { random: () => 0, ...(headers && { headers }), ...(credentials && { credentials }) })
    for (const state of ['lost', 'open', 'closed']) client.on(state, () => window.states.push(state))
    const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: words }] }
    for await (const event of client.sendStreamingMessage({ message })) {
      const said = event.statusUpdate?.status.message?.parts[0].text ?? event.artifactUpdate?.artifact.parts[0].text
      if (said) window.words.push(said)
    }
    await client.close()
    return { states: window.states, words: window.words, binding: client.binding }
  }
</script>`

let gate = deferred()

/** Says that it began, and goes on when the test says so. */
const waiter = setupWork({ actors: { gate: fromPromise(() => gate.promise) } }).createMachine({
  initial: 'waiting',
  states: {
    waiting: { entry: emit(progress('waiting')), invoke: { src: 'gate', onDone: 'done' } },
    done: { type: 'final' }
  },
  output: () => ({ artifact: text('done') })
})

/** Serves the page, and the folder that it loads its modules from. */
async function servePage(t: Test): Promise<string> {
  const server = createServer((request, response) => {
    const path = normalize((request.url ?? '/').split('?')[0] ?? '/')
    const isModule = /^\/dist\/browser\/[\w-]+\.js$/.test(path) && existsSync(`.${path}`)
    if (path === '/') response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)
    else if (isModule) response.writeHead(200, { 'content-type': 'text/javascript' }).end(readFileSync(`.${path}`))
    else response.writeHead(404).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

await t.test('the client in a browser', { skip: CHROMIUM === undefined && 'no Chromium on this machine' }, async t => {
  const origin = await servePage(t)
  const runtime = createRuntime({ agent: defineAgent({ card: { name: 'Waiter' }, work: waiter }), origins: [origin] })
  t.teardown(() => runtime.close())
  const served = await serve(runtime, { port: 0, http: false })
  t.teardown(() => served.close())
  const page = await openPage(t)
  await page.goto(origin)
  await page.waitForFunction('window.talk')

  await t.test('streams a task from the real server', async t => {
    gate.resolve()
    t.match(await page.evaluate(`window.talk('${served.url}', 'go')`), { words: ['waiting', 'done'] })
  })

  await t.test('reconnects by itself after a lost connection', async t => {
    const proxy = await cuttingProxy(Number(new URL(served.url).port))
    t.teardown(() => proxy.close())
    gate = deferred()
    const talk = page.evaluate(`window.talk('ws://127.0.0.1:${proxy.port}/', 'go')`)
    await page.waitForFunction("window.words?.includes('waiting')")
    proxy.cutAll()
    await page.waitForFunction("window.states.includes('open')")
    gate.resolve()
    t.match(await talk, { words: ['waiting', 'done'], states: ['lost', 'open', 'closed'] })
  })

  await t.test('speaks JSON-RPC over HTTP with headers, and resumes a broken stream', async t => {
    const event = (more: object, generation: number) => ({
      ...more,
      metadata: { [RELIABILITY_EXTENSION]: { generation } }
    })
    const status = (state: string, words: string, generation: number) => {
      const message = { messageId: words, role: 'ROLE_AGENT', parts: [{ text: words }] }
      return {
        statusUpdate: event(
          { taskId: 't', contextId: 'c', status: { state: `TASK_STATE_${state}`, message } },
          generation
        )
      }
    }
    const agent = await httpAgent(t, { others: ['GRPC'], origin })
    agent.script(
      stream(
        [
          { task: event({ id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }, 1) },
          status('WORKING', 'waiting', 2)
        ],
        'cut',
        reliable
      ),
      stream([status('COMPLETED', 'done', 3)], 'end', reliable)
    )
    const talk = page.evaluate(`window.talk('${agent.url}', 'go', { authorization: 'Bearer anna' })`)
    await page.waitForFunction(`window.client?.url === '${agent.url}/agent' && window.words.includes('waiting')`)
    agent.heard('working: waiting')
    t.match(await talk, { words: ['waiting', 'done'], states: ['lost', 'open', 'closed'], binding: 'JSONRPC' })
    t.match(
      agent.asked.map(({ headers }) => headers),
      [{ authorization: 'Bearer anna', 'a2a-version': '1.0' }, { 'last-event-id': '2' }]
    )
  })

  await t.test('speaks REST with an agent that offers nothing else', async t => {
    const at = await serve(runtime, { port: 0 })
    t.teardown(() => at.close())
    gate.resolve()
    const { url } = await httpAgent(t, { binding: 'HTTP+JSON', address: at.url, origin })
    t.match(await page.evaluate(`window.talk('${url}', 'go')`), { words: ['waiting', 'done'], binding: 'HTTP+JSON' })
  })

  await t.test('sends headers and keys to an agent that also offers a WebSocket', async t => {
    const authenticate = apiKey({ keys: { anna: 'secret-of-16-chars' } })
    const known = createRuntime({
      agent: defineAgent({ card: { name: 'Known' }, work: async () => ({ artifact: 'hello' }) }),
      origins: [origin],
      authenticate
    })
    t.teardown(() => known.close())
    const at = await serve(known, { port: 0 })
    t.teardown(() => at.close())
    for (const url of [at.url, at.url.replace('http', 'ws')]) {
      t.match(await page.evaluate(`window.talk('${url}', 'go', { 'x-api-key': 'secret-of-16-chars' })`), {
        words: ['hello'],
        binding: 'JSONRPC'
      })
      t.match(await page.evaluate(`window.talk('${url}', 'go', undefined, { apiKey: 'secret-of-16-chars' })`), {
        words: ['hello'],
        binding: 'JSONRPC'
      })
      t.match(
        await page.evaluate(
          `window.talk('${url}', 'go', undefined, { apiKey: 'wrong' }).catch(error => error.message)`
        ),
        'It refused those that were sent in x-api-key.'
      )
    }
  })

  await t.test('is refused from a page of an origin that is not allowed', async t => {
    const strict = createRuntime({ agent: defineAgent({ card: { name: 'Waiter' }, work: waiter }) })
    t.teardown(() => strict.close())
    const closed = await serve(strict, { port: 0, http: false })
    t.teardown(() => closed.close())
    t.match(await page.evaluate(`window.talk('${closed.url}', 'go').catch(error => error.message)`), /Nobody answers/)
  })
})
