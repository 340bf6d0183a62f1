import { Parser, type Result } from 'tap-parser'

/** What a test said when it failed: its name within those around it, and tap's diagnostics. */
export interface Failure {
  readonly names: readonly string[]
  readonly diagnostics: Readonly<Record<string, unknown>>
}

/** What came of a test file. */
export interface FileRun {
  readonly file: string
  tests: number
  passed: number
  failed: number
  tookMs: number
  /** Why each test was left out that was, or the whole file. */
  readonly leftOut: string[]
  readonly failures: Failure[]
  /** The seeds of its samples, as its comments say them. */
  readonly seeds: Set<string>
}

/** What a group says before the tests of each of its files, since they share a process. */
export const FILE_COMMENT = 'file: '

/** Not left out, but chosen: by `--grep`, or by who runs the deep tests. */
const CHOSEN = /^(?:filter\b|only in npm run test:deep|no tests found)/

/** Reads the TAP of a run, and gives each test file when it has ended. */
export function readTap(onFile: (run: FileRun) => void): Parser {
  const parser = new Parser()
  let current: FileRun | undefined
  /** The files of this process. */
  let runs: FileRun[] = []
  parser.on('child', (ofFile: Parser) => {
    const run = newRun(ofFile.name)
    current = run
    runs = [run]
    ofFile.on('comment', (comment: string) => {
      const [, file] = comment.trim().split(`# ${FILE_COMMENT}`)
      if (file === undefined) return
      if (current && current !== run) onFile(current)
      current = newRun(file)
      runs.push(current)
    })
    follow(ofFile, [], () => current ?? run)
  })
  parser.on('assert', (end: Result) => {
    const run = current ?? newRun(end.name)
    current = undefined
    if (run.tookMs === 0) run.tookMs = end.time ?? 0
    // The process ends with an error also because a test of another file has failed.
    if (!end.ok && runs.every(({ failures }) => failures.length === 0)) addFailure(run, [], end)
    if (end.skip) addLeftOut(run, end)
    onFile(run)
  })
  return parser
}

function newRun(name: string): FileRun {
  const file = name.replace(/^\.build\//, '').replace(/\.js$/, '.ts')
  return { file, tests: 0, passed: 0, failed: 0, tookMs: 0, leftOut: [], failures: [], seeds: new Set() }
}

function follow(parser: Parser, names: readonly string[], runOf: () => FileRun): void {
  const isGroup = parser.name.includes('/groups/')
  parser.on('child', (child: Parser) => follow(child, [...names, child.name], runOf))
  parser.on('comment', (comment: string) => {
    for (const [seed] of comment.matchAll(/\bSEED=\d+/g)) runOf().seeds.add(seed)
  })
  parser.on('assert', (result: Result) => {
    const run = runOf()
    if (result.closingTestPoint) {
      run.tests += 1
      if (isGroup) run.tookMs += result.time ?? 0
    } else if (result.skip) addLeftOut(run, result)
    else if (result.ok) run.passed += 1
    else if (!result.todo) addFailure(run, [...names, result.name], result)
  })
}

function addLeftOut(run: FileRun, { skip }: Result): void {
  const why = skip === true ? 'skipped' : String(skip).replaceAll('\\#', '#')
  if (!CHOSEN.test(why)) run.leftOut.push(why)
}

function addFailure(run: FileRun, names: readonly string[], { diag }: Result): void {
  run.failed += 1
  run.failures.push({ names, diagnostics: (diag ?? {}) as Failure['diagnostics'] })
}
