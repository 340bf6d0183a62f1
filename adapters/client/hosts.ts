import { A2AError } from '../../machines/protocol/errors.ts'

/** Whether a URL is a WebSocket URL. Throws TypeError for anything but a URL of an agent. */
export function isSocketAddress(url: string): boolean {
  return agentAddress(url).protocol.startsWith('ws')
}

/** Parses the URL of an agent or of its card. Throws TypeError for anything else. */
export function agentAddress(url: string): URL {
  const address = URL.canParse(url) ? new URL(url) : undefined
  if (address && /^(?:ws|http)s?:$/.test(address.protocol)) return address
  throw new TypeError(
    `${JSON.stringify(url)} is not the address of an agent. Give a ws: address, or the http: address of its card.`
  )
}

/** The credentials of the caller, and the other origins that may receive them. */
export interface CredentialOptions {
  readonly headers?: unknown
  readonly credentials?: { readonly onlyIfAsked?: boolean } | undefined
  readonly credentialOrigins?: readonly string[] | undefined
}

/**
 * Returns Forbidden if a card may not lead to this URL. It may not lead from TLS to plain text. With headers or
 * credentials to send, it may lead only to the card's origin and to `credentialOrigins`. Throws InvalidAgentResponse
 * for an invalid URL.
 */
export function cardUrlRefusal(
  cardUrl: string,
  named: string,
  { headers, credentials, credentialOrigins = [] }: CredentialOptions
): A2AError | undefined {
  const from = originOf(cardUrl)
  const isSafe = from.startsWith('https:')
  const isOpen = headers === undefined && (credentials?.onlyIfAsked ?? !credentials)
  if (!isSafe && isOpen) return undefined
  const to = originOf(named)
  if (isSafe && !to.startsWith('https:')) {
    return new A2AError(
      'Forbidden',
      `The card at ${cardUrl} was read over TLS, and names ${named}, which does not use TLS. The card has to name an https:, wss: or grpcs: address.`
    )
  }
  if (isOpen || to === from || isAmong(credentialOrigins, named)) return undefined
  const what = headers === undefined ? 'credentials' : 'headers'
  return new A2AError(
    'Forbidden',
    `The card at ${cardUrl} names an agent of another origin, ${named}. To send it your ${what}, give that address itself, or name ${to} in credentialOrigins.`
  )
}

/** Whether credentials may go to an address that a card names. */
export function mayReceive(cardUrl: string, named: string, { credentialOrigins = [] }: CredentialOptions): boolean {
  return canParse(named) && isAmong([cardUrl, ...credentialOrigins], named)
}

/** Whether a URL belongs to one of these origins. */
export function isAmong(origins: readonly string[], address: string): boolean {
  return origins.some(origin => isSameOrigin(origin, address))
}

/** Whether two addresses belong to one origin. Throws InvalidAgentResponse for one that is not a URL. */
export function isSameOrigin(one: string, other: string): boolean {
  return originOf(one) === originOf(other)
}

/** Whether a connection to an address uses TLS. */
export function hasTls(address: string): boolean {
  return withHttp(address).startsWith('https:')
}

/** The `http:` or `https:` URL of the host of an address. Throws InvalidAgentResponse for one that is not a URL. */
export function hostAddress(address: string): string {
  return `${originOf(address)}/`
}

/** Throws TypeError for an entry of `credentialOrigins` that is not an origin. */
export function checkOrigins(origins: readonly string[] = []): void {
  for (const origin of origins) {
    if (/^(?:ws|http|grpc)s?:\/\/[^/?#@\s]+\/?$/i.test(origin) && canParse(origin)) continue
    throw new TypeError(
      `credentialOrigins has ${JSON.stringify(origin)}, which is not an origin. Write scheme, host and port: 'https://agent.example:8443'.`
    )
  }
}

/** Whether gRPC without a scheme uses no TLS for this host: only for this machine. */
export function isPlainHost(host: string): boolean {
  return /^(?:localhost|127\.[\d.]+|\[::1\])$/i.test(host)
}

/**
 * The origin of a URL, or of the `host:port` that cards contain for gRPC (§4.4.6). `ws:` and `grpc:` count as `http:`,
 * and with TLS as `https:`. Throws InvalidAgentResponse for anything else.
 */
function originOf(address: string): string {
  if (!canParse(address))
    throw new A2AError('InvalidAgentResponse', `The card names ${JSON.stringify(address)}, which is not a URL.`)
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

/** Checks the URL of an HTTP interface. Throws InvalidAgentResponse for another scheme. */
export function httpAddress(address: string): string {
  if (/^https?:\/\//i.test(address) && URL.canParse(address)) return address
  throw new A2AError('InvalidAgentResponse', `The card names ${JSON.stringify(address)}, which is not an http: URL.`)
}
