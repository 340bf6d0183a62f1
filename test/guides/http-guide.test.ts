import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import { createAdaptorServer } from '@hono/node-server'
import type { Express } from 'express'
import type { Hono } from 'hono'
import t, { type Test } from 'tap'
import type { Handler } from '../../adapters/entry/connection.ts'
import { READER_STALL_MS } from '../../adapters/entry/connection.ts'
import { KEEP_ALIVE_MS } from '../../adapters/http/event-stream.ts'
import { AGENT_MODULE, openGuide } from '../fixtures/guides/compiled-guide.ts'
import { rpc } from '../fixtures/servers/http-agent.ts'
import { say } from '../fixtures/runtime/runtime-helpers.ts'

/** What the blocks say, and what they say here: a free port, and files of a project of Next.js. */
const REWRITTEN = [
  ['port: 4242', 'port: 0'],
  ["'@/agent'", "'./agent.ts'"],
  ["'@/agent-handler'", "'./block-4.ts'"],
  ['process.env.NEXT_RUNTIME', "process.env['NEXT_RUNTIME']"]
] as const

const guide = await openGuide(t, 'http', {
  change: (block, i) =>
    `${REWRITTEN.reduce((code, [written, here]) => code.replace(written, here), block)}${i === 0 ? 'export { served }\n' : ''}`,
  files: { 'agent.ts': AGENT_MODULE }
})

async function works(t: Test, url: string): Promise<void> {
  t.match((await rpc(url, 'SendMessage', say('Ada'))).json, {
    result: { task: { status: { state: 'TASK_STATE_COMPLETED' } } }
  })
}

await t.test('a runtime is served in three lines', async t => {
  const { served } = await guide.load<{ served: { url: string; close: () => Promise<void> } }>('block-0.ts')
  t.teardown(() => served.close())
  await works(t, served.url)
})

await t.test('the handler works in Hono and in Express as the guide mounts it', async t => {
  const { app: hono } = await guide.load<{ app: Hono }>('block-1.ts')
  const { app: express } = await guide.load<{ app: Express }>('block-2.ts')
  const servers = [
    createAdaptorServer({ fetch: hono.fetch, overrideGlobalObjects: false }) as Server,
    createServer(express)
  ]
  for (const server of servers) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    await works(t, `http://127.0.0.1:${(server.address() as { port: number }).port}/agent`)
  }
})

await t.test('the handler works as a route of Next.js', async t => {
  const route = await guide.load<Record<'DELETE' | 'GET' | 'OPTIONS' | 'POST', Handler>>('block-3.ts')
  const context = { params: Promise.resolve({ path: ['tasks'] }) }
  t.match(
    await (await route.GET(new Request('http://localhost:3000/agent/.well-known/agent-card.json'), context)).json(),
    { supportedInterfaces: [{ url: 'http://localhost:3000/agent' }, { url: 'http://localhost:3000/agent' }] }
  )
  const sent = new Request('http://localhost:3000/agent', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: say('Ada') })
  })
  t.match(await (await route.POST(sent, context)).json(), {
    result: { task: { status: { state: 'TASK_STATE_COMPLETED' } } }
  })
  t.equal((await route.OPTIONS(new Request('http://localhost:3000/agent', { method: 'OPTIONS' }), context)).status, 204)
  t.equal(
    (await route.DELETE(new Request('http://localhost:3000/agent/tasks/t', { method: 'DELETE' }), context)).status,
    405
  )
})

await t.test('the card alone is mounted as the guide shows', async t => {
  const { app } = await guide.load<{ app: Express }>('block-6.ts')
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const response = await fetch(
    `http://127.0.0.1:${(server.address() as { port: number }).port}/.well-known/agent-card.json`
  )
  t.match(await response.json(), { supportedInterfaces: [{ url: 'https://agent.example/a2a' }] })
  t.match(response.headers.get('cache-control'), /max-age=/)
})

await t.test('an app answers health checks as the guide shows', async t => {
  const { app } = await guide.load<{ app: Hono }>('block-7.ts')
  for (const path of ['/healthz', '/readyz']) t.equal((await app.request(path)).status, 200, path)
})

await t.test('the numbers of the guide match the code', async t => {
  t.match(guide.words, `A comment comes every ${KEEP_ALIVE_MS / 1000} seconds.`)
  t.match(guide.words, `reads less than 64 KiB in ${READER_STALL_MS / 1000} seconds`)
})
