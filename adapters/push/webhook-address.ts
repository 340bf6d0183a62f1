import { lookup } from 'node:dns/promises'
import { BlockList, isIP, isIPv4, isIPv6 } from 'node:net'
import { trimmedEnd } from '../../runtime/primitives/authority.ts'

/** Resolves a host name to all of its IP addresses. Rejects if there is none. */
type Resolve = (host: string) => Promise<readonly string[]>

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

/**
 * Checks a URL without resolving its name. Returns a string for an invalid one. URL normalises every spelling of an IP
 * address.
 */
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
 * Resolves the name in a URL once, and checks each of its IP addresses. Resolves with a string for an invalid one.
 * Rejects if the name cannot be resolved.
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

/**
 * IPv4 ranges that are not public: private, shared, loopback, link-local, for tests, multicast and reserved (RFC 6890).
 */
const NOT_PUBLIC_4 = listOf('ipv4', [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4'
])

/**
 * The allocated IPv6 range. It has no loopback, mapped IPv4, NAT64, unique-local, link-local or multicast addresses.
 */
const GIVEN_OUT_6 = listOf('ipv6', ['2000::/3'])

/** Ranges in it that are not public: Teredo and similar, documentation, and 6to4, which leads to IPv4. */
const NOT_PUBLIC_6 = listOf('ipv6', ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'])

const LOOPBACK_4 = listOf('ipv4', ['127.0.0.0/8'])

/** Whether an IP address is public. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !NOT_PUBLIC_4.check(address, 'ipv4')
  return isPlainIPv6(address) && GIVEN_OUT_6.check(address, 'ipv6') && !NOT_PUBLIC_6.check(address, 'ipv6')
}

/** Whether an IP address is a loopback address. */
export function isLoopbackAddress(address: string): boolean {
  return isIPv4(address) ? LOOPBACK_4.check(address, 'ipv4') : address === '::1'
}

/** Without a zone: an address such as `fe80::1%eth0` is local to one link. */
function isPlainIPv6(address: string): boolean {
  return isIPv6(address) && !address.includes('%')
}

function listOf(family: 'ipv4' | 'ipv6', subnets: readonly string[]): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [net = '', prefix] = subnet.split('/')
    list.addSubnet(net, Number(prefix), family)
  }
  return list
}
