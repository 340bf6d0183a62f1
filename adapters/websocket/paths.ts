import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { pathOf } from '../http/incoming.ts'
import { ignoreOthers, isWebSocket, replay } from './upgrades.ts'

/** Takes an upgrade of a connection that asks for one. */
export type TakeUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => void

/** Where one of ours takes upgrades on a server: at a path, and at others that nobody else has. */
export interface Place {
  readonly path: string
  readonly takesBelow?: ((path: string) => boolean) | undefined
}

/** The places of ours on each server. */
const PLACES = new WeakMap<Server, readonly Place[]>()

/**
 * Takes the WebSockets of a place on a server that listens. `unknown` gets those that neither one of ours on this server nor the
 * app itself may want. Requests for other upgrades are answered as if they asked for none, unless the app listens for upgrades too.
 * The answer gives the place back.
 */
export function takePath(server: Server, place: Place, take: TakeUpgrade, unknown: TakeUpgrade = () => {}): () => void {
  const onUpgrade = (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!isWebSocket(request)) return placesOn(server)[0] === place && !isForApp(server) ? replay(server, request, socket, head) : undefined
    socket.on('error', () => socket.destroy())
    const asked = pathOf(request)
    if (asked === place.path) return take(request, socket, head)
    const others = placesOn(server).filter(other => other !== place)
    if (!isNobodys(server, others, asked)) return undefined
    if (place.takesBelow?.(asked)) return take(request, socket, head)
    return socket.writableEnded ? undefined : unknown(request, socket, head)
  }
  if (!PLACES.has(server)) ignoreOthers(server, () => isForApp(server))
  server.on('upgrade', onUpgrade)
  PLACES.set(server, [...placesOn(server), place])
  return () => {
    server.off('upgrade', onUpgrade)
    PLACES.set(server, placesOn(server).filter(other => other !== place))
  }
}

function placesOn(server: Server): readonly Place[] {
  return PLACES.get(server) ?? []
}

/** True when the app may want an upgrade: it listens for them too. */
function isForApp(server: Server): boolean {
  return server.listenerCount('upgrade') > placesOn(server).length
}

/** True when neither another of ours on this server nor the app itself may want an upgrade of this path. */
function isNobodys(server: Server, others: readonly Place[], asked: string): boolean {
  return !isForApp(server) && !others.some(other => other.path === asked || other.takesBelow?.(asked))
}
