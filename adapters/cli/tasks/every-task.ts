import { isTerminal } from '../../../machines/protocol/states.ts'
import type { FoundTask } from './source.ts'

/** A page of a list, latest status first, and the start of the next page, if there is one. */
export interface Page<Place> {
  readonly tasks: readonly FoundTask[]
  readonly next?: Place | undefined
}

/**
 * Yields every task of a list once. A task whose status changes while pages are read moves to the front, where it could be missed.
 * So the front is read again until it fits on one page, or brings nothing new. Remembers only the ids of tasks that can
 * appear again.
 */
export async function* everyTask<Place>(
  pageOf: (since: string | undefined, after: Place | undefined) => Promise<Page<Place>>
): AsyncGenerator<FoundTask, void, undefined> {
  const mayComeAgain = new Set<string>()
  let since: string | undefined
  for (;;) {
    let front: string | undefined
    let after: Place | undefined
    let pages = 0
    let isNew = false
    do {
      const { tasks, next } = await pageOf(since, after)
      if (pages === 0) front = tasks[0]?.task.status.timestamp
      for (const found of tasks) {
        const {
          id,
          status: { state, timestamp = '' }
        } = found.task
        // Other agents may ignore the filter.
        if (mayComeAgain.has(id) || timestamp < (since ?? '')) continue
        if (!isTerminal(state) || timestamp >= (front ?? '')) mayComeAgain.add(id)
        isNew = true
        yield found
      }
      pages += 1
      after = next
    } while (after !== undefined)
    if (pages === 1 || !isNew) return
    since = front
  }
}
