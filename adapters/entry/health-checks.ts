import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Health } from '../../runtime/health.ts'
import { pathOf } from './admission.ts'

/** The paths of the health checks. */
const HEALTH = '/healthz'
const READY = '/readyz'

/**
 * Answers a health check, by its status alone; `false` for any other request. `/healthz` is 200 while the process answers. `/readyz` is
 * 200 if the server accepts requests and its runtime is ready, else 503.
 */
export function answeredHealth(request: IncomingMessage, response: ServerResponse, isDraining: boolean, health: () => Health): boolean {
  const path = pathOf(request)
  if (path !== HEALTH && path !== READY) return false
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const isServing = path === HEALTH || (!isDraining && health().isReady)
  const status = isRead ? (isServing ? 200 : 503) : 405
  response.writeHead(status, { 'Cache-Control': 'no-store', 'Content-Length': 0, ...(!isRead && { Allow: 'GET, HEAD' }) }).end()
  return true
}

/** Throws TypeError for a path of an agent that is one of a health check. */
export function checkPath(path: string): void {
  const taken = [HEALTH, READY].find(health => path.replace(/\/+$/, '') === health)
  if (taken !== undefined) throw new TypeError(`The path ${taken} reports the health of the server. Choose another for the agent, such as '/agent'.`)
}
