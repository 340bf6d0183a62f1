import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { REQUIREMENTS } from '../adapters/conformance/requirements/requirements.ts'
import { BINDINGS } from './conformance/bindings.ts'
import { PARTS } from './conformance/rows.ts'
import { run } from './conformance/run.ts'
import { withResults } from './conformance/table.ts'

const GUIDE = 'docs/conformance.md'

const results = await run(t, BINDINGS, Object.values(PARTS).flat())
const guide = readFileSync(GUIDE, 'utf8')
const now = withResults(guide, BINDINGS, PARTS, results)

if (process.argv.includes('write')) writeFileSync(GUIDE, now)
else {
  await t.test('docs/conformance.md says what came of it: npm run conformance writes it', async t => {
    t.equal(guide, now)
  })
}

await t.test('every requirement has a row, and every row a cell on each binding', async t => {
  const ids = Object.values(PARTS).flatMap(rows => rows.map(({ id }) => id))
  t.same(ids.toSorted((a, b) => a - b), REQUIREMENTS.map((_, i) => i + 1))
  for (const [name, cells] of results) t.equal(cells.size, ids.length, name)
  for (const cells of results.values()) for (const cell of cells.values()) t.not(cell.reason, '')
})

await t.test('a test of any server has the same requirements, of the same weight', async t => {
  const weights = (rows: readonly { readonly id: number; readonly level: string; readonly section: string }[]) => rows.map(({ id, level, section }) => [id, level, section]).toSorted(([a], [b]) => Number(a) - Number(b))
  t.same(weights(REQUIREMENTS), weights(Object.values(PARTS).flat()))
})
