import { execFile } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { CommandError } from '../command.ts'

const runFile = promisify(execFile)

/**
 * Checks a revision of the repository of a file out into a folder of its own, with the `node_modules` of today, and
 * removes it at the end. `use` gets the path of the file there, and the commit. The folder has an index of its own and
 * no entry in the repository, so that nothing can stay there. Rejects with CommandError without git, outside a
 * repository, and if the revision or the file is not there.
 */
export async function withRevision<Result>(
  file: string,
  revision: string,
  signal: AbortSignal,
  use: (at: { readonly path: string; readonly commit: string }) => Promise<Result>
): Promise<Result> {
  const folder = dirname(realpathSync(file))
  const git = (args: readonly string[], env = process.env) =>
    runFile('git', ['-C', folder, '-c', 'core.hooksPath=/dev/null', ...args], { env, signal }).then(({ stdout }) =>
      stdout.trim()
    )
  const root = await git(['rev-parse', '--show-toplevel']).catch((cause: unknown) => {
    throw new CommandError(`${file} is not in a repository of git, or git is not installed. Give two files instead.`, {
      cause
    })
  })
  const commit = await git(['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`]).catch(
    (cause: unknown) => {
      throw new CommandError(`git knows no revision ${revision}. Give one that git log shows, such as HEAD~1.`, {
        cause
      })
    }
  )
  const top = realpathSync(root)
  const within = relative(top, realpathSync(file))
  const parent = await mkdtemp(join(realpathSync(tmpdir()), 'taskchart-diff-'))
  const tree = join(parent, 'tree')
  try {
    const env = { ...process.env, GIT_INDEX_FILE: join(parent, 'index') }
    await git(['-C', top, 'read-tree', commit], env)
    await git(['-C', top, 'checkout-index', '--all', `--prefix=${tree}/`], env)
    const path = join(tree, within)
    if (!existsSync(path)) throw new CommandError(`${within} did not exist at ${revision}.`)
    await linkPackages(top, tree, dirname(within))
    return await use({ path, commit })
  } finally {
    await rm(parent, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Links the `node_modules` of a folder and of those above it, up to the top of the repository. */
async function linkPackages(top: string, tree: string, folder: string): Promise<void> {
  const packages = join(top, folder, 'node_modules')
  const there = join(tree, folder, 'node_modules')
  if (existsSync(packages) && !existsSync(there)) await symlink(packages, there, 'junction')
  if (folder !== '.' && folder !== '') await linkPackages(top, tree, dirname(folder))
}
