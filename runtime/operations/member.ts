import type { SendMessageRequest } from '../../machines/protocol/objects.ts'
import type { RecoveryQueue } from '../contexts/recovery-queue.ts'
import { FORMAT } from '../snapshots/snapshot-text.ts'
import { firstRead, readOptionsFor } from '../streams/task-stream.ts'
import type { Admitted } from './admission.ts'
import type { OwnerCallName, ClusterMember } from './cluster.ts'
import { AUTHORIZED, type ChangeKind } from './deliver.ts'
import type { OperationServices } from './dependencies.ts'
import { fromAddressedKey, WITHDRAW } from './keyed-messages.ts'
import { NOTE } from './notes.ts'
import { CREATE_PUSH_CONFIG, DELETE_PUSH_CONFIG } from './push-configs.ts'
import { routeHere } from './send-message.ts'
import type { SentMessage, SentOutcome } from './send-on-node.ts'
import { CANCEL, erase } from './tasks.ts'

/** The changes that another node asks for, besides messages. */
const CHANGES: Readonly<Record<Exclude<OwnerCallName, 'send'>, ChangeKind<never, unknown>>> = {
  cancel: CANCEL,
  withdraw: WITHDRAW,
  authorized: AUTHORIZED,
  note: NOTE,
  createPushConfig: CREATE_PUSH_CONFIG,
  deletePushConfig: DELETE_PUSH_CONFIG
}

/**
 * The runtime of a node, for its cluster. The services are read when the cluster calls, because they have the cluster
 * themselves.
 */
export function memberOf(
  services: () => OperationServices,
  recoveryQueue: RecoveryQueue,
  version: string
): ClusterMember {
  const contextOf: ClusterMember['contextOf'] = async (scope, taskId) => {
    const stored = await services().store.readTask(scope, taskId, { historyLength: 0, artifacts: false })
    return stored && { ...scope, contextId: stored.task.contextId }
  }
  return {
    version,
    format: FORMAT,
    run: async (name, request, shard, signal) =>
      name === 'send'
        ? routeSent(services(), request as SentMessage, shard, signal)
        : CHANGES[name].run(services(), request as never),
    contextOf,
    listen(taskId, listener) {
      const { subscriptions } = services()
      subscriptions.listen(taskId, listener)
      return () => subscriptions.leave(taskId, listener)
    },
    publish: (taskId, entries) => services().subscriptions.publish(taskId, entries),
    advance: (taskId, generation) => services().subscriptions.advance(taskId, generation),
    generationOf: async (scope, taskId) =>
      (await services().store.readTask(scope, taskId, { historyLength: 0, artifacts: false }))?.generation,
    gained(isContinued) {
      const { contexts, push } = services()
      recoveryQueue.takesOver()
      contexts.gained(isContinued)
      push?.webhooks.start()
    },
    async release(isLost, isOrderly) {
      const { contexts, push } = services()
      await Promise.all([contexts.release(isLost.context, isOrderly), push?.webhooks.release(isLost.task)])
    },
    async withhold(whose, withheld, erased) {
      const { metering } = services()
      await erase(services(), whose, async () => {
        withheld()
        // The store has failed, or the node that erases. The contexts are restored.
        if (!(await erased)) throw new Error('Nothing was erased.')
        return true
      })
      metering.forget(whose)
    }
  }
}

/** Routes a message of another node. */
async function routeSent(
  services: OperationServices,
  { key, connection, isStream, ...sent }: SentMessage,
  shard: number,
  signal: AbortSignal
): Promise<SentOutcome> {
  const call: Admitted<SendMessageRequest> = {
    ...sent,
    key: key && fromAddressedKey(key),
    keyToCancel: undefined,
    connection: connection === undefined ? undefined : services.connections.named(connection),
    onGeneration: undefined,
    budget: undefined,
    signal
  }
  const outcome = await routeHere(services, call, shard)
  if ('message' in outcome) return outcome
  const {
    key: { contextId },
    row: { taskId, generation, state },
    tail,
    opened
  } = outcome
  tail.end()
  const continued =
    isStream && !opened
      ? await services.store.readTask(sent.scope, taskId, firstRead(readOptionsFor(sent, sent.params.configuration)))
      : undefined
  return {
    contextId,
    row: { taskId, generation, state },
    ...(continued && { continued }),
    ...(opened && { opened: opened.log.filter(entry => entry.taskId === taskId) })
  }
}
