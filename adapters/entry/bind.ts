import { once } from 'node:events'
import type { Server as HttpServer } from 'node:http'
import { createServer, type AddressInfo, type Server } from 'node:net'

/**
 * The number of sockets that listen on one port. Node accepts one connection of each in a round of the event loop. So a
 * new connection waits for as many rounds as there are others before it. Beside 25 connections that come again and
 * again it waited 500 ms behind one socket, 180 ms behind eight (Node 24; `npm run siege`).
 */
const SOCKETS = 8

/** Where a server is to listen: a host, and a port or the first and the last one of a range. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
  readonly last?: number
}

/** Why a place cannot be bound, as a sentence, and what has to be another. */
export interface BindFault {
  readonly text: string
  readonly wrong: 'host' | 'port'
}

/** The fault of a place that Node's code names; `undefined` for another error. */
export function bindFault(error: unknown, { host, port, last = port }: ListenAddress): BindFault | undefined {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE')
    return {
      text:
        port === last
          ? `Port ${port} is in use on ${host}.`
          : `The ports from ${port} to ${last} are in use on ${host}.`,
      wrong: 'port'
    }
  if (code === 'EACCES') return { text: `This user may not listen on port ${port} of ${host}.`, wrong: 'port' }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND')
    return { text: `This machine has no address ${host}.`, wrong: 'host' }
  return undefined
}

const CHOICES = {
  host: 'Choose another host, such as 127.0.0.1.',
  port: 'Choose another port, or 0 for a free one.'
} as const

/**
 * The error for a place that cannot be bound: what is wrong, and what to do. It has the code of Node's error, which is
 * its cause.
 */
export function bindError(cause: unknown, place: ListenAddress): unknown {
  const fault = bindFault(cause, place)
  return fault
    ? Object.assign(new Error(`${fault.text} ${CHOICES[fault.wrong]}`, { cause }), {
        code: (cause as NodeJS.ErrnoException).code
      })
    : cause
}

/**
 * Binds the first free port of a range. Throws as `bindError` says if none is free. On Linux, from Node 22.12 on,
 * further sockets listen on the same port. Gives a function that stops all of them, closes their connections and
 * resolves when they are closed.
 */
export async function bind(server: HttpServer, host: string, port: number, last: number): Promise<() => Promise<void>> {
  try {
    await listening(server, { host, port: await freePort(host, port, last) })
  } catch (error) {
    throw bindError(error, { host, port, last })
  }
  const others = await Promise.all(Array.from({ length: SOCKETS - 1 }, () => beside(server, host)))
  const all: Server[] = [server, ...others.flatMap(other => other ?? [])]
  return async () => {
    const closed = Promise.all(all.map(one => once(one, 'close')))
    for (const one of all) one.close()
    server.closeAllConnections()
    await closed
  }
}

/** The first port of a range that no process listens on, not even one that shares it; 0 is itself. */
async function freePort(host: string, port: number, last: number): Promise<number> {
  if (port === 0) return port
  const server = createServer()
  try {
    server.listen(port, host)
    await once(server, 'listening')
  } catch (error) {
    if (port < last && (error as NodeJS.ErrnoException).code === 'EADDRINUSE') return freePort(host, port + 1, last)
    throw error
  }
  server.close()
  await once(server, 'close')
  return port
}

/**
 * Another socket that listens where the server does, whose connections are the server's; `undefined` where the system
 * or Node cannot.
 */
async function beside(server: HttpServer, host: string): Promise<Server | undefined> {
  const other = createServer({ allowHalfOpen: true, noDelay: true }, socket => server.emit('connection', socket))
  try {
    await listening(other, { host, port: (server.address() as AddressInfo).port })
  } catch {
    return undefined
  }
  return other
}

/** Node before 22.12 ignores `reusePort`; elsewhere than on Linux it is refused, or does not share connections out. */
async function listening(server: Server, place: { readonly host: string; readonly port: number }): Promise<void> {
  server.listen({ ...place, reusePort: process.platform === 'linux' })
  await once(server, 'listening')
}
