import type { Task } from '../../../machines/protocol/objects.ts'
import { RELIABILITY_EXTENSION } from '../../../machines/protocol/uris.ts'
import type { AgentClient } from '../../client/connect.ts'
import type { Io } from '../command.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import { placeOf } from '../../client/requests.ts'
import { aboutKey, connectTo, type AgentPlace } from '../talk/agent-connection.ts'
import { everyTask, type Page } from './every-task.ts'
import type { Filters, FoundTask, TaskSource } from './source.ts'

/** The largest page that an agent returns. */
const PAGE = 100

/** The caller's own tasks, read through the agent. */
export async function agentSource(place: AgentPlace, io: Io): Promise<TaskSource> {
  const client = await connectTo(place, io)
  const { signal } = io
  const told = (error: unknown): never => {
    throw aboutKey(error, place)
  }
  const listed = (filters: Filters) => pagesOf(client, filters, signal)
  return {
    newest: async (filters, limit) => {
      const tasks: FoundTask[] = []
      const pageAfter = listed(filters)
      let after: string | undefined
      do {
        const page = await pageAfter(after).catch(told)
        tasks.push(...page.tasks)
        if (tasks.length > limit)
          return { tasks: tasks.slice(0, limit), total: Math.max(page.total, tasks.length), isMixed: false }
        after = page.next
      } while (after !== undefined)
      return { tasks, isMixed: false }
    },
    all: () => {
      let pageAfter = listed({})
      return everyTask((since, after: string | undefined) => {
        if (after === undefined) pageAfter = listed({ since })
        return pageAfter(after).catch(told)
      })
    },
    read: async id => found(await client.getTask({ id }, { signal }).catch(told)),
    events: (id, generation) => eventsUntil(client, id, generation, signal).catch(told),
    close: () => client.close()
  }
}

/** The stored events of a task up to a generation; the agent has to number them. */
async function eventsUntil(client: AgentClient, id: string, until: number, signal: AbortSignal): Promise<TaskEvent[]> {
  const events: TaskEvent[] = []
  for await (const event of client.subscribeToTask({ id }, { afterGeneration: 0, signal })) {
    const { generation = 0 } = placeOf(event)
    if ('statusUpdate' in event || 'artifactUpdate' in event) events.push({ taskId: id, generation, update: event })
    if (generation >= until) break
  }
  return events
}

/**
 * Reads a list page by page, each with the total number of matching tasks. The list ends at an empty page and at a token that it had
 * before, so that no agent makes it endless with these.
 */
function pagesOf(
  client: AgentClient,
  { contextId, state, since }: Filters,
  signal: AbortSignal
): (pageToken: string | undefined) => Promise<Page<string> & { total: number }> {
  const had = new Set([''])
  return async pageToken => {
    const { tasks, totalSize, nextPageToken } = await client.listTasks(
      {
        ...(contextId !== undefined && { contextId }),
        ...(state !== undefined && { status: state }),
        ...(since !== undefined && { statusTimestampAfter: since }),
        ...(pageToken !== undefined && { pageToken }),
        pageSize: PAGE,
        historyLength: 0,
        includeArtifacts: false
      },
      { signal }
    )
    const isLast = tasks.length === 0 || had.has(nextPageToken)
    had.add(nextPageToken)
    return { tasks: tasks.map(found), total: totalSize, next: isLast ? undefined : nextPageToken }
  }
}

function found(task: Task): FoundTask {
  const told = task.metadata?.[RELIABILITY_EXTENSION] as { generation?: unknown } | null | undefined
  const generation = told?.generation
  return { task, ...(typeof generation === 'number' && { generation }) }
}
