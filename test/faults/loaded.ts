import { readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'

/**
 * The compiled files that one loads, itself among them: by its imports, those of types apart, and as threads. `own`
 * says where a package's own names lead.
 */
export function loadedBy(entry: string, own: (name: string) => string | undefined): Set<string> {
  const loaded = new Set<string>()
  const load = (path: string): void => {
    if (loaded.has(path) || !statSync(path, { throwIfNoEntry: false })?.isFile()) return
    loaded.add(path)
    for (const name of namesIn(readFileSync(path, 'utf8'))) {
      const target = name.startsWith('.') ? join(dirname(path), name) : own(name)
      if (target !== undefined) load(target)
    }
  }
  load(entry)
  return loaded
}

function namesIn(text: string): string[] {
  return Array.from(text.matchAll(/(?:from|import|import\(|new URL\()\s*'([^']+)'/g), ([, name = '']) => name)
}
