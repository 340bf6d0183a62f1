import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { once } from 'node:events'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createAdaptorServer } from '@hono/node-server'
import type { Express } from 'express'
import type { Hono } from 'hono'
import t, { type Test } from 'tap'
import { tsImport } from 'tsx/esm/api'
import { KEEP_ALIVE_MS, STUCK_MS } from '../adapters/http/event-stream.ts'
import { compilerOutput, guideConfig } from './fixtures/compiled-guide.ts'
import { rpc } from './fixtures/http-agent.ts'
import { say } from './fixtures/runtime-helpers.ts'

const guide = readFileSync('docs/http.md', 'utf8')
const blocks = Array.from(guide.matchAll(/^```ts\n([\s\S]*?)^```$/gm), ([, text = '']) => text.replace('port: 4242', 'port: 0'))
const agent = "import { defineAgent } from 'taskchart'\n\nexport default defineAgent({ card: { name: 'Agent' }, work: async () => ({ artifact: 'done' }) })\n"

const folder = t.testdir(
  Object.fromEntries([
    ...blocks.map((text, i) => [`block-${i}.ts`, i === 0 ? `${text}export { served }\n` : text]),
    ['agent.ts', agent],
    ['tsconfig.json', guideConfig(t.testdirName)]
  ])
)

const load = (i: number): Promise<unknown> => tsImport(pathToFileURL(join(folder, `block-${i}.ts`)).href, import.meta.url)

async function works(t: Test, url: string): Promise<void> {
  t.match((await rpc(url, 'SendMessage', say('Ada'))).json, { result: { task: { status: { state: 'TASK_STATE_COMPLETED' } } } })
}

await t.test('every block of the guide compiles under the strictest settings', async t => {
  t.equal(blocks.length, 4)
  t.equal(await compilerOutput(folder), '')
})

await t.test('a runtime is served in three lines', async t => {
  const { served } = (await load(0)) as { served: { url: string; close: () => Promise<void> } }
  t.teardown(() => served.close())
  await works(t, served.url)
})

await t.test('the handler works in Hono and in Express as the guide mounts it', async t => {
  const { app: hono } = (await load(1)) as { app: Hono }
  const { app: express } = (await load(2)) as { app: Express }
  const servers = [createAdaptorServer({ fetch: hono.fetch, overrideGlobalObjects: false }) as Server, createServer(express)]
  for (const server of servers) {
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => server.close())
    await works(t, `http://127.0.0.1:${(server.address() as { port: number }).port}/agent`)
  }
})

await t.test('the card alone is mounted as the guide has it', async t => {
  const { app } = (await load(3)) as { app: Express }
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const response = await fetch(`http://127.0.0.1:${(server.address() as { port: number }).port}/.well-known/agent-card.json`)
  t.match(await response.json(), { supportedInterfaces: [{ url: 'https://agent.example/a2a' }] })
  t.match(response.headers.get('cache-control'), /max-age=/)
})

await t.test('the numbers of the guide are those of the code', async t => {
  t.match(guide.replaceAll(/\s+/g, ' '), `A comment comes every ${KEEP_ALIVE_MS / 1000} seconds.`)
  t.match(guide.replaceAll(/\s+/g, ' '), `reads less than 64 KiB in ${STUCK_MS / 1000} seconds`)
})
