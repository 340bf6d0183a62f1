import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadedBy } from '../faults/loaded.ts'

/**
 * Tests whole what `npm test` takes samples of: `npm run test:deep`. Every test file that takes one is run with all there is, and
 * the faults of changed files are planted: those that changed since the commit `BASE`, by default the one before this.
 */
const TESTS = fileURLToPath(new URL('..', import.meta.url))
const SAMPLE = join(TESTS, 'fixtures/sample.js')
const PLANT = join(TESTS, 'faults/plant.js')

const files = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter(path => path.endsWith('.test.js')).map(path => join(TESTS, path))
const sampled = files.filter(file => loadedBy(file, () => undefined).has(SAMPLE)).toSorted()

const codes = [await exitCode('tap', 'run', '--disable-coverage', '--timeout=1200', ...sampled), await exitCode(process.execPath, PLANT, '--changed')]
process.exitCode = Math.max(...codes)

async function exitCode(command: string, ...args: readonly string[]): Promise<number> {
  const [code] = (await once(spawn(command, args, { stdio: 'inherit', env: { ...process.env, DEEP: '1' } }), 'close')) as [number | null]
  return code ?? 1
}
