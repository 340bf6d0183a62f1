import { execFileSync } from 'node:child_process'
import { createRequire, isBuiltin } from 'node:module'
import { pathToFileURL } from 'node:url'

/**
 * The package for Nodes without `node:sqlite`. The clone does not depend on it, since most machines have to compile it.
 */
const PACKAGE = 'better-sqlite3@12'

/**
 * Installs a SQLite where this Node has none of its own. Where it cannot be had, what needs it is left out of the
 * tests.
 */
export function installSqlite(): void {
  if (hasSqlite()) return
  console.log(
    `Node ${process.versions.node} has no node:sqlite, so better-sqlite3 is compiled first, which takes a minute and a half: npm i --no-save ${PACKAGE}`
  )
  try {
    // As a development dependency, for npm does not install an optional peer by its name alone.
    execFileSync('npm', ['i', '--no-save', '--save-dev', '--no-audit', '--no-fund', '--loglevel=error', PACKAGE], {
      stdio: ['ignore', 'ignore', 'pipe']
    })
  } catch {
    console.log(
      `${PACKAGE} could not be installed, so the tests on SQLite are left out: it takes a compiler, make and Python where no ready build is found`
    )
  }
}

function hasSqlite(): boolean {
  if (isBuiltin('node:sqlite')) return true
  try {
    createRequire(import.meta.url).resolve('better-sqlite3')
    return true
  } catch {
    return false
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) installSqlite()
