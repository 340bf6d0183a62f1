import { isObject } from '../../../machines/protocol/codec/json.ts'
import type { ListTasksRequest, ListTasksResponse, Task } from '../../../machines/protocol/objects.ts'
import type { BindingTest } from '../binding-test.ts'
import { Unanswered } from '../callers/caller.ts'
import { SubjectUnderTest } from '../subject-under-test.ts'

/** The number of tasks in the tested list. */
const TASKS = 3

/** Opens more tasks in a context, and lists them: pages, order, filters (§3.1.4). */
export async function checkListTasks(subject: SubjectUnderTest): Promise<void> {
  const { trial } = subject
  const { contextId = '' } = subject.task
  const tasks = [subject.id, ...(await more(subject, contextId))]
  trial.options.ledger.learn('listed')
  const listed = await pages(trial, { contextId, pageSize: 1 }, tasks.length)
  const ids = listed.map(({ id }) => id)
  trial.check(69, new Set(ids).size === ids.length, 'no task twice', ids)
  trial.check(
    69,
    tasks.every(id => ids.includes(id)),
    `all of ${tasks.join(', ')}`,
    ids
  )
  trial.check(
    73,
    listed.every(task => task.contextId === contextId),
    `tasks of the context ${contextId} alone`,
    listed
  )
  const times = listed.map(({ status }) => String(status.timestamp))
  trial.check(
    70,
    times.every((time, i) => i === 0 || time <= String(times[i - 1])),
    'the latest status first',
    times
  )
  await sizes(trial, contextId, tasks.length)
  await artifacts(trial, contextId)
  await filters(trial, contextId, listed)
}

/**
 * Opens more tasks in the context with the same message, and waits until they stop, so that the list does not change.
 */
async function more({ trial, text }: SubjectUnderTest, contextId: string): Promise<string[]> {
  const ids: string[] = []
  while (ids.length < TASKS - 1) {
    trial.opens()
    const other = new SubjectUnderTest(trial, text)
    const outcome = await trial.ask([], 'SendMessage', other.says(text, { contextId }, { returnImmediately: true }))
    if (!('result' in outcome) || !isObject(outcome.result) || !isObject(outcome.result.task)) break
    other.see(outcome.result.task)
    await other.readUntil(() => other.isStopped)
    if (other.task.contextId === contextId) ids.push(other.id)
    else break
  }
  return ids
}

async function page(trial: BindingTest, id: number, params: ListTasksRequest): Promise<ListTasksResponse> {
  const found = await trial.result<ListTasksResponse>([id], 'ListTasks', params)
  if (isObject(found) && Array.isArray(found.tasks)) return found
  trial.check(id, false, 'a list of tasks', found)
  throw new Unanswered('no list')
}

async function pages(trial: BindingTest, params: ListTasksRequest, count: number): Promise<Task[]> {
  const tasks: Task[] = []
  let pageToken = ''
  for (let number = 0; number <= count; number += 1) {
    const found = await page(trial, 69, { ...params, ...(pageToken !== '' && { pageToken }) })
    tasks.push(...found.tasks)
    trial.check(71, typeof found.nextPageToken === 'string', 'nextPageToken, also where it is empty', found)
    trial.check(74, found.tasks.length <= 1 && found.pageSize === 1, 'pageSize 1, and a task at most', found)
    if (trial.binding === 'HTTP+JSON')
      trial.check(21, found.tasks.length <= 1, 'pageSize=1 in the query to be read', found)
    pageToken = found.nextPageToken
    if (!pageToken) break
  }
  trial.check(71, !pageToken, 'an empty nextPageToken on the last page', pageToken)
  return tasks
}

async function sizes(trial: BindingTest, contextId: string, count: number): Promise<void> {
  const usual = await page(trial, 74, { contextId })
  trial.check(
    74,
    usual.pageSize === 50 || usual.pageSize === usual.tasks.length,
    'pageSize 50, or that of the page',
    usual.pageSize
  )
  trial.check(
    74,
    usual.totalSize >= count && usual.totalSize === usual.tasks.length,
    `totalSize ${usual.tasks.length}`,
    usual.totalSize
  )
}

async function artifacts(trial: BindingTest, contextId: string): Promise<void> {
  const without = await page(trial, 72, { contextId })
  trial.check(
    72,
    without.tasks.every(task => !('artifacts' in task)),
    'tasks without the member artifacts',
    without
  )
  const withThem = await page(trial, 72, { contextId, includeArtifacts: true })
  trial.check(
    72,
    withThem.tasks.every(task => 'artifacts' in task),
    'tasks with the member artifacts',
    withThem,
    false
  )
}

async function filters(trial: BindingTest, contextId: string, [newest, ...others]: readonly Task[]): Promise<void> {
  if (!newest) return
  const {
    status: { state, timestamp }
  } = newest
  const ofState = await page(trial, 73, { contextId, status: state })
  const known = [newest, ...others].filter(({ status }) => status.state === state).length
  trial.check(
    73,
    ofState.tasks.length === known && ofState.tasks.every(({ status }) => status.state === state),
    `the ${known} tasks that are ${state}`,
    ofState
  )
  const inAnother = await page(trial, 73, { contextId: crypto.randomUUID() })
  trial.check(73, inAnother.tasks.length === 0, 'no task in a context that nobody has', inAnother)
  if (timestamp === undefined) return
  const since = await page(trial, 73, { contextId, statusTimestampAfter: timestamp })
  trial.check(
    73,
    since.tasks.some(({ id }) => id === newest.id),
    `the task whose status is of ${timestamp}, which counts`,
    since
  )
  const later = await page(trial, 73, { contextId, statusTimestampAfter: LATE })
  trial.check(73, later.tasks.length === 0, `no task from ${LATE} on`, later)
}

/** A time in the future. */
const LATE = '2999-01-01T00:00:00.000Z'
