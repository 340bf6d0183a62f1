import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { Load } from './load.ts'

interface Waiting {
  readonly see: (text: string) => void
  readonly resolve: (text: string) => void
  readonly reject: (error: Error) => void
  readonly isStream: boolean
}

/** Every frame of every server begins so. The rest is not parsed, to keep the load cheap. */
const FRAME_START = /^\{"jsonrpc":"2\.0","id":(\d+),"(result|error|streamEnd)":/

/** Load over so many WebSockets, each carrying many requests at a time, in turns. */
export async function webSocketLoad(port: number, connections: number): Promise<Load> {
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  const waiting = new Map<number, Waiting>()
  let lastId = 0

  const receive = (text: string) => {
    const [, id, member] = FRAME_START.exec(text) ?? []
    const request = waiting.get(Number(id))
    if (!request) throw new Error(`No request waits for this: ${text}`)
    if (member === 'result' && request.isStream) return request.see(text)
    waiting.delete(Number(id))
    if (member === 'error') request.reject(new Error(text))
    else request.resolve(text)
  }
  const closed = (code: number, reason: Buffer) => {
    for (const { reject } of waiting.values())
      reject(new Error(`A connection was closed: ${code} ${reason.toString()}`))
  }
  for (const socket of sockets) {
    socket.on('message', (data: Buffer) => receive(data.toString('utf8')))
    socket.on('close', closed)
  }

  const request = (
    method: string,
    params: unknown,
    isStream: boolean,
    see: Waiting['see'],
    parameters?: Readonly<Record<string, string>>
  ) =>
    new Promise<string>((resolve, reject) => {
      lastId += 1
      waiting.set(lastId, { see, resolve, reject, isStream })
      sockets[lastId % connections]?.send(
        JSON.stringify({ jsonrpc: '2.0', id: lastId, method, params, 'a2a-service-parameters': parameters })
      )
    })

  return {
    call: (method, params) => request(method, params, false, () => {}),
    stream: async (method, params, see, parameters) => void (await request(method, params, true, see, parameters)),
    close: async () => {
      await Promise.all(
        sockets.map(socket => {
          socket.off('close', closed).close()
          return once(socket, 'close')
        })
      )
    }
  }
}

async function open(port: number): Promise<WebSocket> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`, {
    headers: { 'a2a-version': '1.0' },
    perMessageDeflate: false
  })
  await once(socket, 'open')
  return socket
}
