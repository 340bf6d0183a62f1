import { OPERATIONS } from '../machines/protocol/operations.ts'
import {
  type CallContext,
  type UncheckedCall,
  type UncheckedOperations,
  type UncheckedStream
} from './access/call-context.ts'
import { CallScheduler } from './access/call-scheduler.ts'
import { limitsWith } from './access/limits.ts'
import { Metering } from './access/quotas.ts'
import { scopeOf, Tenants } from './access/tenants.ts'
import { cardSecurityOf, extensionsOf } from './agent/agent-card.ts'
import { capabilitiesOf, refusedOperations } from './agent/capabilities.ts'
import { AgentCards } from './agent/signed-cards.ts'
import { ContextRegistry } from './contexts/context-registry.ts'
import { contextLogic } from './contexts/context.ts'
import { countWriterOf } from './contexts/count-writer.ts'
import { RuntimeState } from './contexts/dependencies.ts'
import { EarlierTasks } from './contexts/earlier-tasks.ts'
import { runtimeClosing } from './contexts/errors.ts'
import { NewerTasks } from './contexts/newer-tasks.ts'
import { Observers } from './contexts/observers.ts'
import { RecoveryQueue } from './contexts/recovery-queue.ts'
import { DefinitionWriter } from './definitions/definition-writer.ts'
import { isNegotiation } from './negotiation/negotiation.ts'
import { Admission } from './operations/admission.ts'
import { ConnectionNames } from './operations/cluster.ts'
import { deliverAuthorization } from './operations/deliver.ts'
import type { OperationServices } from './operations/dependencies.ts'
import { checkIsKnown, extendedAgentCard } from './operations/extended-card.ts'
import { findByKey } from './operations/keyed-messages.ts'
import { memberOf } from './operations/member.ts'
import { readNote, writeNote } from './operations/notes.ts'
import { createPushConfig, deletePushConfig, getPushConfig, listPushConfigs } from './operations/push-configs.ts'
import { inputModesOf, sendMessage, sendStreamingMessage } from './operations/send-message.ts'
import { cancelTask, erase, erasureOf, getTask, listTasks, subscribeToTask } from './operations/tasks.ts'
import { systemClock, withLongTimers } from './ports/clock.ts'
import { randomIds } from './ports/ids.ts'
import { consoleLogger, guardedLogger } from './ports/logger.ts'
import { ReleasingMap } from './primitives/collections.ts'
import { PropertyWatch } from './property-watch.ts'
import { healthOf, RuntimeMetrics } from './runtime-metrics.ts'
import {
  checkRuntimeOptions,
  type Runtime,
  type NodeRuntimeOptions,
  type RuntimeOptions,
  type ServedRuntime,
  settingsOf
} from './runtime-options.ts'
import { TaskStamps } from './snapshots/snapshot-text.ts'
import { memoryStore } from './store/memory/memory-store.ts'
import { RetentionSweeper, retentionWith } from './store/retention.ts'
import { RetryingReads } from './store/retrying-reads.ts'
import { TaskSubscriptions } from './streams/task-tail.ts'
import { Counters } from './telemetry/counters.ts'
import { callAttributes, runInSpan, type SpannedCall, spannedStream } from './telemetry/spans.ts'
import type { Telemetry, TelemetrySpan } from './telemetry/telemetry.ts'
import { Webhooks } from './webhooks/webhooks.ts'
import { CleanupTracker, TaskLoads } from './work/task-loads.ts'

