import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'
import type { AgentCard, AgentInterface } from '../../../machines/protocol/card.ts'
import { WEBSOCKET_BINDING } from '../../../machines/protocol/uris.ts'

/** A card as an agent may have it. */
export const CARD: AgentCard = {
  name: 'Pretended',
  description: '',
  version: '1.0.0',
  supportedInterfaces: [{ url: 'ws://127.0.0.1:9/', protocolBinding: WEBSOCKET_BINDING, protocolVersion: '1.0' }],
  capabilities: {},
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: []
}

/** A server that is no agent: it keeps what a client sends, and answers each request with a task that has ended. */
export interface Pretended {
  readonly url: string
  readonly cardUrl: string
  /** The requests that came, as JSON. */
  readonly frames: readonly object[]
}

/** Pretends to be an agent until the test ends. Without interfaces the card lists its own address, with the tenant. */
export async function pretend(t: Test, tenant?: string, interfaces?: readonly AgentInterface[]): Promise<Pretended> {
  const frames: object[] = []
  const server = createServer((_, response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify(card))
  )
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', socket =>
    socket.on('message', (data: Buffer) => {
      const frame = JSON.parse(data.toString('utf8')) as { id?: unknown; method?: string; params?: { id?: string } }
      frames.push(frame)
      const task = { id: frame.params?.id ?? 'none', status: { state: 'TASK_STATE_COMPLETED' } }
      socket.send(JSON.stringify({ jsonrpc: '2.0', id: frame.id, result: frame.method === 'ping' ? {} : task }))
    })
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.close()
    server.closeAllConnections()
  })
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const own = {
    url: `ws://${host}/`,
    protocolBinding: WEBSOCKET_BINDING,
    protocolVersion: '1.0',
    ...(tenant !== undefined && { tenant })
  }
  const card = { ...CARD, supportedInterfaces: interfaces ?? [own] }
  return { url: own.url, cardUrl: `http://${host}/`, frames }
}
