import { fitting, type Scope } from '../../../runtime/store/rows.ts'
import type { TaskCursor, TaskQuery } from '../../../runtime/store/store.ts'
import { originalText, storedText, unlessDamaged } from '../../rows/damage.ts'
import type { Session } from '../session/session.ts'
import { TASK_AT, taskOf, type PgContext, type PgTask } from '../write/row-shapes.ts'
import { READS, STATES } from './statements.ts'

/** Sorts after the time of every status. */
const NO_END = '~'

/** The rows of a page, the number of all matches, and the cursor of the next page. */
export interface ListedRows {
  readonly rows: PgTask[]
  readonly total: number
  readonly next?: TaskCursor
}

/**
 * Finds a page of a scope, or of one of its contexts. Damaged rows are reported and left out, though counted in the
 * total.
 */
export async function readTaskPage(
  session: Session,
  scope: Scope,
  context: PgContext | undefined,
  query: TaskQuery,
  report: (taskId: string, error: Error) => void
): Promise<ListedRows> {
  const { state, since = '', after, limit, bytes } = query
  const states = state === undefined ? STATES : [state]
  const names = [storedText(scope.tenant), storedText(scope.principal)]
  const [time, taskId] = after ? [storedText(after.timestamp), storedText(after.taskId)] : [NO_END, '']
  const of = context ? [context.context] : names
  const found = await session.rows(context ? READS.pageOfContext : READS.pageOfScope, [
    states,
    storedText(since),
    time,
    taskId,
    limit + 1,
    ...of
  ])
  const [[total] = []] =
    context || since !== ''
      ? await session.rows(context ? READS.countOfContext : READS.countOfScope, [states, ...of, storedText(since)])
      : await session.rows(READS.total, [...names, states])
  const page = fitting(found.slice(0, limit), bytes, fields => Number(fields[TASK_AT.bytes]))
  const last = page.at(-1)
  const rows = page.flatMap(
    fields =>
      unlessDamaged(
        () => taskOf(fields),
        error => report(String(fields[TASK_AT.taskId]), error)
      ) ?? []
  )
  return {
    rows,
    total: Number(total),
    ...(last &&
      found.length > page.length && {
        next: {
          timestamp: originalText(String(last[TASK_AT.time])),
          taskId: originalText(String(last[TASK_AT.taskId]))
        }
      })
  }
}
