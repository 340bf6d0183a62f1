/** A host by its name or address, in lower case and IPv6 in brackets, and its port if one is given (RFC 3986 §3.2). */
export interface Authority {
  readonly name: string
  readonly port: number | undefined
}

/** Reads `NAME[:PORT]`, as a `Host` header has it. `undefined` if it is not one: no user, no port over 65535, no address in an unusual form. */
export function authorityOf(text: string): Authority | undefined {
  if (!URL.canParse(`http://${text}`)) return undefined
  const { hostname: name } = new URL(`http://${text}`)
  const given = text.replace(/:\d+$/, '')
  const port = text.slice(given.length + 1)
  return given.toLowerCase() === name ? { name, port: port === '' ? undefined : Number(port) } : undefined
}

/** The hosts under which a server may be addressed, and the ports that cards give for them. Throws TypeError for an entry that is no `NAME[:PORT]`, or a name that is there twice. */
export function namedHosts(entries: readonly string[]): ReadonlyMap<string, number | undefined> {
  const hosts = new Map<string, number | undefined>()
  for (const entry of entries) {
    const authority = authorityOf(entry)
    if (!authority || authority.port === 0) throw new TypeError(`hosts takes names such as agent.example or agent.example:8080, not ${JSON.stringify(entry)}.`)
    if (hosts.has(authority.name)) throw new TypeError(`hosts has ${authority.name} twice. An entry allows its name at every port, and cards give the entry's port: keep one.`)
    hosts.set(authority.name, authority.port)
  }
  return hosts
}
