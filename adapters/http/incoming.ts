import type { IncomingMessage } from 'node:http'
import type { Runtime } from '../../runtime/runtime.ts'
import { hostRefusal, type Refusal } from './entry.ts'

/** The Host rule for a request that came to a server of Node's. */
export function incomingRefusal({ rawHeaders, headers, socket }: IncomingMessage, settings: Runtime['settings']): Refusal | undefined {
  const given = rawHeaders.filter((name, i) => i % 2 === 0 && name.length === 4 && name.toLowerCase() === 'host').length
  if (given > 1) return { status: 400, message: 'Send one Host header.' }
  return hostRefusal(headers.host, socket.localAddress ?? '127.0.0.1', settings)
}

/** The headers of a request, those that were given twice as a list with commas. */
export function headersOf({ headers }: IncomingMessage): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]))
}
