import type { Test } from 'tap'
import type { Binding } from './binding.ts'
import { openColumn } from './column.ts'
import type { Row } from './row.ts'

/** What came of one row on one binding: `pass`, `fail`, or why it makes no sense there. */
export type Cell = { readonly outcome: 'pass' | 'fail' } | { readonly reason: string }

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
        const reason = row.missing?.(binding)
        const { check } = row
        if (reason !== undefined || !check) {
          cells.set(row.id, { reason: reason ?? '' })
          continue
        }
        await t.test(`${row.id}: ${row.says}`, async t => {
          t.teardown(() => void cells.set(row.id, { outcome: t.passing() && t.counts.total > 0 ? 'pass' : 'fail' }))
          await check(t, column)
        })
      }
    })
  }
  return results
}
