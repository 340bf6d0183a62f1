import { A2AError } from '../../machines/protocol/errors.ts'
import type { Task } from '../../machines/protocol/objects.ts'
import type { GetTaskRequest } from '../../machines/protocol/requests.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import type { CallContext } from '../access/call-context.ts'
import { keptValue } from '../authoring/checked-words.ts'
import { readTaskOrThrow } from '../contexts/errors.ts'
import type { Scope } from '../store/store.ts'
import { toWireTask } from '../streams/wire-view.ts'
import type { Admitted } from './admission.ts'
import { withLostRaceRetry, deliver, makeOnNode } from './deliver.ts'
import type { OperationServices } from './dependencies.ts'

/** Delivers out-of-band data to a task that waits for an authorization (§7.6.1), and answers with the task. */
export async function deliverAuthorization(services: OperationServices, { params, scope, connection, reliable, signal }: Admitted<GetTaskRequest>, data: unknown): Promise<Task> {
  const request: GivenAuthorization = { scope, taskId: params.id, data: jsonOf(data) }
  const refusedIn = await makeOnNode(services, { name: 'authorized', place: request, request, isRepeatable: false, signal }, () => authorizeHere(services, request, connection))
  const stored = await readTaskOrThrow(services.store, scope, params.id, {})
  if (refusedIn !== null) throw notAsked(params.id, refusedIn)
  return toWireTask(stored, reliable)
}

/** An authorization for a task; `data` is JSON. */
export interface GivenAuthorization {
  readonly scope: Scope
  readonly taskId: string
  readonly data: unknown
}

/** Delivers data to a task of this node. Gives the state of a task that does not wait for it, else null. */
export async function authorizeHere({ store, contexts }: OperationServices, { scope, taskId, data }: GivenAuthorization, connection?: CallContext['connection']): Promise<TaskState | null> {
  const { contextId, status } = (await readTaskOrThrow(store, scope, taskId)).task
  const taken = await withLostRaceRetry(contexts, { ...scope, contextId }, async live => {
    await live.caughtUp(taskId)
    return deliver(live, { type: 'authorization.received', taskId, data }, {})
  }, connection)
  return taken ? null : status.state
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
