import type { AgentCard, AgentInterface } from '../machines/protocol/card.ts'
import type { Task } from '../machines/protocol/objects.ts'
import {
  type OperationName,
  type OperationRequests,
  type OperationResults,
  OPERATIONS,
  type StreamingName
} from '../machines/protocol/operations.ts'
import type { Message } from '../machines/protocol/parts.ts'
import {
  type CallContext,
  readOrCount,
  scopeOf,
  type UncheckedCall,
  type UncheckedOperations,
  type UncheckedStream
} from './access/call-context.ts'
import { CallScheduler } from './access/call-scheduler.ts'
import { limitsWith } from './access/limits.ts'
import { ConnectionNames, Metering } from './access/quotas.ts'
import { Tenants } from './access/tenants.ts'
import { cardSecurityOf, extensionsOf } from './agent/agent-card.ts'
import { capabilitiesOf, refusedOperations } from './agent/capabilities.ts'
import { AgentCards } from './agent/signed-cards.ts'
import { contextLogic } from './contexts/context-logic.ts'
import { ContextRegistry } from './contexts/context-registry.ts'
import { runtimeClosing } from './contexts/errors.ts'
import { type Observation, type Observer, Observers } from './contexts/observers.ts'
import { RecoveryQueue } from './contexts/recovery-queue.ts'
import { isNegotiation } from './negotiation/negotiation.ts'
import { Admission } from './operations/admission.ts'
import { deliverAuthorization } from './operations/deliver.ts'
import type { OperationServices } from './operations/dependencies.ts'
import { checkIsKnown, extendedAgentCard } from './operations/extended-card.ts'
import { memberOf } from './operations/member.ts'
import { createPushConfig, deletePushConfig, getPushConfig, listPushConfigs } from './operations/push-configs.ts'
import { inputModesOf, sendMessage, sendStreamingMessage } from './operations/send-message.ts'
import { cancelNamed, type LookedUp, lookUpName } from './operations/task-names.ts'
import {
  cancelTask,
  type DataToErase,
  erase,
  erasureOf,
  getTask,
  listTasks,
  subscribeToTask
} from './operations/tasks.ts'
import { systemClock, withLongTimers } from './ports/clock.ts'
import { randomIds } from './ports/ids.ts'
import { consoleLogger, guardedLogger } from './ports/logger.ts'
import type { ContextMessage, WebhookBodyWriter } from './ports/webhook-sender.ts'
import { ReleasingMap } from './primitives/collections.ts'
import { PropertyWatch } from './property-watch.ts'
import { type Health, healthOf, RuntimeMetrics, CountWriter } from './runtime-metrics.ts'
import { checkRuntimeOptions, type RuntimeOptions, type Settings, settingsOf } from './runtime-options.ts'
import { memoryStore } from './store/memory/memory-store.ts'
import { RetentionSweeper, retentionWith } from './store/retention.ts'
import { RetryingReads } from './store/retrying-reads.ts'
import { TaskSubscriptions } from './streams/subscriptions.ts'
import { messagesBefore, roundsBefore } from './streams/task-stream.ts'
import { Counters, type MetricSource } from './telemetry/counters.ts'
import { callAttributes, runInSpan, type SpannedCall, spannedStream } from './telemetry/spans.ts'
import type { Telemetry, TelemetrySpan } from './telemetry/telemetry.ts'
import { Webhooks } from './webhooks/webhooks.ts'
import { CleanupTracker, TaskLoads } from './work/task-loads.ts'

type RuntimeOperations = {
  [Name in OperationName]: (
    params: OperationRequests[Name],
    call?: CallContext
  ) => Name extends StreamingName
    ? AsyncGenerator<OperationResults[Name], void, undefined>
    : Promise<OperationResults[Name]>
}

/**
 * A running agent, with one method for each operation of A2A (§3.1). Each validates its parameters, which are wire
 * JSON, and answers with wire JSON or a stream of it. Errors are `A2AError`s.
 */
export interface Runtime extends RuntimeOperations {
  /**
   * Delivers an out-of-band authorization to a task that waits for one (§7.6). `data` is any JSON value for its work.
   * It is stored until the task has ended, so pass a reference rather than a secret. Throws UnsupportedOperation if the
   * task waits for no authorization, InvalidParams if the data is invalid.
   */
  authorized(taskId: string, data: unknown, call?: CallContext): Promise<Task>
  /**
   * The target of a caller's own name for a task (`CallContext.taskName`): its newest task, the agent's answer without
   * a task, or that there is no answer yet; `undefined` for an unknown name. Does not call `authorize`.
   */
  taskNamed(name: string, call?: CallContext): Promise<LookedUp | undefined>
  /**
   * Earlier tasks of the same name, oldest first, as many as a message may refer to. Use it only for a task that
   * another operation has given to the caller, because it does not call `authorize`.
   */
  roundsBefore(taskId: string, call?: CallContext): Promise<Task[]>
  /**
   * The newest messages of a context, of all its tasks and of none, oldest first: those before the message that opened
   * a task, if one is given. They have 1 MiB together. Use it only for the context of a task or answer that another
   * operation has given to the caller.
   */
  messagesBefore(
    place: { readonly contextId: string; readonly taskId?: string | undefined },
    call?: CallContext
  ): Promise<ContextMessage[]>
  /**
   * Cancels what a caller's own name refers to, as CancelTask does. If that is an answer without a task, its
   * negotiation ends: `message` opens a task that is canceled at once. Waits for the answer to a message of the name
   * that is being negotiated.
   */
  cancelNamed(name: string, message: Message, call?: CallContext): Promise<Task>
  /**
   * The agent's card (§4.4.1) for a server with these interfaces: for all listed tenants, or for one, even if that does
   * not exist.
   */
  agentCard(interfaces: readonly AgentInterface[], tenant?: string): AgentCard
  /**
   * The agent's card, changed by `change`, then signed if the runtime signs cards. Rejects with InternalError if that
   * fails.
   */
  signedCard(
    interfaces: readonly AgentInterface[],
    tenant?: string,
    change?: (card: AgentCard) => AgentCard
  ): Promise<AgentCard>
  /**
   * Sets the writer for webhooks that were registered in an older version of A2A. Adapters for older versions call it.
   */
  writesWebhooks(version: string, writing: WebhookBodyWriter): void
  /** Whether the runtime can serve calls now: what `/readyz` of its servers answers. Reads memory only. */
  health(): Health
  /**
   * Counters and gauges of the runtime and its servers, for `metricsText` of `taskchart/http` or an exporter of
   * yours.
   */
  readonly metrics: MetricSource
  /** Settings for servers of this runtime. */
  readonly settings: Settings
  /**
   * Erases everything of a context, or of a principal without `contextId`; `false` if there was nothing. Live tasks
   * stop first, as if canceled: open streams and waiting calls end with TaskNotFound. During the erasure, requests for
   * the data wait, and requests for a new context of the principal are refused with Overloaded. If the store fails, it
   * rejects, and the tasks resume.
   */
  erase(data: DataToErase): Promise<boolean>
  /**
   * Adds an observer, which is called for each context in memory, then for each that enters or leaves memory, and for
   * all commits. It is for inspectors, and costs nothing without observers.
   */
  observe(observer: Observer): Observation
  /** Resolves when everything decided so far is committed and published. Servers wait for it before they close. */
  settled(): Promise<void>
  /** Stops the actors and closes the store. Waiting calls and open streams end with Overloaded. May be called twice. */
  close(): Promise<void>
}

