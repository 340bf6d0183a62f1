import { Agent, request, type IncomingMessage } from 'node:http'
import type { Load } from './load.ts'

/** Headers of every request. */
type Headers = Readonly<Record<string, string>>

/** Load over HTTP/1.1 on so many connections that are kept alive, each carrying one request at a time. */
export async function httpLoad(port: number, connections: number, headers: Headers = {}): Promise<Load> {
  const { post, close } = client(port, connections, headers)
  let lastId = 0
  const send = (method: string, params: unknown) => {
    lastId += 1
    return post('/', { jsonrpc: '2.0', id: lastId, method, params })
  }

  return {
    call: async (method, params) => {
      const text = await textOf(await send(method, params))
      if (!text.includes('"result":')) throw new Error(text)
      return text
    },
    stream: async (method, params, see) => {
      const response = await send(method, params)
      return new Promise((resolve, reject) => {
        let rest = ''
        response.setEncoding('utf8').on('error', reject).on('end', resolve)
        response.on('data', (chunk: string) => {
          const events = `${rest}${chunk}`.split('\n\n')
          rest = events.pop() ?? ''
          for (const event of events) see(event)
        })
      })
    },
    close
  }
}

const MCP = 'io.modelcontextprotocol/'
const MCP_VERSION = '2026-07-28'

/** What a client of MCP says with each request: it knows tasks, and shows forms. */
const MCP_META = {
  [`${MCP}protocolVersion`]: MCP_VERSION,
  [`${MCP}clientInfo`]: { name: 'bench', version: '1' },
  [`${MCP}clientCapabilities`]: { elicitation: { form: {} }, extensions: { [`${MCP}tasks`]: {} } }
}

/** The same over MCP, for a client that knows tasks. */
export async function mcpLoad(port: number, connections: number, own: Headers = {}): Promise<Load> {
  const { post, close } = client(port, connections, own)
  let lastId = 0
  return {
    call: async (method, given) => {
      lastId += 1
      const params: Readonly<Record<string, unknown>> = { ...(given as object), _meta: MCP_META }
      const name = params['taskId'] ?? params['name']
      const headers = {
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': MCP_VERSION,
        'mcp-method': method,
        ...(typeof name === 'string' && { 'mcp-name': name })
      }
      const text = await textOf(await post('/mcp', { jsonrpc: '2.0', id: lastId, method, params }, headers))
      if (!text.includes('"result":')) throw new Error(text)
      return text
    },
    stream: () => Promise.reject(new TypeError('Tasks of MCP are polled.')),
    close
  }
}

/** The same for a server that is no agent: parameters are posted to a path without their method. */
export async function postLoad(port: number, connections: number, pathOf: (params: unknown) => string): Promise<Load> {
  const { post, close } = client(port, connections)
  return {
    call: async (_method, params) => textOf(await post(pathOf(params), params)),
    stream: () => Promise.reject(new TypeError('A server that is no agent has no streams.')),
    close
  }
}

function client(port: number, connections: number, own: Headers = {}) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  return {
    post: (path: string, json: unknown, more: Headers = {}) =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const body = JSON.stringify(json)
        const headers = {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'a2a-version': '1.0',
          ...own,
          ...more
        }
        request({ host: '127.0.0.1', port, method: 'POST', path, agent, headers }, resolve)
          .on('error', reject)
          .end(body)
      }),
    close: async () => agent.destroy()
  }
}

/** The text of a response. Rejects unless its status is 200. */
function textOf(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = ''
    response
      .setEncoding('utf8')
      .on('data', (chunk: string) => (text += chunk))
      .on('error', reject)
      .on('end', () => (response.statusCode === 200 ? resolve(text) : reject(new Error(text))))
  })
}
