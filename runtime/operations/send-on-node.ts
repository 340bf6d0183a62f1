import type { Message } from '../../machines/protocol/parts.ts'
import type { SendMessageRequest } from '../../machines/protocol/requests.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import type { Conditions } from '../access/call-context.ts'
import type { Turn } from '../commits/turn.ts'
import type { Scope } from '../store/rows.ts'
import type { StoredTask } from '../store/store.ts'
import { TaskTail } from '../streams/task-tail.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import type { Admitted } from './admission.ts'
import type { Membership, ShardSelector } from './cluster.ts'
import type { OperationServices } from './dependencies.ts'
import type { MessageOutcome } from './route-message.ts'
import { placeOfName } from './task-names.ts'

type Call = Admitted<SendMessageRequest>

/** A message for another node, as JSON. */
export interface SentMessage {
  readonly scope: Scope
  readonly params: SendMessageRequest
  readonly extensions: readonly string[]
  readonly reliable: boolean
  readonly conditions: Conditions
  readonly dialect: string
  /** The client's own name for the task. */
  readonly name: string | undefined
  readonly trace: TraceCarrier | undefined
  /** The connection of an anonymous caller. */
  readonly connection: string | undefined
  /** Whether the caller gets a stream, which begins with the task as the message has left it. */
  readonly isStream: boolean
}

/** The outcome of a message on another node, as JSON: the agent's answer, or the task that it reached. */
export type SentOutcome =
  | { readonly message: Message }
  | {
      readonly contextId: string
      readonly row: { readonly taskId: string; readonly generation: number; readonly state: TaskState }
      /** The events of the turn that opened the task: the caller's stream begins with them. */
      readonly opened?: Turn['log']
      readonly continued?: StoredTask
      /** The ended task of the same name. */
      readonly after?: string
    }

/**
 * Routes a message on the node of its context. Only this is done there: the caller's node follows the task and reads
 * it, so a node that fails later interrupts nobody.
 */
export async function routeOnNode(
  services: OperationServices,
  call: Call,
  isStream: boolean,
  cluster: Membership,
  routeHere: (shard: number) => Promise<MessageOutcome>
): Promise<MessageOutcome> {
  const { params, scope, extensions, reliable, conditions, dialect, taskName, trace, signal, connection } = call
  const request: SentMessage = {
    scope,
    params,
    extensions,
    reliable,
    conditions,
    dialect,
    name: taskName?.name,
    trace,
    connection: connection && services.connections.nameOf(connection),
    isStream
  }
  const change = {
    name: 'send' as const,
    place: await placeOf(services, call),
    request,
    isRepeatable: !taskName && (reliable || services.deduplicate),
    signal
  }
  const made = await cluster.runOnOwner(change, routeHere)
  if ('here' in made) return made.here
  const outcome = made.there as SentOutcome
  if ('message' in outcome) return outcome
  if (outcome.after !== undefined) taskName?.continuesAfter?.(outcome.after)
  const { row, contextId, opened, continued } = outcome
  const tail = new TaskTail(services, scope, row.taskId, { signal })
  // Other nodes send only events.
  tail.onMessage()
  // Later events may have been published before the tail listened.
  const stored = await services.store
    .readTask(scope, row.taskId, { historyLength: 0, artifacts: false })
    .catch((error: unknown) => {
      tail.end()
      throw error
    })
  return {
    key: { ...scope, contextId },
    row,
    tail: tail.startAfter(row.generation, stored?.generation),
    ...(opened && { opened: { log: opened } }),
    ...(continued && { continued })
  }
}

/**
 * Where a message belongs: with its task, its context, or the task of its name. A first one with a key belongs to the
 * shard of its key, so that a resent one meets it.
 */
async function placeOf(
  services: OperationServices,
  { params: { message }, scope, taskName, reliable }: Call
): Promise<ShardSelector> {
  const { taskId, contextId, messageId } = message
  const named = taskName && (await placeOfName(services, scope, taskName.name))
  if (named && !('text' in named)) return named
  if (taskId !== undefined) return { scope, taskId }
  if (contextId !== undefined) return { context: { ...scope, contextId } }
  if (named) return named
  return reliable || services.deduplicate
    ? { text: JSON.stringify([scope.tenant, scope.principal, messageId]) }
    : undefined
}