/**
 * Runs an agent, and resumes the tasks in its store. Throws RangeError for an invalid limit or retention, TypeError for
 * an unknown option or one of another kind.
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  return createNode(options)
}

/** Runs an agent as a node of a cluster, or alone. Throws as `createRuntime` does. */
export function createNode(options: NodeRuntimeOptions): Runtime {
  checkRuntimeOptions(options)
  const {
    agent,
    store = memoryStore(),
    ids = randomIds,
    deduplicate = false,
    authenticate,
    authorize,
    telemetry
  } = options
  const clock = withLongTimers(options.clock ?? options.cluster?.clock ?? systemClock)
  const logger = guardedLogger(options.logger ?? consoleLogger)
  const limits = limitsWith(options.limits)
  // Capabilities, tenants and quotas.
  const capabilities = capabilitiesOf(agent, options.push !== undefined)
  const extensions = extensionsOf(agent)
  const tenants = new Tenants(options.tenants, limits, logger)
  const metering = new Metering({
    store,
    clock,
    limits,
    tenants,
    shared: options.cluster && { inTurn: agent.negotiate === undefined }
  })
  const cards = new AgentCards(
    { agent, security: authenticate ? cardSecurityOf(authenticate) : {}, capabilities },
    tenants,
    options.signCard,
    { limits, clock, logger }
  )
  const scheduler = new CallScheduler()
  const counters = new Counters()
  const settings = settingsOf(options, {
    capabilities,
    limits,
    logger,
    clock,
    extensions,
    metering,
    tenants,
    scheduler,
    counters
  })
  // Contexts, streams, webhooks and observers.
  const state = new RuntimeState()
  const subscriptions = new TaskSubscriptions()
  const observers = new Observers(logger)
  if (options.observeProperties) observers.add(new PropertyWatch({ agent, store, clock, logger, counters }))
  const sender = capabilities.pushNotifications ? options.push : undefined
  const webhooks =
    sender && new Webhooks({ store, clock, logger, limits, counters, sender, sharesByTenant: tenants.areSeveral })
  const cleanUps = new CleanupTracker(clock, logger, agent.cancelGraceMs)
  const recoveryQueue = new RecoveryQueue(clock)
  const reads = new RetryingReads(store, clock)
  const loads = new TaskLoads({ store: reads, limits, logger })
  const countWriter = countWriterOf(agent, { store, clock, logger })
  const earlierTasks =
    agent.earlier && store.countVersions
      ? new EarlierTasks({ agent, countVersions: store.countVersions.bind(store), clock, logger })
      : undefined
  const { localModules } = options
  const definitions = new DefinitionWriter({ agent, store, clock, logger, modules: localModules })
  const contexts = new ContextRegistry({
    state,
    store,
    reads,
    clock,
    ids,
    logger,
    limits,
    sharesByTenant: tenants.areSeveral,
    metering,
    subscriptions,
    loads,
    logic: contextLogic(agent, countWriter?.counter),
    agent,
    cleanUps,
    recoveryQueue,
    observers,
    counters,
    telemetry,
    webhooks,
    stamps: new TaskStamps(version => definitions.store(version)),
    earlierTasks,
    newerTasks: options.cluster && new NewerTasks({ agent, logger, counters }),
    owns: options.cluster && (key => cluster?.owns(key) === true)
  })
  const sweeper = new RetentionSweeper({ store, clock, logger }, retentionWith(options.retention))
  // Operations.
  const cluster = options.cluster?.join(memberOf(() => services, recoveryQueue, agent.version))
  if (cluster) subscriptions.followed = cluster.followed
  const services: OperationServices = {
    state,
    cluster,
    newIds: {
      contextId: shard => (cluster && shard !== undefined ? cluster.contextId(shard) : ids()),
      taskId: key => (cluster ? cluster.taskId(key) : ids())
    },
    store,
    contexts,
    subscriptions,
    clock,
    ids,
    limits,
    metering,
    deduplicate,
    pendingSends: new ReleasingMap<never>(),
    connections: new ConnectionNames(),
    takesMessages: agent.messages !== 'reject',
    inputModes: inputModesOf(agent.card),
    negotiation: isNegotiation(agent.negotiate) ? agent.negotiate : undefined,
    opening: agent.negotiate ? undefined : agent.input,
    push: sender && webhooks && { sender, webhooks }
  }
  const calls = new Admission(services, {
    logger,
    counters,
    tenants,
    authorize,
    scheduler,
    schedulesAll: tenants.listed !== undefined || authenticate !== undefined,
    extensions,
    versions: settings.versions,
    refused: refusedOperations(capabilities)
  })
  const health = () => healthOf({ state, store, clock })
  const metrics = new RuntimeMetrics({ counters, contexts, store, clock, scheduler, webhooks, health, cluster })
  const unmeter = telemetry?.meter?.(metrics)
  let closed: Promise<void> | undefined

  const close = async () => {
    state.phase = 'closing'
    unmeter?.()
    metrics.stop()
    recoveryQueue.close()
    reads.close()
    const delivered = webhooks?.close()
    // A node that has left has no shard to write to.
    await countWriter?.flush()
    await cluster?.leave()
    await contexts.processEnds()
    const erased = contexts.close()
    const swept = sweeper.close()
    subscriptions.close(runtimeClosing())
    await cleanUps.settled()
    await Promise.all([erased, swept, delivered])
    await countWriter?.flush()
    await earlierTasks?.close()
    await definitions.close()
    await store.close()
  }
  contexts.resume()
  webhooks?.start()

  const runtime: ServedRuntime = {
    sendMessage: (params, call = {}) => calls.answer('sendMessage', params, call, sendMessage),
    sendStreamingMessage: (params, call = {}) =>
      calls.stream('sendStreamingMessage', params, call, sendStreamingMessage),
    getTask: (params, call = {}) => calls.answer('getTask', params, call, getTask),
    listTasks: (params, call = {}) => calls.answer('listTasks', params, call, listTasks),
    cancelTask: (params, call = {}) => calls.answer('cancelTask', params, call, cancelTask),
    subscribeToTask: (params, call = {}) => calls.stream('subscribeToTask', params, call, subscribeToTask),
    authorized: (id, data, call = {}) =>
      calls.answer(
        'getTask',
        { id },
        call,
        (_, admitted) => deliverAuthorization(services, admitted, data),
        'authorized'
      ),
    findByKey: (name, call = {}) =>
      calls.hideErrors('findByKey', call, () =>
        findByKey(services, calls.check('getTask', { id: name }, call).scope, name)
      ),
    readNote: (name, call) => calls.hideErrors('readNote', call, () => readNote(services, scopeOf({}, call), name)),
    writeNote: (change, call) =>
      calls.hideErrors('writeNote', call, () => writeNote(services, scopeOf({}, call), change, call)),
    readHistory: (call, read) => calls.hideErrors('readHistory', call, () => read(store, scopeOf({}, call))),
    createTaskPushNotificationConfig: (params, call = {}) =>
      calls.answer('createTaskPushNotificationConfig', params, call, createPushConfig),
    getTaskPushNotificationConfig: (params, call = {}) =>
      calls.answer('getTaskPushNotificationConfig', params, call, getPushConfig),
    listTaskPushNotificationConfigs: (params, call = {}) =>
      calls.answer('listTaskPushNotificationConfigs', params, call, listPushConfigs),
    deleteTaskPushNotificationConfig: (params, call = {}) =>
      calls.answer('deleteTaskPushNotificationConfig', params, call, deletePushConfig),
    getExtendedAgentCard: async (params, call = {}) => {
      if (capabilities.extendedAgentCard) settings.rejected.read(call, params, () => checkIsKnown(call))
      return calls.answer('getExtendedAgentCard', params, call, async (_, admitted) =>
        cards.signed(await extendedAgentCard(cards.source, admitted, call, { limits, clock, logger, tenants }))
      )
    },
    agentCard: (interfaces, tenant) => cards.publicCard(interfaces, tenant),
    signedCard: (interfaces, tenant, change = card => card) =>
      calls.hideErrors('signedCard', {}, () => cards.signed(change(cards.publicCard(interfaces, tenant)))),
    writesWebhooks: (version, writing) => void webhooks?.writings.set(version, writing),
    health,
    metrics,
    settings,
    erase: async data => {
      const whose = erasureOf(data)
      state.checkOpen()
      const eraseHere = () => erase(services, whose)
      const isErased = await (cluster ? cluster.erase(whose, eraseHere) : eraseHere()).finally(() =>
        metering.forget(whose)
      )
      observers.active?.erased(whose)
      return isErased
    },
    observe: observer => {
      const stop = observers.add(observer)
      for (const live of contexts.live) observer.entered?.(live)
      return {
        agent,
        store,
        ...(cluster && { cluster: cluster.observed }),
        ...(localModules && { localModules }),
        stop
      }
    },
    settled: () => contexts.settled(),
    close: () => (closed ??= close())
  }
  return telemetry ? tracedRuntime(runtime, telemetry) : runtime
}

