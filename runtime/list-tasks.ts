import type { ListTasksResponse } from '../machines/protocol/objects.ts'
import type { ListTasksRequest } from '../machines/protocol/requests.ts'
import type { Admitted } from './call.ts'
import type { OperationServices } from './operation-services.ts'
import { pageToken, placeOf } from './page-token.ts'
import { shownTask } from './shown.ts'
import type { StoredTask } from './store.ts'
import { completed, LARGE_BYTES } from './whole-task.ts'

const PAGE_SIZE = 50

/** How many bytes the tasks of a page have together, unless its first has more. */
export const PAGE_BYTES = 1024 * 1024

/**
 * ListTasks (§3.1.4): one page of the caller's tasks as they are now, latest status first. Over the pages of a list no
 * task comes twice, and none is missing that keeps its status. One whose status changes meanwhile stands in front from
 * then on: if it had not come yet, a new list begins with it. Without `historyLength` all of the history comes, as with
 * GetTask. A page ends before its tasks have more than 1 MiB together, but has one at least. `artifacts` is there, empty or not, exactly when it was asked for.
 */
export async function listTasks({ store }: OperationServices, { params, scope, reliable, room }: Admitted<ListTasksRequest>): Promise<ListTasksResponse> {
  const { contextId, status: state, statusTimestampAfter: since, pageSize = PAGE_SIZE, historyLength, includeArtifacts: artifacts = false } = params
  const filters = { contextId, state, since }
  const after = params.pageToken === undefined ? undefined : placeOf(params.pageToken, scope, filters)
  const { tasks, total, next } = await store.listTasks(scope, { ...filters, after, limit: pageSize, historyLength, artifacts, within: LARGE_BYTES, bytes: PAGE_BYTES })
  const whole: StoredTask[] = []
  for (const stored of tasks) whole.push(...orNone(await completed(store, scope, stored, { historyLength, artifacts }, room)))
  return {
    tasks: whole.map(stored => ({ ...(artifacts && { artifacts: [] }), ...shownTask(stored, reliable) })),
    nextPageToken: next ? pageToken(next, scope, filters) : '',
    pageSize,
    totalSize: total
  }
}

/** A task that was removed meanwhile is left out. */
function orNone(stored: StoredTask | undefined): StoredTask[] {
  return stored ? [stored] : []
}
