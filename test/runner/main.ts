import { rmSync } from 'node:fs'
import { buildAll, buildStale, buildStaleTests, exitCode } from './builds.ts'
import { beginCoverage, isCovered } from './coverage.ts'
import { grouped } from './groups.ts'
import { leftOut } from './left-out.ts'
import { neededParts } from './needed-parts.ts'
import { installSqlite } from './sqlite.ts'
import { allTestFiles, compiled, testFiles } from './test-files.ts'

const RESULTS = '.tap/test-results'

/**
 * `npm test` builds everything and runs every test file, small ones in groups, with coverage. `npm test -- NAME …` runs the files of
 * these names or paths, after it has built what they need and what is stale. With `--complete` it fails if tests were left out. Other
 * options go to tap.
 */
async function main(given: readonly string[]): Promise<number> {
  const options = given.filter(argument => argument.startsWith('-') && argument !== '--complete')
  const named = given.filter(argument => !argument.startsWith('-'))
  const files = named.flatMap(testFiles)
  if (named.length === 0) {
    await buildAll()
    beginCoverage()
  } else {
    installSqlite()
    await Promise.all([buildStaleTests(), buildStale(files.flatMap(neededParts))])
  }
  rmSync(RESULTS, { recursive: true, force: true })
  const code = await exitCode('tap', 'run', '--disable-coverage', ...options, ...(named.length === 0 ? grouped(allTestFiles()) : files.map(compiled)))
  const isWhole = named.length > 0 || (await isCovered())
  const lines = leftOut(RESULTS)
  if (lines.length > 0) console.log(`\nLeft out:\n${lines.join('\n')}`)
  return !isWhole || (lines.length > 0 && given.includes('--complete')) ? 1 : code
}

process.exitCode = await main(process.argv.slice(2)).catch((error: Error) => {
  console.error(error.message)
  return 1
})
