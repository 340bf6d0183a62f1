import type { TransitionCount } from '../../xstate/transition-counter.ts'
import { summed } from '../rows.ts'

/** Counts of transitions, by chart. */
export class MemoryTransitions {
  readonly #charts = new Map<string, { atMs: number; counts: TransitionCount[] }>()

  add(counts: readonly TransitionCount[], atMs: number): void {
    for (const chart of new Set(counts.map(count => count.chart))) {
      this.#charts.set(chart, {
        atMs,
        counts: summed([...this.of(chart), ...counts.filter(count => count.chart === chart)])
      })
    }
  }

  of(chart: string): TransitionCount[] {
    return [...(this.#charts.get(chart)?.counts ?? [])]
  }

  sweep(beforeMs: number): void {
    for (const [chart, { atMs }] of this.#charts) if (atMs < beforeMs) this.#charts.delete(chart)
  }
}
