import { createHash } from 'node:crypto'
import { invalidParams, type A2AError } from '../../machines/protocol/errors.ts'
import type { ListTasksResponse } from '../../machines/protocol/objects.ts'
import type { ListTasksRequest } from '../../machines/protocol/requests.ts'
import type { Scope, StoredTask, TaskCursor, TaskQuery } from '../store/store.ts'
import { completed, LARGE_BYTES, PIECE_BYTES } from '../streams/whole-task.ts'
import { toWireTask } from '../streams/wire-view.ts'
import type { Admitted } from './admission.ts'
import type { OperationServices } from './dependencies.ts'

/** Length of a SHA-256 in base64url. */
const DIGEST_LENGTH = 43

/** The filters that a page token is bound to. */
export type Filters = Pick<TaskQuery, 'contextId' | 'state' | 'since'>

/**
 * A stateless cursor for a list: a digest of scope, filters and position, then the position. It stays valid as long as the tasks
 * exist, even after a restart, and reveals nothing that the page did not.
 */
export function pageToken(place: TaskCursor, scope: Scope, filters: Filters): string {
  const { timestamp, taskId } = place
  const { tenant, principal } = scope
  const { contextId = null, state = null, since = null } = filters
  const digest = createHash('sha256')
    .update(JSON.stringify([tenant, principal, contextId, state, since, timestamp, taskId]))
    .digest('base64url')
  return digest + Buffer.from(`${timestamp} ${taskId}`).toString('base64url')
}

/**
 * The position in a token for this scope and these filters. Throws InvalidParams for any other text. A forged token is harmless:
 * it can only name another position in the caller's own list.
 */
export function placeOf(token: string, scope: Scope, filters: Filters): TaskCursor {
  const text = Buffer.from(token.slice(DIGEST_LENGTH), 'base64url').toString()
  const space = text.indexOf(' ')
  const place = { timestamp: text.slice(0, Math.max(0, space)), taskId: text.slice(space + 1) }
  if (pageToken(place, scope, filters) !== token) throw invalidToken()
  return place
}

function invalidToken(): A2AError {
  return invalidParams({
    field: 'pageToken',
    description:
      'must be the nextPageToken of an answer to the same caller, with the same contextId, status and statusTimestampAfter. Leave it out to begin again'
  })
}

const PAGE_SIZE = 50

/** Maximum bytes of a page's tasks, unless the first has more. */
export const PAGE_BYTES = 1024 * 1024

/** Maximum bytes of tasks that are read at once. The others of a page are read in pieces. */
const AT_ONCE_BYTES = LARGE_BYTES / 2

/**
 * ListTasks (§3.1.4): one page of the caller's tasks, latest status first.
 *
 * Over the pages of a list no task comes twice, and no task whose status stays the same is missing. A task whose status changes
 * between pages moves to the front; if it had not come yet, only a new list has it. Without `historyLength` a task has its whole
 * history, as with GetTask. A page has at least one task, and ends before its tasks exceed 1 MiB. `artifacts` is present, even if
 * empty, exactly if the request includes artifacts.
 */
export async function listTasks(
  { store }: OperationServices,
  { params, scope, reliable, room }: Admitted<ListTasksRequest>
): Promise<ListTasksResponse> {
  const {
    contextId,
    status: state,
    statusTimestampAfter: since,
    pageSize = PAGE_SIZE,
    historyLength,
    includeArtifacts: artifacts = false
  } = params
  const filters = { contextId, state, since }
  const after = params.pageToken === undefined ? undefined : placeOf(params.pageToken, scope, filters)
  const { tasks, total, next } = await store.listTasks(scope, {
    ...filters,
    after,
    limit: pageSize,
    historyLength,
    artifacts,
    within: AT_ONCE_BYTES,
    bytes: PAGE_BYTES
  })
  const missing = tasks.reduce((sum, stored) => sum + missingBytes(stored), 0)
  if (missing > 0) await room?.(missing)
  const whole: StoredTask[] = []
  for (const piece of piecesOf(tasks)) {
    const read = await Promise.all(piece.map(stored => completed(store, scope, stored, { historyLength, artifacts })))
    // A task that was removed since is omitted.
    whole.push(...read.flatMap(stored => stored ?? []))
  }
  return {
    tasks: whole.map(stored => ({ ...(artifacts && { artifacts: [] }), ...toWireTask(stored, reliable) })),
    nextPageToken: next ? pageToken(next, scope, filters) : '',
    pageSize,
    totalSize: total
  }
}

/** The bytes of a task that a store gave without history and artifacts; 0 if it is whole. */
function missingBytes({ large }: StoredTask): number {
  return large?.bytes ?? 0
}

/** A page's tasks in order, in groups of which at most {@link PIECE_BYTES} are missing, or one task. */
function piecesOf(tasks: readonly StoredTask[]): StoredTask[][] {
  const pieces: StoredTask[][] = []
  let left = 0
  for (const stored of tasks) {
    left -= missingBytes(stored)
    const piece = pieces.at(-1)
    if (piece && left >= 0) piece.push(stored)
    else {
      pieces.push([stored])
      left = PIECE_BYTES - missingBytes(stored)
    }
  }
  return pieces
}
