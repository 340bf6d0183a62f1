import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { loadedBy } from '../faults/loaded.ts'
import { Report } from './report.ts'
import { runTap } from './run-tap.ts'
import { allTestFiles, compiled } from './test-files.ts'

/**
 * Tests more of what `npm test` takes samples of: `npm run test:deep`. Every test file that takes one is run with as
 * much of it as catches the planted faults, with `--all` with all there is. Then faults of changed files are planted
 * (`npm run faults -- --changed`).
 */
const SAMPLE = compiled('test/fixtures/sample.ts')
const isAll = process.argv.includes('--all')
const env = { DEEP: isAll ? 'all' : '1' }

const files = allTestFiles().filter(file => loadedBy(compiled(file), () => undefined).has(SAMPLE))
const report = new Report({ files, print: console.log, command: `DEEP=${env.DEEP} npm test --`, mostLines: 60 })
const isEnded = await runTap(report, files.map(compiled), { options: ['--timeout=1800'], env })
const isPassed = report.finish() && isEnded
const plant = spawn(process.execPath, [compiled('test/faults/plant.ts'), '--changed', ...(isAll ? ['--all'] : [])], {
  stdio: 'inherit'
})
const [code] = (await once(plant, 'close')) as [number | null]
process.exitCode = isPassed && code === 0 ? 0 : 1
