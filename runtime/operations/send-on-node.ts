import type { Message, SendMessageRequest } from '../../machines/protocol/objects.ts'
import type { TaskState } from '../../machines/protocol/states.ts'
import type { NativeVersion } from '../../machines/protocol/versions.ts'
import type { Conditions } from '../access/call-context.ts'
import type { Turn } from '../commits/commit-pipeline.ts'
import type { Scope } from '../store/rows.ts'
import type { StoredTask } from '../store/store.ts'
import { TaskTail } from '../streams/task-tail.ts'
import type { TraceCarrier } from '../telemetry/telemetry.ts'
import type { Admitted } from './admission.ts'
import type { Membership, ShardSelector } from './cluster.ts'
import type { OperationServices } from './dependencies.ts'
import { type AddressedKey, sendByKey, shardOfKey, toAddressedKey } from './keyed-messages.ts'
import type { MessageOutcome } from './route-message.ts'

type Call = Admitted<SendMessageRequest>

/** A message for another node, as JSON. */
export interface SentMessage {
  readonly scope: Scope
  readonly params: SendMessageRequest
  readonly extensions: readonly string[]
  readonly reliable: boolean
  readonly version: NativeVersion
  readonly isOnce: boolean
  readonly conditions: Conditions
  readonly dialect: string
  /** The client's own key for the task. */
  readonly key: AddressedKey | undefined
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
    }

/** Routes a message on the node of its context. One with a key is addressed before, since that decides the node. */
export function routeOnNode(
  services: OperationServices,
  call: Call,
  isStream: boolean,
  cluster: Membership,
  routeHere: (shard: number) => Promise<MessageOutcome>
): Promise<MessageOutcome> {
  const { key, params, scope } = call
  if (!key) return sendToOwner(services, call, undefined, isStream, cluster, routeHere)
  return sendByKey(services, scope, key, route => {
    const message = { ...params.message, ...route.address }
    const addressed = { ...call, params: { ...params, message } }
    return sendToOwner(services, addressed, toAddressedKey(key, route), isStream, cluster, routeHere)
  })
}

/**
 * Routes a message on the node of its context. Only this is done there: the caller's node follows the task and reads
 * it, so a node that fails later interrupts nobody.
 */
async function sendToOwner(
  services: OperationServices,
  call: Call,
  key: AddressedKey | undefined,
  isStream: boolean,
  cluster: Membership,
  routeHere: (shard: number) => Promise<MessageOutcome>
): Promise<MessageOutcome> {
  const { params, scope, extensions, reliable, version, isOnce, conditions, dialect, trace, signal, connection } = call
  const request: SentMessage = {
    scope,
    params,
    extensions,
    reliable,
    version,
    isOnce,
    conditions,
    dialect,
    key,
    trace,
    connection: connection && services.connections.nameOf(connection),
    isStream
  }
  const change = {
    name: 'send' as const,
    place: placeOf(services, call),
    request,
    isRepeatable: !key && (isOnce || services.deduplicate),
    signal
  }
  const made = await cluster.runOnOwner(change, routeHere)
  if ('here' in made) return made.here
  const outcome = made.there as SentOutcome
  if ('message' in outcome) return outcome
  const { row, contextId, opened, continued } = outcome
  const tail = new TaskTail(services, scope, row.taskId, { signal })
  // Later entries may have been published before the tail listened.
  tail.mayHaveMessages = true
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
 * Where a message belongs: with its task or its context. A first one with a key belongs to the shard of its key, so
 * that a second one meets it.
 */
function placeOf(services: OperationServices, { params: { message }, scope, key, isOnce }: Call): ShardSelector {
  const { taskId, contextId, messageId } = message
  if (taskId !== undefined) return { scope, taskId }
  if (contextId !== undefined) return { context: { ...scope, contextId } }
  if (key) return shardOfKey(scope, key.name)
  return isOnce || services.deduplicate
    ? { text: JSON.stringify([scope.tenant, scope.principal, messageId]) }
    : undefined
}
