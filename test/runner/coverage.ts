import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { Report } from 'c8'

/** Where each process and thread of a run writes what it has covered. */
const FOLDER = resolve('.tap/measured')

/** What the last complete run covered, by file. */
const RECORD = 'test/coverage.json'

/** How many files are named that lost something. */
const MOST_NAMED = 8

/** Every test may cover every source, and the tests' own helpers are not measured. */
const MEASURED = ['machines', 'runtime', 'adapters', 'examples']

/** The page runs in a browser, where its tests drive it. The others run when the package or the example is built. */
const ELSEWHERE = ['adapters/inspector/page/', 'adapters/client/browser/vite.', 'examples/web/', 'examples/copilot/']

const PARTS = ['statements', 'branches', 'functions', 'lines'] as const

/** How much of each part is covered: a number for each of {@link PARTS}. */
type Counts = readonly number[]

/** What istanbul makes of a run. */
interface CoverageMap {
  filter(isKept: (path: string) => boolean): void
  files(): string[]
  fileCoverageFor(path: string): {
    toSummary(): Readonly<Record<(typeof PARTS)[number], { readonly covered: number; readonly total: number }>>
  }
}

/** What a run has covered, by source. */
export type Coverage = ReadonlyMap<string, { readonly covered: Counts; readonly total: Counts }>

/** Has every process of a run of tap measure coverage, from now on. */
export function beginCoverage(): void {
  rmSync(FOLDER, { recursive: true, force: true })
  process.env.COVERAGE_FOLDER = FOLDER
}

/** What has been covered since {@link beginCoverage}. With `isShown` a table has each line that was not. */
export async function coverage({ isShown }: { readonly isShown: boolean }): Promise<Coverage> {
  const report = new Report({
    reporter: ['text'],
    tempDirectory: FOLDER,
    reportsDirectory: resolve('.tap/report'),
    excludeNodeModules: true,
    skipFull: true
  })
  const map = await (
    report as unknown as { getCoverageMapFromAllCoverageFiles(): Promise<CoverageMap> }
  ).getCoverageMapFromAllCoverageFiles()
  map.filter(isMeasured)
  const paths = map
    .files()
    .map(path => relative('.', path))
    .toSorted()
  const found: Coverage = new Map(
    paths.map(path => {
      const summary = map.fileCoverageFor(resolve(path)).toSummary()
      return [
        path,
        { covered: PARTS.map(part => summary[part].covered), total: PARTS.map(part => summary[part].total) }
      ]
    })
  )
  if (isShown && !isWhole(found)) await report.run()
  return found
}

function isMeasured(absolute: string): boolean {
  const path = relative('.', absolute)
  return (
    MEASURED.some(folder => path.startsWith(`${folder}/`)) &&
    !ELSEWHERE.some(start => path.startsWith(start)) &&
    existsSync(path)
  )
}

/** Whether the sources were covered whole. */
export function isWhole(found: Coverage): boolean {
  return (
    found.size > 0 && [...found.values()].every(({ covered, total }) => total.every((count, i) => covered[i] === count))
  )
}

/** The figure, and what was lost against the last complete run, as `record` has it: a few lines. */
export function coverageLines(found: Coverage, record = readRecord()): string[] {
  const sums = PARTS.map((part, i) => `${sum(found, 'covered', i)} of ${sum(found, 'total', i)} ${part}`)
  const lost = [...record]
    .map(([path, before]) => ({ path, lost: lostOf(before, found.get(path)) }))
    .filter(({ path, lost }) => existsSync(path) && lost.some(count => count > 0))
  const sorted = lost.toSorted((a, b) => (b.lost[0] ?? 0) - (a.lost[0] ?? 0))
  const lines = sorted
    .slice(0, MOST_NAMED)
    .map(
      ({ path, lost }) =>
        `  ${path}: ${PARTS.flatMap((part, i) => ((lost[i] ?? 0) > 0 ? [`${lost[i]} ${part}`] : [])).join(', ')}`
    )
  const more = sorted.length - lines.length
  return [
    `Covered: ${sums.join(', ')}`,
    ...(lines.length > 0
      ? [
          `Lost against ${RECORD}, which a complete run writes:`,
          ...lines,
          ...(more > 0 ? [`  and of ${more} more file${more === 1 ? '' : 's'}`] : [])
        ]
      : record.size > 0
        ? [`Nothing was lost against ${RECORD}`]
        : [])
  ]
}

/** What was covered before and still exists, and is not covered now. */
function lostOf(before: Counts, now: { readonly covered: Counts; readonly total: Counts } | undefined): Counts {
  return before.map((count, i) => Math.max(0, now ? Math.min(count, now.total[i] ?? 0) - (now.covered[i] ?? 0) : count))
}

function sum(found: Coverage, what: 'covered' | 'total', part: number): number {
  return [...found.values()].reduce((total, counts) => total + (counts[what][part] ?? 0), 0)
}

function readRecord(): ReadonlyMap<string, Counts> {
  return existsSync(RECORD)
    ? new Map(Object.entries(JSON.parse(readFileSync(RECORD, 'utf8')) as Record<string, Counts>))
    : new Map()
}

/** Records what a complete run has covered, a line for each source. */
export function writeRecord(found: Coverage): void {
  const lines = [...found].map(([path, { covered }]) => `  ${JSON.stringify(path)}: ${JSON.stringify(covered)}`)
  writeFileSync(RECORD, `{\n${lines.join(',\n')}\n}\n`)
}
