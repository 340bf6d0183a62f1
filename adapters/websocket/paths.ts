import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

/** Takes an upgrade of a connection that asks for one. */
export type TakeUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => void

/** The paths of ours on each server. */
const PATHS = new WeakMap<Server, readonly string[]>()

/**
 * Takes the upgrades of a path on a server that listens. `unknown` gets those that neither one of ours on this server nor the
 * app itself may want. The answer gives the path back.
 */
export function takePath(server: Server, path: string, take: TakeUpgrade, unknown: TakeUpgrade = () => {}): () => void {
  const onUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => {
    socket.on('error', () => socket.destroy())
    const [asked] = String(request.url).split('?')
    if (asked === path) take(request, socket, head)
    else if (isNobodys(server, String(asked)) && !socket.writableEnded) unknown(request, socket, head)
  }
  server.on('upgrade', onUpgrade)
  PATHS.set(server, [...pathsOn(server), path])
  return () => {
    server.off('upgrade', onUpgrade)
    PATHS.set(server, pathsOn(server).filter(other => other !== path))
  }
}

function pathsOn(server: Server): readonly string[] {
  return PATHS.get(server) ?? []
}

function isNobodys(server: Server, path: string): boolean {
  const ours = pathsOn(server)
  return server.listenerCount('upgrade') <= ours.length && !ours.includes(path)
}