/**
 * Runs an agent, and resumes the tasks in its store. Throws RangeError for an invalid limit or retention, TypeError for
 * an unknown option or one of another kind.
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  checkRuntimeOptions(options)
  const { agent, store = memoryStore(), ids = randomIds, dedupe = false, authenticate, authorize, telemetry } = options
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
  const countWriter =
    store.countTransitions && typeof agent.work === 'object' ? new CountWriter({ store, clock, logger }) : undefined
  const contexts = new ContextRegistry({
    store,
    reads,
    clock,
    ids,
    logger,
    limits,
    sharesByTenant: tenants.areSeveral,
    metering,
    subscriptions: subscriptions,
    loads,
    logic: contextLogic(agent, countWriter?.counter),
    agent,
    cleanUps,
    recoveryQueue,
    observers,
    counters,
    telemetry,
    webhooks,
    owns: options.cluster && (key => cluster?.owns(key) === true)
  })
  const sweeper = new RetentionSweeper({ store, clock, logger }, retentionWith(options.retention))
  // Operations.
  const cluster = options.cluster?.join(memberOf(() => services, recoveryQueue, agent.version))
  if (cluster) subscriptions.followed = cluster.followed
  const services: OperationServices = {
    cluster,
    store,
    contexts,
    subscriptions: subscriptions,
    clock,
    ids,
    limits,
    metering,
    dedupe,
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
    refused: refusedOperations(capabilities)
  })
  const health = () => healthOf({ calls, contexts, store, clock })
  const metrics = new RuntimeMetrics({ counters, contexts, store, clock, scheduler, webhooks, health, cluster })
  const unmeter = telemetry?.meter?.(metrics)
  let closed: Promise<void> | undefined

  const close = async () => {
    calls.close()
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
    await store.close()
  }
  contexts.resume()
  webhooks?.start()

  const runtime: Runtime = {
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
    taskNamed: (name, call = {}) =>
      calls.hideErrors('taskNamed', call, () =>
        lookUpName(services, calls.check('getTask', { id: name }, call).scope, name)
      ),
    roundsBefore: (taskId, call = {}) =>
      calls.hideErrors('roundsBefore', call, () => roundsBefore(services, scopeOf({}, call), taskId, call.room)),
    messagesBefore: (place, call = {}) =>
      calls.hideErrors('messagesBefore', call, () =>
        messagesBefore(store, { ...scopeOf({}, call), contextId: place.contextId }, place.taskId)
      ),
    cancelNamed: (name, message, call = {}) =>
      calls.answer('cancelTask', { id: name }, call, (_, admitted) => cancelNamed(services, admitted, message)),
    createTaskPushNotificationConfig: (params, call = {}) =>
      calls.answer('createTaskPushNotificationConfig', params, call, createPushConfig),
    getTaskPushNotificationConfig: (params, call = {}) =>
      calls.answer('getTaskPushNotificationConfig', params, call, getPushConfig),
    listTaskPushNotificationConfigs: (params, call = {}) =>
      calls.answer('listTaskPushNotificationConfigs', params, call, listPushConfigs),
    deleteTaskPushNotificationConfig: (params, call = {}) =>
      calls.answer('deleteTaskPushNotificationConfig', params, call, deletePushConfig),
    getExtendedAgentCard: async (params, call = {}) => {
      if (capabilities.extendedAgentCard) readOrCount(metering.countRejected, call, params, () => checkIsKnown(call))
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
      calls.checkOpen()
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
      return { agent, store, ...(cluster && { cluster: cluster.observed }), stop }
    },
    settled: () => contexts.settled(),
    close: () => (closed ??= close())
  }
  return telemetry ? tracedRuntime(runtime, telemetry) : runtime
}

export type { RuntimeOptions }

/**
 * A runtime with a span of kind `server` for each call, in the trace of the call, else below the active span. The span
 * lasts as long as the caller waits, or reads the stream. Tasks that the call opens belong to its trace.
 */
function tracedRuntime(runtime: Runtime, telemetry: Telemetry): Runtime {
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
