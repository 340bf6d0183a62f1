import { fileURLToPath } from 'node:url'
import t from 'tap'
import { runBare } from '../../fixtures/processes/bare-process.ts'

/**
 * Of garbage for each task: more than it is (1.5 kB; 5.7 kB on Node 20, whose V8 makes hidden classes for every actor),
 * and less than the 8 to 14 kB that each mistake leaves which this test is for.
 */
const MOST_BYTES = process.versions.node.startsWith('20.') ? 7500 : 2500

const leftBehind = fileURLToPath(new URL('../../fixtures/runtime/left-behind.js', import.meta.url))

await t.test('memory that a running task used is freed by the next minor garbage collection', async t => {
  // Before V8 has optimized anything, and with room for all of a round: what is promoted then is what something holds
  // on to.
  const flags = ['--expose-gc', '--no-opt', '--no-maglev', '--min-semi-space-size=16', '--max-semi-space-size=16']
  const { stdout } = await runBare(...flags, leftBehind)
  const { held, inUse } = JSON.parse(stdout) as { held: number; inUse: number }
  t.ok(
    inUse > 0 && held - inUse < MOST_BYTES,
    `a task leaves ${held.toFixed(0)} bytes, ${inUse.toFixed(0)} of them in use`
  )
})
