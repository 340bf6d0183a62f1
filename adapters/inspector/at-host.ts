/** An agent's address as one reaches it who reaches this host. */
export function atHost(url: string, host: string): string {
  const address = new URL(url)
  address.host = host
  return address.href
}
