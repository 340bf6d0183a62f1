/** At most this many oddities are remembered, and told. */
const MOST = 1000

const told = new Set<string>()

/** Warns of what an agent does oddly, each oddity of an agent once in a process. Its places in lists do not make it another. */
export function warnOf(url: string): (oddity: string) => void {
  return oddity => {
    const key = `${url} ${oddity.replaceAll(/\[\d+\]/g, '[]')}`
    if (told.has(key) || told.size >= MOST) return
    told.add(key)
    const text = `The agent at ${url}: ${oddity}`
    // A browser has no process, and what bundlers put in its place may have no such method.
    const { process } = globalThis as { readonly process?: Partial<Pick<NodeJS.Process, 'emitWarning'>> }
    if (process?.emitWarning) process.emitWarning(text, { code: 'TASKCHART_AGENT' })
    else console.warn(text)
  }
}
