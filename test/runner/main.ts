import { buildAll, buildStale, buildStaleTests } from './builds.ts'
import { SLOWEST, whileBusy } from './busy.ts'
import { beginCoverage, coverage, coverageLines, isWhole, writeRecord } from './coverage.ts'
import { grouped } from './groups.ts'
import { neededParts } from './needed-parts.ts'
import { Report } from './report.ts'
import { runTap } from './run-tap.ts'
import { installSqlite } from './sqlite.ts'
import { allTestFiles, compiled, testFiles } from './test-files.ts'

/**
 * `npm test` builds everything and runs every test file, small ones in groups, with coverage. `npm test -- NAME …` runs
 * the files of these names or paths, after it has built what they need and what is stale. With `--complete` it fails if
 * tests were left out or a source is not covered whole, and else records what is covered. With `--busy` the slowest
 * files run last, beside busy processes. `--tap` prints TAP, with the report as comments at its end. Other options go
 * to tap.
 */
async function main(words: readonly string[]): Promise<number> {
  const [isComplete, isBusy] = ['--complete', '--busy'].map(option => words.includes(option))
  const options = words.filter(
    argument => argument.startsWith('-') && argument !== '--complete' && argument !== '--busy'
  )
  const named = words.filter(argument => !argument.startsWith('-'))
  const isNamed = named.length > 0
  const files = isNamed ? [...new Set(named.flatMap(testFiles))] : allTestFiles()
  if (isNamed) {
    installSqlite()
    await Promise.all([buildStaleTests(), buildStale(files.flatMap(neededParts))])
  } else {
    await buildAll()
    beginCoverage()
  }
  const print = options.includes('--tap')
    ? (line: string) => console.log(line.trim().replaceAll(/^/gm, '# '))
    : (line: string) => console.log(line)
  const { DEEP } = process.env
  const report = new Report({
    files,
    print,
    command: `${DEEP === undefined ? '' : `DEEP=${DEEP} `}npm test --`,
    mostLines: isNamed ? 25 : 90
  })
  const last = isBusy ? SLOWEST.flatMap(testFiles).filter(file => files.includes(file)) : []
  const first = files.filter(file => !last.includes(file))
  const given = DEEP === undefined ? options : ['--timeout=1200', ...options]
  const run = (entries: readonly string[]) => runTap(report, entries, { options: given })
  const codes = [await run(isNamed ? first.map(compiled) : grouped(first))]
  if (last.length > 0) codes.push(await whileBusy(() => run(last.map(compiled))))
  const isPassed = report.finish() && codes.every(Boolean)
  const isLeftOut = isComplete && report.leftOut > 0
  if (isLeftOut) print('With --complete nothing may be left out')
  if (isNamed) return isPassed && !isLeftOut ? 0 : 1
  const found = await coverage({ isShown: isComplete === true })
  for (const line of coverageLines(found)) print(line)
  const isCovered = isWhole(found)
  if (isComplete && !isCovered) print('With --complete every source has to be covered whole')
  if (!isPassed || isLeftOut || (isComplete && !isCovered)) return 1
  if (isComplete) writeRecord(found)
  return 0
}

process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
  console.error(error.message)
  return 1
})
