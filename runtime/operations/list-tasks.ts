import { createHash } from 'node:crypto'
import { invalidParams, type A2AError } from '../../machines/protocol/errors.ts'
import type { ListTasksResponse } from '../../machines/protocol/objects.ts'
import type { ListTasksRequest } from '../../machines/protocol/requests.ts'
import type { Scope, StoredTask, TaskCursor, TaskQuery } from '../store/store.ts'
import { completed, LARGE_BYTES } from '../streams/whole-task.ts'
import { toWireTask } from '../streams/wire-view.ts'
import type { Admitted } from './admission.ts'
import type { OperationServices } from './dependencies.ts'

/** Of a SHA-256 in base64url. */
const DIGEST_LENGTH = 43

/** What a page token is good for: the lists of one scope with these filters. */
export type Filters = Pick<TaskQuery, 'contextId' | 'state' | 'since'>

/**
 * A place in a list as text for the client to give back: a digest of whose list it is, by what filters, and of the place;
 * then the place. It needs no memory and no key here, so that it holds for as long as the tasks do, also after a restart;
 * it tells its owner nothing that the page did not.
 */
export function pageToken(place: TaskCursor, scope: Scope, filters: Filters): string {
  const { timestamp, taskId } = place
  const { tenant, principal } = scope
  const { contextId = null, state = null, since = null } = filters
  const digest = createHash('sha256').update(JSON.stringify([tenant, principal, contextId, state, since, timestamp, taskId])).digest('base64url')
  return digest + Buffer.from(`${timestamp} ${taskId}`).toString('base64url')
}

/**
 * The place in a token that was given out for this scope and these filters. Throws InvalidParams for any other text. Who
 * knows how tokens are made can make one, for a place in a list of their own: whose list is read is never up to the token.
 */
export function placeOf(token: string, scope: Scope, filters: Filters): TaskCursor {
  const text = Buffer.from(token.slice(DIGEST_LENGTH), 'base64url').toString()
  const space = text.indexOf(' ')
  const place = { timestamp: text.slice(0, Math.max(0, space)), taskId: text.slice(space + 1) }
  if (pageToken(place, scope, filters) !== token) throw notOurs()
  return place
}

function notOurs(): A2AError {
  return invalidParams({
    field: 'pageToken',
    description: 'must be the nextPageToken of an answer to the same caller, with the same contextId, status and statusTimestampAfter. Leave it out to begin again'
  })
}

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
    tasks: whole.map(stored => ({ ...(artifacts && { artifacts: [] }), ...toWireTask(stored, reliable) })),
    nextPageToken: next ? pageToken(next, scope, filters) : '',
    pageSize,
    totalSize: total
  }
}

/** A task that was removed meanwhile is left out. */
function orNone(stored: StoredTask | undefined): StoredTask[] {
  return stored ? [stored] : []
}
