import type { ListTasksResponse } from '../machines/protocol/objects.ts'
import type { ListTasksRequest } from '../machines/protocol/requests.ts'
import type { Admitted } from './call.ts'
import type { OperationServices } from './operation-services.ts'
import { pageToken, placeOf } from './page-token.ts'
import { shownTask } from './shown.ts'

const PAGE_SIZE = 50

/**
 * ListTasks (§3.1.4): one page of the caller's tasks as they are now, latest status first. Over the pages of a list no
 * task comes twice, and none is missing that keeps its status. One whose status changes meanwhile stands in front from
 * then on: if it had not come yet, a new list begins with it. Without `historyLength` all of the history comes, as with
 * GetTask; `artifacts` is there, empty or not, exactly when it was asked for.
 */
export async function listTasks({ store }: OperationServices, { params, scope, reliable }: Admitted<ListTasksRequest>): Promise<ListTasksResponse> {
  const { contextId, status: state, statusTimestampAfter: since, pageSize = PAGE_SIZE, historyLength, includeArtifacts: artifacts = false } = params
  const filters = { contextId, state, since }
  const after = params.pageToken === undefined ? undefined : placeOf(params.pageToken, scope, filters)
  const { tasks, total, next } = await store.listTasks(scope, { ...filters, after, limit: pageSize, historyLength, artifacts })
  return {
    tasks: tasks.map(stored => ({ ...(artifacts && { artifacts: [] }), ...shownTask(stored, reliable) })),
    nextPageToken: next ? pageToken(next, scope, filters) : '',
    pageSize,
    totalSize: total
  }
}
