import { Agent, request, type IncomingMessage } from 'node:http'
import type { Load } from './load.ts'

/** Load over HTTP/1.1 on so many connections that are kept alive, each carrying one request at a time. */
export async function httpLoad(port: number, connections: number): Promise<Load> {
  const { post, close } = client(port, connections)
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

/** The same for a server that is no agent: parameters are posted to a path without their method. */
export async function postLoad(port: number, connections: number, pathOf: (params: unknown) => string): Promise<Load> {
  const { post, close } = client(port, connections)
  return {
    call: async (_method, params) => textOf(await post(pathOf(params), params)),
    stream: () => Promise.reject(new TypeError('A server that is no agent has no streams.')),
    close
  }
}

function client(port: number, connections: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  return {
    post: (path: string, json: unknown) =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const body = JSON.stringify(json)
        const headers = {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'a2a-version': '1.0'
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
