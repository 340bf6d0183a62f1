import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { ClientFactory } from '@a2a-js/sdk/client'
import { SendMessageRequest, Task } from '@a2a-js/sdk'
import { createAdaptorServer, getRequestListener } from '@hono/node-server'
import express from 'express'
import { fastify } from 'fastify'
import { Hono } from 'hono'
import t, { type Test } from 'tap'
import { connect } from '../../../adapters/client/connect.ts'
import type { Handler } from '../../../adapters/entry/connection.ts'
import { httpHandler } from '../../../adapters/http/handler.ts'
import { dialect03 } from '../../../adapters/legacy/index.ts'
import type { AgentCard } from '../../../machines/protocol/card.ts'
import { AGENT_CARD_PATH, WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'
import { echo } from '../../fixtures/runtime/agents.ts'
import { brief, collect, say, start } from '../../fixtures/runtime/runtime-helpers.ts'
import { ask, serveAll } from '../../fixtures/servers/http-agent.ts'
import { JsonSocket } from '../../fixtures/servers/served-agent.ts'

/** Listens on a free port until the test ends. Resolves with the origin. */
async function listening(t: Test, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

const fetching = (answer: (request: Request) => Response | Promise<Response>) =>
  createAdaptorServer({ fetch: answer, overrideGlobalObjects: false }) as Server

/**
 * A route handler of Next.js: it is called with the segments of the route, and a path with a slash at its end is
 * redirected first.
 */
function nextServer(handler: Handler): Server {
  return fetching(request => {
    const { pathname, search } = new URL(request.url)
    if (pathname === '/' || !pathname.endsWith('/'))
      return handler(request, { params: Promise.resolve({ path: pathname.split('/') }) })
    return new Response(null, { status: 308, headers: { location: `${pathname.replace(/\/+$/, '')}${search}` } })
  })
}

/** Apps that serve a handler at its path, as docs/http.md mounts it. Each resolves with its origin. */
const APPS: Record<string, (t: Test, handler: Handler, path: string) => Promise<string>> = {
  'node:http': (t, handler) => listening(t, createServer(listenerOf(handler))),
  'Next.js': (t, handler) => listening(t, nextServer(handler)),
  Hono: (t, handler, path) => listening(t, fetching(new Hono().all(`${path}/*`, ({ req }) => handler(req.raw)).fetch)),
  Express: (t, handler, path) =>
    listening(t, createServer(express().all(new RegExp(`^${path}(/|$)`), listenerOf(handler)))),
  Fastify: (t, handler, path) => {
    const app = fastify()
    app.removeAllContentTypeParsers()
    app.addContentTypeParser('*', (_request, _payload, done) => done(null))
    for (const each of [path === '' ? '/' : path, `${path}/*`]) {
      app.all(each, (request, reply) => {
        reply.hijack()
        listenerOf(handler)(request.raw, reply.raw)
      })
    }
    t.teardown(() => app.close())
    return app.listen({ port: 0, host: '127.0.0.1' })
  }
}

function listenerOf(handler: Handler): (request: IncomingMessage, response: ServerResponse) => void {
  const listener = getRequestListener(handler, { overrideGlobalObjects: false })
  return (request, response) => void listener(request, response)
}

/**
 * Calls an agent by every client: each finds it from its URL with and without a slash, and below the path from its
 * card.
 */
async function answersAll(t: Test, url: string): Promise<void> {
  for (const from of [url, `${url}/`, `${url}${AGENT_CARD_PATH}`]) {
    for (const binding of ['JSONRPC', 'HTTP+JSON'] as const) {
      const client = await connect(from, { bindings: [binding] })
      t.match(
        await collect(client.sendStreamingMessage(say('a'))).then(events => events.map(brief)),
        /completed/,
        `${binding} from ${from}`
      )
      await client.close()
    }
  }
  const official = await new ClientFactory().createFromUrl(`${url}/`)
  const answer = await official.sendMessage(SendMessageRequest.fromJSON(say('a')))
  t.match(Task.toJSON(answer as Task), { status: { state: 'TASK_STATE_COMPLETED' } }, 'the official client')
  t.match((await ask(`${url}/tasks?pageSize=1`)).json, { pageSize: 1 })
}

const addressesOf = ({ supportedInterfaces }: Pick<AgentCard, 'supportedInterfaces'>) =>
  supportedInterfaces.map(({ url }) => url)

for (const [name, mount] of Object.entries(APPS)) {
  await t.test(`an agent in ${name} is called at the address in its card, at the root and below a path`, async t => {
    for (const path of ['', '/agent', '/of/many/agent']) {
      for (const end of path === '' ? ['/'] : ['', '/']) {
        const { runtime } = start(t, { work: echo })
        const origin = await mount(
          t,
          httpHandler(runtime, { path: `${path}${end}`, dialects: [dialect03(runtime)] }),
          path
        )
        const { json } = await ask(`${origin}${path}${AGENT_CARD_PATH}`)
        const [first, rest] = [path === '' ? `${origin}/` : `${origin}${path}`, `${origin}${path}`]
        t.strictSame(addressesOf(json as unknown as AgentCard), [first, rest, first, rest], `${path}${end}`)
        t.match((await ask(first)).text, `href="${origin}${path}${AGENT_CARD_PATH}"`, 'the page leads to the card')
        await answersAll(t, `${origin}${path}`)
      }
    }
  })
}

await t.test(
  'an agent that serve puts below a path has one address in every place, and answers with a slash at the end too',
  async t => {
    for (const path of ['/agent', '/agent/']) {
      const { url, runtime } = await serveAll(t, { work: echo }, {}, { path })
      t.match(url, /^http:\/\/127\.0\.0\.1:\d+\/agent$/, path)
      const socketUrl = url.replace('http', 'ws')
      const { json } = await ask(`${url}${AGENT_CARD_PATH}`)
      t.strictSame(new Set(addressesOf(json as unknown as AgentCard)), new Set([socketUrl, url]))
      t.match(json['supportedInterfaces'], [{ url: socketUrl, protocolBinding: WEBSOCKET_BINDING }])
      await answersAll(t, url)
      for (const address of [socketUrl, `${socketUrl}/`]) {
        const client = await connect(address)
        t.match(await client.sendMessage(say('a')), { task: { status: { state: 'TASK_STATE_COMPLETED' } } }, address)
        await client.close()
      }
      await t.rejects(JsonSocket.open(t, `${socketUrl}//`), 'one slash at most')
      await runtime.close()
    }
  }
)

await t.test('an address that the app gives is in the card as it is written', async t => {
  const { runtime } = start(t, { work: echo })
  for (const url of ['https://agent.example/agent', 'https://agent.example/agent/']) {
    const origin = await listening(t, nextServer(httpHandler(runtime, { path: '/agent', url })))
    t.strictSame(addressesOf((await ask(`${origin}/agent${AGENT_CARD_PATH}`)).json as unknown as AgentCard), [
      url,
      'https://agent.example/agent'
    ])
  }
})
