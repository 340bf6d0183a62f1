import { isTerminal } from '../../../machines/protocol/states.ts'
import type { FoundTask } from './source.ts'

/** A page of a list, latest status first, and where the next begins, if there is one. */
export interface Page<Place> {
  readonly tasks: readonly FoundTask[]
  readonly next?: Place | undefined
}

/**
 * Every task of a list that is there at the beginning, once. A task whose status changes before its turn moves to the front, so
 * what has come there is read again until all of it stands on one page, which nothing can pass by. Only those that may come
 * again are remembered.
 */
export async function* everyTask<Place>(pageOf: (since: string | undefined, after: Place | undefined) => Promise<Page<Place>>): AsyncGenerator<FoundTask, void, undefined> {
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
        const { id, status: { state, timestamp = '' } } = found.task
        // Other agents may tell more than they are asked for.
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
