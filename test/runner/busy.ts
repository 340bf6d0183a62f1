import { spawn } from 'node:child_process'
import { pathToFileURL } from 'node:url'
import { Report } from './report.ts'
import { runTap } from './run-tap.ts'
import { compiled, testFiles } from './test-files.ts'

/** How many busy processes take the cores. */
const BUSY = 4

/**
 * The files that take longest in a whole run, by the time of the processor, but for those that take samples: a deep run
 * would take too long beside busy processes.
 */
export const SLOWEST = [
  'cli-testing',
  'conformance',
  'postgres',
  'inspector-page-parts',
  'inspector-page',
  'storage',
  'transcripts',
  'cli-cluster',
  'cluster-postgres',
  'crash-loop'
]

/** A process that is busy for as long as the one lives that started it. */
const LOOP = `while (process.ppid === ${process.pid}) for (let i = 0; i < 1e7; i += 1);`

/** Has busy processes share the cores with a run. */
export async function whileBusy<T>(run: () => Promise<T>): Promise<T> {
  const busy = Array.from({ length: BUSY }, () => spawn(process.execPath, ['-e', LOOP], { stdio: 'ignore' }))
  try {
    return await run()
  } finally {
    for (const child of busy) child.kill()
  }
}

/**
 * Runs test files, the slowest without names, on a machine that is busy: `npm run test:busy [-- NAME …]`, after `npm
 * test` or `npm run build:test`. A test that fails here waits for the clock instead of for what it is about.
 */
async function main(names: readonly string[]): Promise<number> {
  const files = [...new Set((names.length === 0 ? SLOWEST : names).flatMap(testFiles))]
  const report = new Report({ files, print: console.log, command: 'npm run test:busy --', mostLines: 25 })
  const isPassed = await whileBusy(() => runTap(report, files.map(compiled), {}))
  return report.finish() && isPassed ? 0 : 1
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exitCode = await main(process.argv.slice(2))
