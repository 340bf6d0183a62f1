import { A2AError } from '../../machines/protocol/errors.ts'

/** Says what a client sends along, and to which other origins. */
export interface Credentials {
  readonly headers?: unknown
  readonly credentialOrigins?: readonly string[] | undefined
}

/**
 * Forbidden, if a card at one address may not lead to the agent at another: from TLS to none, and, where there are headers to
 * send, to an origin that is neither that of the card nor among `credentialOrigins`. Throws InvalidAgentResponse for what is
 * no address.
 */
export function originRefusal(asked: string, named: string, { headers, credentialOrigins = [] }: Credentials): A2AError | undefined {
  const from = originOf(asked)
  const isSafe = from.startsWith('https:')
  if (!isSafe && headers === undefined) return undefined
  const to = originOf(named)
  if (isSafe && !to.startsWith('https:')) {
    return new A2AError('Forbidden', `The card at ${asked} was read over TLS, and names ${named}, which is without. The card has to name an https:, wss: or grpcs: address.`)
  }
  if (headers === undefined || to === from || isAmong(credentialOrigins, named)) return undefined
  return new A2AError('Forbidden', `The card at ${asked} names an agent of another origin, ${named}. To send it your headers, give that address itself, or name ${to} in credentialOrigins.`)
}

/** Whether an address is of one of these origins. */
export function isAmong(origins: readonly string[], address: string): boolean {
  return origins.some(origin => originOf(origin) === originOf(address))
}

/** Throws TypeError for an entry of `credentialOrigins` that is no origin. */
export function checkOrigins(origins: readonly string[] = []): void {
  for (const origin of origins) {
    if (/^(?:ws|http|grpc)s?:\/\/[^/?#@\s]+\/?$/i.test(origin) && canParse(origin)) continue
    throw new TypeError(`credentialOrigins has ${JSON.stringify(origin)}, which is no origin. Write scheme, host and port: 'https://agent.example:8443'.`)
  }
}

/** Whether gRPC speaks to a host without TLS if the address does not say: only to this machine. */
export function isPlainHost(host: string): boolean {
  return /^(?:localhost|127\.[\d.]+|\[::1\])$/i.test(host)
}

/**
 * The origin of a URL, in which `ws:` and `grpc:` count as `http:`, with TLS as `https:`; also of the `host:port` that cards give
 * for gRPC (§4.4.6). Throws InvalidAgentResponse for what is neither.
 */
function originOf(address: string): string {
  if (!canParse(address)) throw new A2AError('InvalidAgentResponse', `The card names ${JSON.stringify(address)}, which is no address.`)
  return new URL(withHttp(address)).origin
}

function canParse(address: string): boolean {
  return URL.canParse(withHttp(address))
}

function withHttp(address: string): string {
  const end = address.indexOf('://')
  if (end < 0) return `${isPlainHost(address.replace(/:\d+\/?$/, '')) ? 'http' : 'https'}://${address}`
  return `${/^(?:https|wss|grpcs)$/i.test(address.slice(0, end)) ? 'https' : 'http'}${address.slice(end)}`
}

/** The address of an HTTP interface, as the card gives it. Throws InvalidAgentResponse for one of another scheme. */
export function httpAddress(address: string): string {
  if (/^https?:\/\//i.test(address) && URL.canParse(address)) return address
  throw new A2AError('InvalidAgentResponse', `The card names ${JSON.stringify(address)}, which is no http: address.`)
}
