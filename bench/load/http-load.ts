import { Agent, request, type IncomingMessage } from 'node:http'
import type { Load } from './load.ts'

/** Load over HTTP/1.1 on so many connections that are kept alive, each carrying one request at a time. */
export async function httpLoad(port: number, connections: number): Promise<Load> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  let lastId = 0

  const post = (method: string, params: unknown) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      lastId += 1
      const body = JSON.stringify({ jsonrpc: '2.0', id: lastId, method, params })
      const headers = {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'a2a-version': '1.0'
      }
      request({ host: '127.0.0.1', port, method: 'POST', path: '/', agent, headers }, resolve)
        .on('error', reject)
        .end(body)
    })

  return {
    call: async (method, params) => {
      const response = await post(method, params)
      return new Promise((resolve, reject) => {
        let text = ''
        response
          .setEncoding('utf8')
          .on('data', (chunk: string) => (text += chunk))
          .on('error', reject)
        response.on('end', () =>
          response.statusCode === 200 && text.includes('"result":') ? resolve(text) : reject(new Error(text))
        )
      })
    },
    stream: async (method, params, see) => {
      const response = await post(method, params)
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
    close: async () => agent.destroy()
  }
}
