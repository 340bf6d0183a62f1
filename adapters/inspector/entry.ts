import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Runtime } from '../../runtime/runtime.ts'
import { isLoopback, type Refusal } from '../http/entry.ts'
import { incomingRefusal } from '../http/incoming.ts'

/** Whether everyone may look who reaches the server: where everyone on this machine may call, and nobody else can. */
export function isOpen(server: Server, { settings }: Runtime): boolean {
  return isLoopback((server.address() as AddressInfo).address) && !settings.authenticate
}

/** Whether a request's address has the token. */
export function hasToken(address: string | undefined, token: string): boolean {
  const given = new URL(String(address), 'http://localhost').searchParams.get('token') ?? ''
  return timingSafeEqual(digest(given), digest(token))
}

/** Why a WebSocket is not let in: the Host rule, the token, and no pages but those that the hub itself has served. */
export function socketRefusal(request: IncomingMessage, { settings }: Runtime, token: string): Refusal | undefined {
  const { host, origin } = request.headers
  const refusal = incomingRefusal(request, settings)
  if (refusal) return refusal
  if (!hasToken(request.url, token)) return { status: 401, message: 'The inspector takes only who has its token. Load the page again.' }
  if (origin === undefined || origin === `http://${host}` || origin === `https://${host}`) return undefined
  return { status: 403, message: 'Pages from elsewhere may not look into the agent.' }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
