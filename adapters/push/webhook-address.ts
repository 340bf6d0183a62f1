import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { isLoopbackAddress, isPublicAddress } from './public-address.ts'

/** Gives every IP address of a host name. Rejects if there is none. */
export type Resolve = (host: string) => Promise<readonly string[]>

/** Which addresses webhooks may have, and how names are looked up. */
export interface AddressRules {
  readonly allowLoopback: boolean
  readonly resolve: Resolve
}

/** An address that may be posted to, with the IP addresses that were looked at: no others are dialled. */
export interface CheckedAddress {
  readonly url: URL
  readonly addresses: readonly string[]
}

/** Below these are the ports of other protocols. */
const FIRST_FREE_PORT = 1024

/** How the system looks names up. */
export const systemResolve: Resolve = async host => (await lookup(host, { all: true })).map(({ address }) => address)

/** An address as far as it can be told without looking up its name, or what is wrong with it. URL makes the plain form of every spelling of an IP address. */
export function parsedAddress(text: string, { allowLoopback }: AddressRules): URL | string {
  if (!URL.canParse(text)) return 'must be an absolute URL'
  const url = new URL(text)
  const { protocol, username, password, port } = url
  if (protocol !== 'https:' && !(protocol === 'http:' && allowLoopback)) return 'must begin with https:'
  if (username !== '' || password !== '') return 'must hold no user and no password: give authentication instead'
  if (port !== '' && Number(port) < FIRST_FREE_PORT) return `must not have port ${port}: only 443 and those from ${FIRST_FREE_PORT}`
  const host = hostOf(url)
  if (isIP(host) !== 0) return faultOf(url, [host], allowLoopback) ?? url
  return /(?:^|\.)localhost$/.test(host) && !allowLoopback ? NOT_PUBLIC : url
}

/**
 * Looks up an address's name, once, and checks every IP address that it has. Gives what is wrong instead. Rejects if the
 * name cannot be looked up.
 */
export async function checkedAddress(text: string, rules: AddressRules): Promise<CheckedAddress | string> {
  const url = parsedAddress(text, rules)
  if (typeof url === 'string') return url
  const host = hostOf(url)
  const addresses = isIP(host) === 0 ? await rules.resolve(host) : [host]
  return faultOf(url, addresses, rules.allowLoopback) ?? { url, addresses }
}

const NOT_PUBLIC = 'must lead to public addresses alone, not to private, loopback or other special ones'

/** Without encryption only this machine is spoken to. */
function faultOf({ protocol }: URL, addresses: readonly string[], allowLoopback: boolean): string | undefined {
  if (allowLoopback && addresses.length > 0 && addresses.every(isLoopbackAddress)) return undefined
  if (addresses.length === 0 || !addresses.every(isPublicAddress)) return NOT_PUBLIC
  return protocol === 'https:' ? undefined : 'must begin with https:, but for addresses of this machine'
}

/** The host without the brackets of IPv6 and the dot of the root. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.+$/, '')
}
