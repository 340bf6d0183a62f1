import { execFileSync } from 'node:child_process'

/**
 * The files that differ from those of a commit, as paths from the root. Without such a commit, as in a clone of the
 * last one alone, none that is committed; without git none.
 */
export function changedFiles(base = process.env.BASE ?? 'HEAD~1'): ReadonlySet<string> {
  for (const from of [base, 'HEAD']) {
    try {
      return new Set(
        execFileSync('git', ['diff', '--name-only', '--relative', from], {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore']
        }).split('\n')
      )
    } catch {
      // The next commit may be there.
    }
  }
  return new Set()
}
