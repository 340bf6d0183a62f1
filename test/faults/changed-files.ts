import { execFileSync } from 'node:child_process'

/** The files that differ from those of a commit, as paths from the root. Without such a commit, as in a clone of the last one alone, none that is committed. */
export function changedFiles(base = process.env.BASE ?? 'HEAD~1'): ReadonlySet<string> {
  const differing = (from: string) => execFileSync('git', ['diff', '--name-only', '--relative', from], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).split('\n')
  try {
    return new Set(differing(base))
  } catch {
    return new Set(differing('HEAD'))
  }
}
