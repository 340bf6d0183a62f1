import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { compiled } from './test-files.ts'

/** Where the groups are written, beside the compiled tests. */
const FOLDER = '.build/groups'

/** How many files share a process. */
const MOST_FILES = 12

/**
 * What needs a process of its own: it ends or measures the process, changes what all of it shares, or uses what tap has
 * once in each.
 */
const ALONE = [
  /fixtures\/[a-z]+\/(?:compiled-guide|needs-sqlite|needs-postgres|without-peers|chromium)/,
  /process\.(?:exit|env|on|once|emit|memoryUsage|stdout|cpuUsage|setuid)\b/,
  /\bspawn|\bexecFile|globalThis|performance\.|async_hooks|diagnostics_channel/,
  /^t\.(?:jobs|plan|before|setTimeout|comment|teardown)/m,
  /^(?:\S.*[( ])?t\.testdir/m,
  /^(?:const|let) .* = (?:await )?\w+\(\s*t\b/m
]

/**
 * Puts test files that may share a process into groups, and gives what is to be run: first the files that run alone. To
 * start a process under tap and to load everything there takes longer than most test files run.
 */
export function grouped(files: readonly string[]): string[] {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  const isAlone = (file: string) => ALONE.some(sign => sign.test(readFileSync(file, 'utf8')))
  const alone = files.filter(isAlone)
  const shared = files.filter(file => !alone.includes(file))
  const nameOf = (file: string) => dirname(file).split('/').slice(0, 2).join('-')
  const groups = [...new Set(shared.map(nameOf))].flatMap(name =>
    slices(shared.filter(file => nameOf(file) === name)).map((slice, i) => writeGroup(`${name}-${i + 1}`, slice))
  )
  return [...alone.map(compiled), ...groups]
}

function slices(files: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(files.length / MOST_FILES) }, (_, i) =>
    files.slice(i * MOST_FILES, (i + 1) * MOST_FILES)
  )
}

function writeGroup(name: string, files: readonly string[]): string {
  const path = join(FOLDER, `${name}.test.js`)
  const urls = files.map(file => [file, new URL(compiled(file), `${pathToFileURL(process.cwd()).href}/`).href])
  writeFileSync(
    path,
    `import { runGroup } from '../test/runner/group.js'\nawait runGroup(new Map(${JSON.stringify(urls)}))\n`
  )
  return path
}
