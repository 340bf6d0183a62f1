import { A2AError } from '../../machines/protocol/errors.ts'

/**
 * Throws Forbidden if a card at one host names an agent on another and there are headers to send: a card may name any
 * host, and credentials meant for the one that was asked go to no other.
 */
export function checkHost(asked: string, named: string, headers: unknown): void {
  if (!headers || hostOf(named) === hostOf(asked)) return
  throw new A2AError('Forbidden', `The card at ${asked} names an agent on another host, ${named}. Give that address yourself to send it your headers.`)
}

/** The host of a URL, or of the `host:port` that cards give for gRPC (§4.4.6). Throws InvalidAgentResponse for what is neither. */
export function hostOf(address: string): string {
  const url = address.includes('://') ? address.replace(/^[a-z]+:/i, 'http:') : `http://${address}`
  if (!URL.canParse(url)) throw new A2AError('InvalidAgentResponse', `The card names ${JSON.stringify(address)}, which is no address.`)
  return new URL(url).hostname
}

/** The address of an HTTP interface, as the card gives it. Throws InvalidAgentResponse for one of another scheme. */
export function httpAddress(address: string): string {
  if (/^https?:\/\//i.test(address) && URL.canParse(address)) return address
  throw new A2AError('InvalidAgentResponse', `The card names ${JSON.stringify(address)}, which is no http: address.`)
}
