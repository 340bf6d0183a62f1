import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadedBy } from '../faults/loaded.ts'

/** What `dist` consists of: the package's code, and what browsers load: the page of the inspector, and the client. */
export type PackagePart = 'library' | 'page'

const TSC = [process.execPath, 'node_modules/typescript/bin/tsc', '-p'] as const
const VITE = [process.execPath, 'node_modules/vite/bin/vite.js', 'build', '-c'] as const
const QUICKLY = ['--noCheck', '--incremental', '--tsBuildInfoFile'] as const
const WITHOUT_MAPS = ['--sourceMap', 'false', '--declarationMap', 'false'] as const

const COMPILED = ['machines', 'runtime', 'adapters', 'tsconfig.json', 'tsconfig.build.json']
const TESTED = [...COMPILED, 'examples', 'test', 'bench', 'tsconfig.test.json']
const BIN = 'dist/adapters/cli/bin.js'

/** The stamp of each part is the state of its sources before its last build. The tarball leaves these files out. */
const STAMPS = { library: 'dist/.library', page: 'dist/.page', release: 'dist/.release' } as const
const PAGE = 'adapters/inspector/page'
const CLIENT = 'adapters/client'

/**
 * Builds everything from nothing, with types checked: the package with its page and the tests. tap is built with the
 * plugins of `.taprc` if they have changed.
 */
export async function buildAll(): Promise<void> {
  await run('npm', 'run', '--silent', 'build:test')
  await buildStaleTap()
}

/**
 * Builds the package from nothing, with types checked. A `release` has no source maps, which lead to sources that the
 * tarball does not have.
 */
export async function buildPackage({ release }: { readonly release: boolean }): Promise<void> {
  const [library, page] = [stateOf(librarySources()), stateOf(pageSources())]
  if (release && isCurrent(STAMPS.release, library) && isCurrent(STAMPS.page, page)) return
  rmSync('dist', { recursive: true, force: true })
  await run(...TSC, 'tsconfig.build.json', ...(release ? WITHOUT_MAPS : []))
  chmodSync(BIN, 0o755)
  await runVite()
  writeFileSync(STAMPS.library, library)
  writeFileSync(STAMPS.page, page)
  if (release) writeFileSync(STAMPS.release, library)
}

/** Builds those of these parts that are missing or older than their sources, without a check of types. */
export async function buildStale(parts: readonly PackagePart[]): Promise<void> {
  if (parts.includes('library')) {
    await ifStale(STAMPS.library, librarySources(), async () => {
      rmSync(STAMPS.release, { force: true })
      await run(...TSC, 'tsconfig.build.json', ...QUICKLY, 'dist/.tsbuildinfo')
      chmodSync(BIN, 0o755)
    })
  }
  if (parts.includes('page')) await ifStale(STAMPS.page, pageSources(), runVite)
}

/**
 * Builds the tests if they are older than their sources, without a check of types, and tap if its plugins have changed.
 */
export async function buildStaleTests(): Promise<void> {
  await Promise.all([
    ifStale('.build/.compiled', TESTED, () => run(...TSC, 'tsconfig.test.json', ...QUICKLY, '.build/.tsbuildinfo')),
    buildStaleTap()
  ])
}

async function buildStaleTap(): Promise<void> {
  await ifStale('node_modules/.tap-built', ['.taprc', 'package-lock.json'], () => run('tap', 'build'))
}

async function runVite(): Promise<void> {
  for (const folder of [PAGE, join(CLIENT, 'browser')]) await run(...VITE, join(folder, 'vite.config.ts'))
}

async function run(command: string, ...args: readonly string[]): Promise<void> {
  const code = await exitCode(command, ...args)
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} failed`)
}

/** Runs a command of the clone or of the machine to its end. */
export async function exitCode(command: string, ...args: readonly string[]): Promise<number> {
  const [code] = (await once(spawn(command, args, { stdio: 'inherit' }), 'close')) as [number | null]
  return code ?? 1
}

async function ifStale(stamp: string, sources: readonly string[], build: () => Promise<void>): Promise<void> {
  const state = stateOf(sources)
  if (isCurrent(stamp, state)) return
  await build()
  writeFileSync(stamp, state)
}

function isCurrent(stamp: string, state: string): boolean {
  return existsSync(stamp) && readFileSync(stamp, 'utf8') === state
}

/** The number of files and the time of the newest, so that an edit, a new file and a removed one all change it. */
function stateOf(sources: readonly string[]): string {
  const times = sources.flatMap(filesIn).map(path => statSync(path).mtimeMs)
  return `${times.length} files until ${times.reduce((latest, time) => Math.max(latest, time), 0)}`
}

/** The page's own files are not compiled into the library. */
function librarySources(): string[] {
  return COMPILED.flatMap(filesIn).filter(path => !path.startsWith(join(PAGE, '/')))
}

/** The page's and the client's own files, and those that they and the hooks for React import. */
function pageSources(): string[] {
  const entries = [join(PAGE, 'main.tsx'), join(CLIENT, 'connect.ts'), 'adapters/react/index.ts']
  return [
    ...new Set([
      ...filesIn(PAGE),
      ...filesIn(CLIENT),
      ...entries.flatMap(entry => [...loadedBy(entry, () => undefined)])
    ])
  ]
}

/** The files of a folder, apart from packages that are installed there. */
function filesIn(path: string): string[] {
  if (!statSync(path).isDirectory()) return [path]
  const names = readdirSync(path).filter(name => name !== 'node_modules')
  return names.flatMap(name => filesIn(join(path, name)))
}
