/** The maximum number of oddities that are remembered and reported. */
const MOST = 1000

const warned = new Set<string>()
const collectors = new Set<(oddity: string) => void>()

/** Warns of the oddities of an agent, of each once in a process. */
export function warnOf(url: string): (oddity: string) => void {
  return oddity => {
    const key = `${url} ${kindOf(oddity)}`
    if (collectors.size > 0) mention(oddity)
    else if (!warned.has(key) && warned.size < MOST) {
      warned.add(key)
      emit(`The agent at ${url}: ${oddity}`)
    }
  }
}

/** Reports an oddity of an agent to the collectors. Without one it is not reported, since no data is lost. */
export function mention(oddity: string): void {
  for (const collect of collectors) collect(oddity)
}

/**
 * Collects the oddities of all agents, in place of warnings, until `stop`. `take` returns those since its last call.
 */
export function collectOddities(): { take(): string[]; stop(): void } {
  const [seen, fresh] = [new Set<string>(), [] as string[]]
  const collect = (oddity: string) => {
    if (!seen.has(kindOf(oddity))) fresh.push(oddity)
    seen.add(kindOf(oddity))
  }
  collectors.add(collect)
  return { take: () => fresh.splice(0), stop: () => void collectors.delete(collect) }
}

/** Places in lists do not make another oddity. */
function kindOf(oddity: string): string {
  return oddity.replaceAll(/\[\d+\]/g, '[]')
}

function emit(text: string): void {
  // A browser has no process, and what bundlers put in its place may have no such method.
  const { process } = globalThis as { readonly process?: Partial<Pick<NodeJS.Process, 'emitWarning'>> }
  if (process?.emitWarning) process.emitWarning(text, { code: 'TASKCHART_AGENT' })
  else console.warn(text)
}
