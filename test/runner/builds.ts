import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const COMPILED = ['machines', 'runtime', 'adapters', 'tsconfig.json']
const PAGE = 'adapters/inspector/page/vite.config.ts'
const QUICKLY = ['--noCheck', '--incremental', '--tsBuildInfoFile'] as const

/** Builds everything from nothing, with types checked: the package with its page, the tests, and tap with the plugins of `.taprc`. */
export async function buildAll(): Promise<void> {
  await run('npm', 'run', '--silent', 'build:test')
  await run('tap', 'build')
}

/** Builds what is older than its sources, without a check of types; the page only for tests that need it. */
export async function buildStale({ needsPage }: { readonly needsPage: boolean }): Promise<void> {
  await Promise.all([
    ifChanged('dist/.compiled', [...COMPILED, 'tsconfig.build.json'], () => run('tsc', '-p', 'tsconfig.build.json', ...QUICKLY, 'dist/.tsbuildinfo')),
    ifChanged('.build/.compiled', [...COMPILED, 'examples', 'test', 'bench', 'tsconfig.test.json'], () => run('tsc', '-p', 'tsconfig.test.json', ...QUICKLY, '.build/.tsbuildinfo')),
    ifChanged('node_modules/.tap-built', ['.taprc', 'package-lock.json'], () => run('tap', 'build'))
  ])
  if (needsPage) await ifChanged('dist/.page', COMPILED, () => run('vite', 'build', '-c', PAGE))
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

/** Builds unless `stamp` holds the time of the newest source, as it was before the last build. */
async function ifChanged(stamp: string, sources: readonly string[], build: () => Promise<void>): Promise<void> {
  const newestMs = String(newest(sources))
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === newestMs) return
  await build()
  writeFileSync(stamp, newestMs)
}

function newest(paths: readonly string[]): number {
  return Math.max(...paths.map(path => (statSync(path).isDirectory() ? newest(readdirSync(path).map(name => join(path, name))) : statSync(path).mtimeMs)))
}
