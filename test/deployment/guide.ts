import { readFileSync } from 'node:fs'

/** The configuration in docs/deployment.md whose first line is a comment with this path. */
export function fromGuide(path: string): string {
  const block = Array.from(
    readFileSync('docs/deployment.md', 'utf8').matchAll(/^```\w+\n# (.*)\n([\s\S]*?)^```$/gm)
  ).find(([, name]) => name === path)
  if (!block) throw new Error(`docs/deployment.md has no ${path}`)
  return block[2] as string
}

/** Replaces each text, which has to be there. */
export function replaced(text: string, changes: Readonly<Record<string, string>>): string {
  return Object.entries(changes).reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`not in the guide any more: ${from}`)
    return changed.replaceAll(from, to)
  }, text)
}
