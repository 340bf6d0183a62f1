import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { trimmedEnd } from '../../runtime/primitives/text.ts'
import { isLoopbackAddress, isPublicAddress } from './public-address.ts'

/** Resolves a host name to all of its IP addresses. Rejects if there is none. */
export type Resolve = (host: string) => Promise<readonly string[]>

/** The rules for webhook URLs. */
export interface AddressRules {
  readonly allowLoopback: boolean
  readonly resolve: Resolve
}

/** A checked URL with its checked IP addresses: no others are dialled. */
export interface CheckedAddress {
  readonly url: URL
  readonly addresses: readonly string[]
}

/** Lower ports belong to other protocols. */
const FIRST_FREE_PORT = 1024

/** The system's resolver. */
export const systemResolve: Resolve = async host => (await lookup(host, { all: true })).map(({ address }) => address)

/** Checks a URL without resolving its name. Returns a string for an invalid one. URL normalises every spelling of an IP address. */
export function parsedAddress(text: string, { allowLoopback }: AddressRules): URL | string {
  if (!URL.canParse(text)) return 'must be an absolute URL'
  // URL would drop these without a word.
  if (/^\s|\s$|[\t\r\n]/.test(text)) return 'must contain no line break or tab, and no space around it'
  if (text.includes('#')) return 'must have no fragment: it is never sent'
  const url = new URL(text)
  const { protocol, username, password, port } = url
  if (protocol !== 'https:' && !(protocol === 'http:' && allowLoopback)) return 'must begin with https:'
  if (username !== '' || password !== '') return 'must contain no user and no password: give authentication instead'
  if (port !== '' && Number(port) < FIRST_FREE_PORT)
    return `must not have port ${port}: only 443 and ports from ${FIRST_FREE_PORT} are allowed`
  const host = hostOf(url)
  if (isIP(host) !== 0) return faultOf(url, [host], allowLoopback) ?? url
  return /(?:^|\.)localhost$/.test(host) && !allowLoopback ? NOT_PUBLIC : url
}

/**
 * Resolves the name in a URL once, and checks each of its IP addresses. Resolves with a string for an invalid one. Rejects if the name
 * cannot be resolved.
 */
export async function checkedAddress(text: string, rules: AddressRules): Promise<CheckedAddress | string> {
  const url = parsedAddress(text, rules)
  if (typeof url === 'string') return url
  const host = hostOf(url)
  const addresses = isIP(host) === 0 ? await rules.resolve(host) : [host]
  return faultOf(url, addresses, rules.allowLoopback) ?? { url, addresses }
}

const NOT_PUBLIC = 'must resolve to public addresses only, not to private, loopback or other special ones'

/** Without TLS, only this machine is allowed. */
function faultOf({ protocol }: URL, addresses: readonly string[], allowLoopback: boolean): string | undefined {
  if (allowLoopback && addresses.length > 0 && addresses.every(isLoopbackAddress)) return undefined
  if (addresses.length === 0 || !addresses.every(isPublicAddress)) return NOT_PUBLIC
  return protocol === 'https:' ? undefined : 'must begin with https:, except for addresses of this machine'
}

/** The host without IPv6 brackets and trailing dots. */
function hostOf({ hostname }: URL): string {
  return trimmedEnd(hostname.replace(/^\[(.*)\]$/, '$1'), '.')
}
