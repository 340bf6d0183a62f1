import type { Test } from 'tap'
import type { Binding } from './binding.ts'
import { openColumn, type Column } from './column.ts'
import type { Row } from './row.ts'

/** What came of one row on one binding. `reason` says why it makes no sense there, or why it is known to fail. */
export interface Cell {
  readonly outcome: 'pass' | 'fail' | 'n/a'
  readonly reason?: string
}

/** Cells by binding and row. */
export type Results = ReadonlyMap<string, ReadonlyMap<number, Cell>>

/** Tries all rows on all bindings, as a subtest each. */
export async function run(t: Test, bindings: readonly Binding[], rows: readonly Row[]): Promise<Results> {
  const results = new Map<string, Map<number, Cell>>()
  for (const binding of bindings) {
    const cells = new Map<number, Cell>()
    results.set(binding.name, cells)
    await t.test(`over ${binding.name}`, async t => {
      const column = await openColumn(t, binding)
      for (const row of rows.toSorted((a, b) => Number(a.atLast ?? false) - Number(b.atLast ?? false))) {
        cells.set(row.id, await tried(t, row, column))
      }
    })
  }
  return results
}

async function tried(t: Test, { id, says, check, missing, fails }: Row, column: Column): Promise<Cell> {
  const { binding } = column
  const reason = missing?.(binding)
  if (reason !== undefined || !check) return { outcome: 'n/a', reason: reason ?? '' }
  const known = fails?.(binding)
  let passes = false
  await t.test(`${id}: ${says}`, known === undefined ? {} : { todo: known }, async t => {
    t.teardown(() => (passes = t.passing() && t.counts.total > 0))
    await check(t, column)
  })
  if (known === undefined) return { outcome: passes ? 'pass' : 'fail' }
  t.notOk(passes, `${id} is known to fail on ${binding.name}: if it does not, take that back`)
  return { outcome: passes ? 'pass' : 'fail', reason: known }
}
