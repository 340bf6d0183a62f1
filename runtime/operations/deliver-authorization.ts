import { A2AError } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { GetTaskRequest } from '../../machines/protocol/requests.ts'
import { keptValue } from '../authoring/checked-words.ts'
import { readTaskOrThrow } from '../contexts/errors.ts'
import { toWireTask } from '../streams/wire-view.ts'
import type { Admitted } from './admission.ts'
import { withLostRaceRetry, deliver } from './deliver.ts'
import type { OperationServices } from './dependencies.ts'

/** Delivers out-of-band data to a task that waits for an authorization (§7.6.1), and answers with the task. */
export async function deliverAuthorization({ store, contexts }: OperationServices, { params, scope, connection, reliable }: Admitted<GetTaskRequest>, data: unknown): Promise<Task> {
  const { id: taskId } = params
  const given = jsonOf(data)
  const { contextId, status } = (await readTaskOrThrow(store, scope, taskId)).task
  const taken = await withLostRaceRetry(contexts, { ...scope, contextId }, async live => {
    await live.caughtUp(taskId)
    return deliver(live, { type: 'authorization.received', taskId, data: given }, {})
  }, connection)
  const stored = await readTaskOrThrow(store, scope, taskId, {})
  if (!taken) throw notAsked(taskId, status.state)
  return toWireTask(stored, reliable)
}

function jsonOf(data: unknown): unknown {
  try {
    return keptValue(data, 'data')
  } catch (cause) {
    const description = 'must be JSON: without cycles, BigInt, Map, Set and Date'
    throw new A2AError('InvalidParams', `Invalid parameters: data ${description}`, { violations: [{ field: 'data', description }], cause })
  }
}

function notAsked(taskId: string, state: string): A2AError {
  return new A2AError('UnsupportedOperation', `Task ${taskId} does not wait for an authorization, or not for this one (${state}).`, { metadata: { taskId, state } })
}
