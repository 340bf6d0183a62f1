import { spawn } from 'node:child_process'
import { exitCode } from './builds.ts'
import { compiled, testFiles } from './test-files.ts'

/** How many busy processes take the cores. */
const BUSY = 8

/** The files that take longest in a whole run, by the time of the processor. */
const SLOWEST = [
  'testing-servers', 'cli-testing', 'conformance', 'postgres', 'inspector-page-parts', 'storage', 'transcripts', 'cli-cluster', 'cluster-postgres', 'kills'
]

/** A process that is busy for as long as the one lives that started it. */
const LOOP = `while (process.ppid === ${process.pid}) for (let i = 0; i < 1e7; i += 1);`

/**
 * Runs test files, the slowest without names, on a machine that is busy: `npm run test:busy [-- NAME …]`, after `npm test` or
 * `npm run build:test`. A test that fails here waits for the clock instead of for what it is about.
 */
const names = process.argv.slice(2)
const busy = Array.from({ length: BUSY }, () => spawn(process.execPath, ['-e', LOOP], { stdio: 'ignore' }))
try {
  process.exitCode = await exitCode('tap', 'run', '--disable-coverage', ...(names.length === 0 ? SLOWEST : names).flatMap(testFiles).map(compiled))
} finally {
  for (const child of busy) child.kill()
}
