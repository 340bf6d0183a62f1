import { execFile } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { CommandError } from '../command.ts'

const runFile = promisify(execFile)

/** Runs git in a folder. Gives what it prints. */
type Git = (folder: string, args: readonly string[], env?: NodeJS.ProcessEnv) => Promise<string>

/**
 * Checks out a revision of the repository of a file into a folder of its own, with its submodules and the
 * `node_modules` of today. The folder is removed at the end. `use` gets the path of the file there, and the commit. The
 * folder has an index of its own and no entry in the repository, so that nothing can stay there. Rejects with
 * CommandError without git, outside a repository, and if the revision, the file or the commit of a submodule is not
 * there.
 */
export async function withRevision<Result>(
  file: string,
  revision: string,
  signal: AbortSignal,
  use: (at: { readonly path: string; readonly commit: string }) => Promise<Result>
): Promise<Result> {
  const folder = dirname(realpathSync(file))
  const git: Git = async (folder, args, env = process.env) => {
    const options = { env, signal, maxBuffer: 2 ** 30 }
    const { stdout } = await runFile('git', ['-C', folder, '-c', 'core.hooksPath=/dev/null', ...args], options)
    return stdout.trim()
  }
  const root = await git(folder, ['rev-parse', '--show-toplevel']).catch((cause: unknown) => {
    throw new CommandError(`${file} is not in a repository of git, or git is not installed. Give two files instead.`, {
      cause
    })
  })
  const commit = await commitOf(git, folder, revision)
  const top = realpathSync(root)
  const within = relative(top, realpathSync(file))
  const parent = await mkdtemp(join(realpathSync(tmpdir()), 'taskchart-diff-'))
  const tree = join(parent, 'tree')
  try {
    await checkOut(git, { from: top, commit, to: tree, index: join(parent, 'index') })
    const path = join(tree, within)
    if (!existsSync(path)) throw new CommandError(`${within} did not exist at ${revision}.`)
    await linkPackages(top, tree, dirname(within))
    return await use({ path, commit })
  } finally {
    await rm(parent, { recursive: true, force: true, maxRetries: 5 })
  }
}

async function commitOf(git: Git, folder: string, revision: string): Promise<string> {
  try {
    return await git(folder, ['rev-parse', '--verify', '--quiet', '--end-of-options', `${revision}^{commit}`])
  } catch (cause) {
    const isShallow = (await git(folder, ['rev-parse', '--is-shallow-repository'])) === 'true'
    const hint = isShallow ? ' This clone has not all commits: git fetch --unshallow gets them.' : ''
    throw new CommandError(`git knows no revision ${revision}. Give one that git log shows, such as HEAD~1.${hint}`, {
      cause
    })
  }
}

interface CheckOut {
  /** The top folder of a repository. */
  readonly from: string
  readonly commit: string
  readonly to: string
  /** The path of the index that is used. */
  readonly index: string
}

/** Writes the files of a commit into a folder, with those of its submodules that are in the worktree. */
async function checkOut(git: Git, { from, commit, to, index }: CheckOut): Promise<void> {
  const env = { ...process.env, GIT_INDEX_FILE: index }
  await git(from, ['read-tree', commit], env)
  await git(from, ['checkout-index', '--all', `--prefix=${to}/`], env)
  const entries = (await git(from, ['ls-tree', '-r', '-z', commit])).split('\0')
  for (const [, submodule = '', path = ''] of entries.map(entry => /^160000 commit (\w+)\t([^]*)/.exec(entry) ?? [])) {
    const folder = join(from, path)
    if (path === '' || !existsSync(join(folder, '.git'))) continue
    await git(folder, ['cat-file', '-e', submodule]).catch((cause: unknown) => {
      throw new CommandError(`The submodule ${path} has no commit ${submodule}. Run git -C ${path} fetch.`, { cause })
    })
    await checkOut(git, { from: folder, commit: submodule, to: join(to, path), index })
  }
}

/** Links the `node_modules` of a folder and of those above it, up to the top of the repository. */
async function linkPackages(top: string, tree: string, folder: string): Promise<void> {
  const packages = join(top, folder, 'node_modules')
  const there = join(tree, folder, 'node_modules')
  if (existsSync(packages) && !existsSync(there)) await symlink(packages, there, 'junction')
  if (folder !== '.' && folder !== '') await linkPackages(top, tree, dirname(folder))
}
