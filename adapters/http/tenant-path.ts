const ONE_NAME = /^\/(?<name>[^/]+)\/?$/

/** The tenant that a path names, which is below that of its agent: `/blue`. `undefined` if it is not one name, percent-encoded. */
export function tenantIn(path: string): string | undefined {
  const name = ONE_NAME.exec(path)?.groups?.['name']
  try {
    return name && decodeURIComponent(name)
  } catch {
    return undefined
  }
}
