import { toJson } from '../../machines/protocol/codec/json.ts'
import { A2AError, violationsText, type FieldViolation } from '../../machines/protocol/errors.ts'
import type { GetTaskRequest, Task } from '../../machines/protocol/objects.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import type { CallContext, NamedGeneration } from '../access/call-context.ts'
import { LOST_RACE, Turn } from '../commits/commit-pipeline.ts'
import type { ContextRegistry } from '../contexts/context-registry.ts'
import type { LiveContext } from '../contexts/context.ts'
import type { EventOptions, OutsideEvent, Refusal } from '../contexts/external-events.ts'
import { jsonLoss } from '../primitives/json.ts'
import type { Scope } from '../store/rows.ts'
import type { ContextKey, TaskRow } from '../store/store.ts'
import { readOptionsFor, readTaskOrThrow, readWholeOrThrow, toWireTask } from '../streams/task-stream.ts'
import type { Admitted } from './admission.ts'
import type { OwnerCallName, ShardSelector } from './cluster.ts'
import type { OperationServices } from './dependencies.ts'

const ATTEMPTS = 5

/**
 * A kind of change that only the node of its context makes. Request and result are JSON. Without a cluster, and for a
 * call of this node, `run` gets the connection of the caller.
 */
export interface ChangeKind<Request extends object, Result> {
  readonly name: OwnerCallName
  readonly placeOf: (request: Request) => ShardSelector
  /** Whether it may be made twice. */
  readonly isRepeatable: (request: Request) => boolean
  readonly run: (
    services: OperationServices,
    request: Request,
    connection?: CallContext['connection']
  ) => Promise<Result>
}

/** Makes a change: here, or on the node of a cluster that has its context. */
export async function runOnOwner<Request extends object, Result>(
  services: OperationServices,
  { name, placeOf, isRepeatable, run }: ChangeKind<Request, Result>,
  request: Request,
  { connection, signal }: Pick<CallContext, 'connection' | 'signal'>
): Promise<Result> {
  const { cluster } = services
  const here = () => run(services, request, connection)
  if (!cluster) return here()
  const call = { name, place: placeOf(request), request, isRepeatable: isRepeatable(request), signal }
  const made = await cluster.runOnOwner(call, here)
  return 'here' in made ? made.here : (made.there as Result)
}

/**
 * Optimistic concurrency: has a live context decide. If another process has written the context, loads it again and
 * retries.
 */
export async function withLostRaceRetry<T>(
  contexts: ContextRegistry,
  key: ContextKey,
  decide: (live: LiveContext) => Promise<T>,
  connection?: CallContext['connection'],
  attempts = ATTEMPTS
): Promise<T> {
  let live = await contexts.get(key, connection)
  // The context may leave memory again before this line runs.
  while (live.isOver) live = await contexts.get(key, connection)
  try {
    return await decide(live)
  } catch (error) {
    if (error !== LOST_RACE || attempts === 1) throw error
    return withLostRaceRetry(contexts, key, decide, connection, attempts - 1)
  }
}

/**
 * Sends an event to a task. After the commit, gives the task as the turn left it; `undefined` if the task does not take
 * the event in its state. Throws for any other refusal.
 */
export async function deliverEvent(
  live: LiveContext,
  event: OutsideEvent,
  options: EventOptions
): Promise<TaskRow | undefined> {
  const decided = await live.send(event, options)
  if (decided instanceof Turn) return decided.rowOf(event.taskId)
  const error = refusalError(event.taskId, decided)
  if (error) throw error
  return undefined
}

/** The error for an event that a task refused; `undefined` if it was for its state. */
function refusalError(taskId: string, refusal: Refusal): A2AError | undefined {
  if (refusal.reason === 'generation') return generationMismatch(taskId, refusal.expected, refusal.current)
  if (refusal.reason === 'answer') return notThisAnswer(refusal.violations)
  return refusal.reason === 'state' ? undefined : REFUSALS[refusal.reason](taskId)
}

