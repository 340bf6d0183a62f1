import type { Message } from '../../../machines/protocol/parts.ts'
import type { Observation } from '../../../runtime/contexts/observers.ts'
import type { Scope } from '../../../runtime/store/store.ts'
import type { TaskRow } from '../feed.ts'

/** Tasks of one caller that are read. */
export const EARLIER_TASKS = 1000

const PAGE = 100

/** The tasks of some callers as the store has them, each caller's last changed first. */
export async function* earlierTasks(store: Observation['store'], scopes: readonly Scope[], title: (message: Message) => string): AsyncGenerator<TaskRow, void, undefined> {
  for (const { tenant, principal } of scopes) {
    const scope = { tenant, principal }
    let read = 0
    let page = await store.listTasks(scope, { limit: PAGE, artifacts: false })
    for (;;) {
      for (const { task: { id, contextId, status, history: [opening] = [] }, generation } of page.tasks) {
        const [first] = await store.readEvents(scope, id, 0, 1)
        const changedMs = msOf(status.timestamp)
        const openedMs = first && 'statusUpdate' in first.update ? msOf(first.update.statusUpdate.status.timestamp) : changedMs
        yield { taskId: id, contextId, owner: scope, state: status.state, generation, openedMs, changedMs, title: opening ? title(opening) : '' }
      }
      read += page.tasks.length
      if (!page.next || read >= EARLIER_TASKS) break
      page = await store.listTasks(scope, { limit: PAGE, artifacts: false, after: page.next })
    }
  }
}

function msOf(timestamp = ''): number {
  return Date.parse(timestamp) || 0
}
