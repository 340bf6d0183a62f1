import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

/** Of garbage for each task: some four times what it was when this was written, and half of what one call keeps that stays. */
const MOST_BYTES = 1800

const leftBehind = fileURLToPath(new URL('../fixtures/left-behind.js', import.meta.url))

await t.test('what a task needed while it ran goes with the next quick garbage collection', async t => {
  // Before V8 has optimized anything, and with room for all of a round: what is promoted then is what something holds on to.
  const flags = ['--expose-gc', '--no-opt', '--no-maglev', '--min-semi-space-size=16', '--max-semi-space-size=16']
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, leftBehind], { env: {} })
  const { held, inUse } = JSON.parse(stdout) as { held: number; inUse: number }
  t.ok(inUse > 0 && held - inUse < MOST_BYTES, `a task leaves ${held.toFixed(0)} bytes, ${inUse.toFixed(0)} of them in use`)
})