const REFUSALS = { question: otherQuestion, queue: queueFull, bytes: taskFull }

function otherQuestion(taskId: string): A2AError {
  return new A2AError(
    'UnsupportedOperation',
    `Task ${taskId} no longer asks the question that this message answers. Read the task, then answer the question in its status, if there is one.`,
    {
      metadata: { taskId }
    }
  )
}

function queueFull(taskId: string): A2AError {
  return new A2AError(
    'RateLimited',
    `Task ${taskId} has too many messages waiting. Send the next one after it has asked.`,
    { metadata: { taskId } }
  )
}

function taskFull(taskId: string): A2AError {
  return new A2AError(
    'RateLimited',
    `Task ${taskId} has no room for a message of this size: it is near this agent's limit of bytes for one task. Send a smaller one, or start another task.`,
    {
      metadata: { taskId }
    }
  )
}

function notThisAnswer(violations: readonly FieldViolation[]): A2AError {
  return new A2AError(
    'InvalidParams',
    `The answer is not valid: ${violationsText(violations)}. The task still waits. Send a valid answer.`,
    { violations }
  )
}

/** The error for a task whose generation is not the one that the client expects, as A2A 1.1 has it. */
export function generationMismatch(taskId: string, expected: NamedGeneration, current: number): A2AError {
  return new A2AError(
    'TaskGenerationMismatch',
    `Task ${taskId} has generation ${current}, and the request expects ${expected}. Read the task again, then decide.`,
    { metadata: { taskId, expectedGeneration: String(expected), currentGeneration: String(current) } }
  )
}

/** Delivers out-of-band data to a task that waits for an authorization (§7.6.1), and answers with the task. */
export async function deliverAuthorization(
  services: OperationServices,
  call: Admitted<GetTaskRequest>,
  data: unknown
): Promise<Task> {
  const { params, scope, connection, signal } = call
  const request: GivenAuthorization = { scope, taskId: params.id, data: jsonOf(data) }
  const refusedIn = await runOnOwner(services, AUTHORIZED, request, { connection, signal })
  const stored = await readWholeOrThrow(services.store, scope, params.id, readOptionsFor(call))
  if (refusedIn !== null) throw authorizationNotAwaited(params.id, refusedIn)
  return toWireTask(stored, call)
}

/** An authorization for a task; `data` is JSON. */
export interface GivenAuthorization {
  readonly scope: Scope
  readonly taskId: string
  readonly data: unknown
}

/** Delivers data to a task. Gives the state of a task that does not wait for it, else null. */
export const AUTHORIZED: ChangeKind<GivenAuthorization, TaskState | null> = {
  name: 'authorized',
  placeOf: request => request,
  isRepeatable: () => false,
  run: authorizeHere
}

async function authorizeHere(
  { store, contexts }: OperationServices,
  { scope, taskId, data }: GivenAuthorization,
  connection?: CallContext['connection']
): Promise<TaskState | null> {
  const { contextId, status } = (await readTaskOrThrow(store, scope, taskId)).task
  const delivered = await withLostRaceRetry(
    contexts,
    { ...scope, contextId },
    async live => {
      await live.replayed(taskId)
      return deliverEvent(live, { type: 'authorization.received', taskId, data }, {})
    },
    connection
  )
  return delivered ? null : status.state
}

/** A copy of the data through JSON. Throws InvalidParams for data that JSON would change. */
function jsonOf(data: unknown): unknown {
  const loss = jsonLoss(data ?? null, 'data', 'kept')
  if (loss === undefined) return data === undefined ? data : toJson(data)
  throw new A2AError('InvalidParams', `Invalid parameters: ${loss}`, {
    violations: [{ field: 'data', description: loss.replace(/^data /, '') }]
  })
}

function authorizationNotAwaited(taskId: string, state: string): A2AError {
  return new A2AError(
    'UnsupportedOperation',
    `Task ${taskId} does not wait for an authorization, or not for this one (${state}).`,
    { metadata: { taskId, state } }
  )
}