/**
 * A runtime with a span of kind `server` for each call, in the trace of the call, else below the active span. The span
 * lasts as long as the caller waits, or reads the stream. Tasks that the call opens belong to its trace.
 */
function tracedRuntime(runtime: ServedRuntime, telemetry: Telemetry): ServedRuntime {
  const operations: UncheckedOperations = runtime
  const spannedCall = (method: string, params: unknown, { binding, trace, signal }: CallContext): SpannedCall => ({
    begin: () =>
      telemetry.begin({
        name: method,
        kind: 'server',
        parent: trace,
        attributes: callAttributes(method, binding, params)
      }),
    binding,
    signal
  })
  const within = (call: CallContext, { carrier }: TelemetrySpan): CallContext => ({ ...call, trace: carrier })
  const traced = Object.entries(OPERATIONS).map(([method, operation]) => {
    if (operation.streaming) {
      const stream: UncheckedStream = (params, call = {}) =>
        spannedStream(spannedCall(method, params, call), span => operations[operation.name](params, within(call, span)))
      return [operation.name, stream]
    }
    const answer: UncheckedCall = (params, call = {}) =>
      runInSpan(spannedCall(method, params, call), span => operations[operation.name](params, within(call, span)))
    return [operation.name, answer]
  })
  return Object.assign({}, runtime, Object.fromEntries(traced))
}
