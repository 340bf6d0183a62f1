import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Runtime } from '../../runtime/runtime.ts'
import { isLoopback, targetOf, type Refusal, type Target } from '../entry/admission.ts'

/** Whether everyone may look who reaches the server: where everyone on this machine may call, and nobody else can. */
export function isOpen(server: Server, { settings }: Runtime): boolean {
  return isLoopback((server.address() as AddressInfo).address) && !settings.authenticate
}

/** Whether a request's address has the token. */
export function hasToken(address: string | undefined, token: string): boolean {
  const given = new URL(String(address), 'http://localhost').searchParams.get('token') ?? ''
  return timingSafeEqual(digest(given), digest(token))
}

/** Gives the target of a WebSocket's handshake, or its refusal: by the Host rule, for the token, or for a page that the hub has not served. */
export function socketTarget(request: IncomingMessage, { settings }: Runtime, token: string): Target | Refusal {
  const target = targetOf(request, settings)
  if ('status' in target) return target
  const { origin } = request.headers
  if (!hasToken(request.url, token)) return { status: 401, message: 'The inspector takes only who has its token. Load the page again.' }
  if (origin === undefined || origin === `http://${target.host}` || origin === `https://${target.host}`) return target
  return { status: 403, message: 'Pages from elsewhere may not look into the agent.' }
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
