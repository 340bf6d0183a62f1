import { BlockList, isIPv4, isIPv6 } from 'node:net'

/** IPv4 ranges that are not public: private, shared, loopback, link-local, for tests, multicast and reserved (RFC 6890). */
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

/** The allocated IPv6 range. It has no loopback, mapped IPv4, NAT64, unique-local, link-local or multicast addresses. */
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
