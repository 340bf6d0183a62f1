/** A host name or address, in lower case and IPv6 in brackets, and its port if given (RFC 3986 §3.2). */
interface Authority {
  readonly name: string
  readonly port: number | undefined
}

/**
 * Parses `NAME[:PORT]`, as in a `Host` header. `undefined` for anything else: a user, a port over 65535, an address in
 * an unusual form.
 */
export function authorityOf(text: string): Authority | undefined {
  if (!URL.canParse(`http://${text}`)) return undefined
  const { hostname: name } = new URL(`http://${text}`)
  const given = text.replace(/:\d+$/, '')
  const port = text.slice(given.length + 1)
  return given.toLowerCase() === name ? { name, port: port === '' ? undefined : Number(port) } : undefined
}

/** The entry of `origins` for the pages of this machine, at every port. */
export const LOOPBACK_ORIGINS = 'loopback'

/**
 * The origins whose pages may connect. Throws TypeError for an entry that is neither an origin, as browsers send it,
 * nor `loopback`.
 */
export function namedOrigins(entries: readonly string[]): readonly string[] {
  for (const entry of entries) {
    if (entry === LOOPBACK_ORIGINS) continue
    const origin = /^https?:/i.test(entry) && URL.canParse(entry) ? new URL(entry).origin : undefined
    if (entry === origin) continue
    const wanted =
      origin !== undefined
        ? `Write ${origin}.`
        : 'Write scheme, host and port of a page, such as https://app.example or http://localhost:5173, or loopback for all pages of this machine.'
    throw new TypeError(`origins has ${JSON.stringify(entry)}, which is not an origin. ${wanted}`)
  }
  return entries
}

/**
 * The hosts that requests may name, with the ports for cards. Throws TypeError for an entry that is not `NAME[:PORT]`,
 * and for a duplicate name.
 */
export function namedHosts(entries: readonly string[]): ReadonlyMap<string, number | undefined> {
  const hosts = new Map<string, number | undefined>()
  for (const entry of entries) {
    const authority = authorityOf(entry)
    if (!authority || authority.port === 0)
      throw new TypeError(
        `hosts takes names such as agent.example or agent.example:8080, not ${JSON.stringify(entry)}.`
      )
    if (hosts.has(authority.name))
      throw new TypeError(
        `hosts has ${authority.name} twice. An entry allows its name at every port, and cards give the entry's port: keep one.`
      )
    hosts.set(authority.name, authority.port)
  }
  return hosts
}

/**
 * A text without these characters at its end. A regular expression such as `/x+$/` takes quadratic time on `xxx…xy`.
 */
export function trimmedEnd(text: string, characters: string): string {
  let end = text.length
  while (end > 0 && characters.includes(text.charAt(end - 1))) end -= 1
  return text.slice(0, end)
}
