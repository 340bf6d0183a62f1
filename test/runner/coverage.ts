import { readdirSync, rmSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Report } from 'c8'

/** Where each process and thread of a run writes what it has covered. */
const FOLDER = resolve('.tap/measured')

/** What istanbul makes of it. */
interface CoverageMap {
  filter(isKept: (path: string) => boolean): void
  files(): string[]
  getCoverageSummary(): Readonly<Record<(typeof PARTS)[number], { readonly pct: number; readonly covered: number; readonly total: number }>>
}

const PARTS = ['statements', 'branches', 'functions', 'lines'] as const

/** Has every process of a run of tap measure coverage, from now on. */
export function beginCoverage(): void {
  rmSync(FOLDER, { recursive: true, force: true })
  process.env.COVERAGE_FOLDER = FOLDER
}

/** Whether the sources of `coverage-map.js` were covered whole. What was not is shown by file. */
export async function isCovered(): Promise<boolean> {
  const { default: covered } = (await import(pathToFileURL(resolve('coverage-map.js')).href)) as { default: () => readonly string[] }
  const ours = new Set(covered().map(path => resolve(path)))
  const report = new Report({ reporter: ['text'], tempDirectory: FOLDER, reportsDirectory: resolve('.tap/report'), excludeNodeModules: true, skipFull: true })
  const map = await (report as unknown as { getCoverageMapFromAllCoverageFiles(): Promise<CoverageMap> }).getCoverageMapFromAllCoverageFiles()
  map.filter(path => ours.has(path))
  const summary = map.getCoverageSummary()
  const isWhole = map.files().length > 0 && PARTS.every(part => summary[part].pct === 100)
  if (!isWhole) await report.run()
  console.log(`covered by ${readdirSync(FOLDER).length} processes and threads: ${PARTS.map(part => `${summary[part].covered} of ${summary[part].total} ${part}`).join(', ')}`)
  return isWhole
}
