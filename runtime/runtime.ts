import type { AgentCard, AgentInterface } from '../machines/protocol/card.ts'
import { A2AError } from '../machines/protocol/errors.ts'
import type { ListTasksResponse, SendMessageResponse, StreamResponse, Task } from '../machines/protocol/objects.ts'
import type { OperationName, OperationRequests } from '../machines/protocol/operations.ts'
import type { ListTaskPushNotificationConfigsResponse, TaskPushNotificationConfig } from '../machines/protocol/push.ts'
import { NEGOTIATION_EXTENSION, RELIABILITY_EXTENSION } from '../machines/protocol/uris.ts'
import { checkPermission, type AuthorizationRequest } from './access/authorization.ts'
import { callerOf, scopeOf, type CallContext } from './access/call-context.ts'
import { BEGINNING, FairQueue, READING } from './access/fair-queue.ts'
import { limitsWith } from './access/limits.ts'
import { counted, Metering } from './access/quotas.ts'
import { nowhereFor, Tenants } from './access/tenants.ts'
import { unfinishedBytes } from './access/unfinished-bytes.ts'
import { agentCard, cardSecurityOf, challengeOf } from './agent/agent-card.ts'
import { capabilitiesOf, refusedOperations } from './agent/capabilities.ts'
import { SignedCards } from './agent/signed-cards.ts'
import { tenantInterfaces } from './agent/tenant-interfaces.ts'
import { extensionsWith } from './authoring/extensions.ts'
import { contextLogic } from './contexts/context-logic.ts'
import { ContextRegistry } from './contexts/context-registry.ts'
import { Observers, type Observation, type Observer } from './contexts/observers.ts'
import { RecoveryQueue } from './contexts/recovery-queue.ts'
import { isNegotiation } from './negotiation/negotiation.ts'
import { admit, type Admitted } from './operations/admission.ts'
import { deliverAuthorization } from './operations/deliver-authorization.ts'
import type { OperationServices } from './operations/dependencies.ts'
import { erase, erasureOf, type DataToErase } from './operations/erase.ts'
import { checkIsKnown, extendedAgentCard } from './operations/extended-card.ts'
import { inputModesOf } from './operations/input-modes.ts'
import { listTasks } from './operations/list-tasks.ts'
import { toPublicError, hideInternalErrors } from './operations/public-errors.ts'
import { createPushConfig, deletePushConfig, getPushConfig, listPushConfigs } from './operations/push-configs.ts'
import { sendMessage, sendStreamingMessage } from './operations/send-message.ts'
import { readNamed, type NamedTask } from './operations/task-names.ts'
import { cancelTask, getTask, subscribeToTask } from './operations/tasks.ts'
import { systemClock, withLongTimers } from './ports/clock.ts'
import { randomIds } from './ports/ids.ts'
import { consoleLogger, guardedLogger } from './ports/logger.ts'
import type { WebhookBodyWriter } from './ports/webhook-sender.ts'
import { namedHosts } from './primitives/authority.ts'
import { killPoint } from './primitives/kill-points.ts'
import { ReleasingMap } from './primitives/releasing-map.ts'
import { checkRuntimeOptions, type RuntimeOptions } from './runtime-options.ts'
import type { Settings } from './settings.ts'
import { memoryStore } from './store/memory/memory-store.ts'
import { retentionWith, RetentionSweeper } from './store/retention.ts'
import { TaskSubscriptions } from './streams/subscriptions.ts'
import { TaskStream, type Opened } from './streams/task-stream.ts'
import { roundsBefore } from './streams/whole-task.ts'
import { tracedRuntime } from './traced-runtime.ts'
import { Webhooks } from './webhooks/webhooks.ts'
import { CleanupTracker } from './work/cleanup.ts'
import { TaskLoads } from './work/task-loads.ts'

/**
 * An agent that runs. One method for each operation of A2A (§3.1): each takes parameters as wire JSON, checks them,
 * and answers with wire JSON, or with a stream of it. Errors are `A2AError`s.
 */
export interface Runtime {
  sendMessage(params: OperationRequests['sendMessage'], call?: CallContext): Promise<SendMessageResponse>
  sendStreamingMessage(params: OperationRequests['sendStreamingMessage'], call?: CallContext): AsyncGenerator<StreamResponse, void, undefined>
  getTask(params: OperationRequests['getTask'], call?: CallContext): Promise<Task>
  listTasks(params: OperationRequests['listTasks'], call?: CallContext): Promise<ListTasksResponse>
  cancelTask(params: OperationRequests['cancelTask'], call?: CallContext): Promise<Task>
  subscribeToTask(params: OperationRequests['subscribeToTask'], call?: CallContext): AsyncGenerator<StreamResponse, void, undefined>
  /**
   * Tells a task that waits for an authorization (§7.6) that it has arrived out of band, with what its work is to have of
   * it: any JSON value, which is kept in the store until the task has ended, so rather a reference than the secret itself.
   * Throws UnsupportedOperation if the task waits for none, InvalidParams if the work cannot take the data.
   */
  authorized(taskId: string, data: unknown, call?: CallContext): Promise<Task>
  /**
   * What the caller means by its own name for a task (`CallContext.taskName`): the newest task under it, or the message that
   * was the answer in place of one; `undefined` if it has given no task that name. Nobody is asked whether it may know.
   */
  taskNamed(name: string, call?: CallContext): Promise<NamedTask | undefined>
  /**
   * The tasks of such a name before this one, oldest first, as many as a message may refer to. For a task that the caller has been
   * given by another operation: nobody is asked whether it may know.
   */
  roundsBefore(taskId: string, call?: CallContext): Promise<Task[]>
  createTaskPushNotificationConfig(params: OperationRequests['createTaskPushNotificationConfig'], call?: CallContext): Promise<TaskPushNotificationConfig>
  getTaskPushNotificationConfig(params: OperationRequests['getTaskPushNotificationConfig'], call?: CallContext): Promise<TaskPushNotificationConfig>
  listTaskPushNotificationConfigs(params: OperationRequests['listTaskPushNotificationConfigs'], call?: CallContext): Promise<ListTaskPushNotificationConfigsResponse>
  deleteTaskPushNotificationConfig(params: OperationRequests['deleteTaskPushNotificationConfig'], call?: CallContext): Promise<Record<string, never>>
  getExtendedAgentCard(params: OperationRequests['getExtendedAgentCard'], call?: CallContext): Promise<AgentCard>
  /** The agent's card (§4.4.1) for a server that offers these interfaces: for all tenants that are listed, or for one, be it there or not. */
  agentCard(interfaces: readonly AgentInterface[], tenant?: string): AgentCard
  /** The same, signed if the runtime signs its card, after `change`. Rejects with InternalError if that fails. */
  signedCard(interfaces: readonly AgentInterface[], tenant?: string, change?: (card: AgentCard) => AgentCard): Promise<AgentCard>
  /** Has webhooks that were registered in an older version of A2A told in that one. Adapters for older versions call it. */
  writesWebhooks(version: string, writing: WebhookBodyWriter): void
  /** What servers of this runtime keep to. */
  readonly settings: Settings
  /**
   * Erases everything of a context, or without `contextId` of a principal, at once and for good; `false` if there was
   * nothing. What is live stops first, as if canceled: open streams and waiting calls end with TaskNotFound. Afterwards it
   * is as if it had never been. Requests for it wait meanwhile; those that begin a new context of the principal are
   * refused with Overloaded. If the store fails it rejects, and the tasks go on.
   */
  erase(data: DataToErase): Promise<boolean>
  /**
   * Has an observer told what goes on from now on: first of the contexts that are in memory, then of each that comes and
   * goes, and of all that is committed. While nobody observes it costs nothing. For inspectors: an agent's own code has its
   * tasks and events.
   */
  observe(observer: Observer): Observation
  /** Resolves when everything decided until now is committed, and told to who waits for it: the moment before a server closes. */
  settled(): Promise<void>
  /** Stops the actors and closes the store. Waiting calls and open streams end with Overloaded. May be called twice. */
  close(): Promise<void>
}

/**
 * Brings an agent to life; work that a store holds from before goes on. Throws RangeError for a limit that is not above 0, or
 * a retention that is no time, and TypeError for an option that there is not or that has another kind of value.
 */
export function createRuntime(options: RuntimeOptions): Runtime {
  checkRuntimeOptions(options)
  const { agent, dedupe = false, authenticate, authorize, origins, publicUrl, telemetry, signCard } = options
  const hosts = options.hosts && namedHosts(options.hosts)
  const negotiation = isNegotiation(agent.negotiate) ? agent.negotiate : undefined
  const ours = [RELIABILITY_EXTENSION, ...(negotiation ? [NEGOTIATION_EXTENSION] : [])]
  const extensions = extensionsWith(agent.extensions, agent.capabilities?.extensions === false ? [] : ours)
  const capabilities = capabilitiesOf(agent, options.push !== undefined)
  const refused = refusedOperations(capabilities)
  const sender = capabilities.pushNotifications ? options.push : undefined
  const cards = { agent, security: authenticate ? cardSecurityOf(authenticate) : {}, capabilities }
  const signed = async (card: AgentCard) => signatures?.of(card) ?? card
  const publicCard = (interfaces: readonly AgentInterface[], tenant?: string) => agentCard(cards, tenantInterfaces(interfaces, tenant === undefined ? tenants.listed : [tenant]))
  const { store = memoryStore(), ids = randomIds } = options
  const logger = guardedLogger(options.logger ?? consoleLogger)
  const clock = withLongTimers(options.clock ?? systemClock)
  const limits = limitsWith(options.limits)
  const signatures = signCard && new SignedCards(signCard, { limits, clock, logger })
  const tenants = new Tenants(options.tenants, limits, logger)
  const metering = new Metering({ store, clock, limits, tenants })
  const turns = tenants.listed || authenticate ? new FairQueue(BEGINNING) : undefined
  const retention = retentionWith(options.retention)
  const feeds = new TaskSubscriptions()
  const loads = new TaskLoads({ store, limits, logger })
  const cleanUps = new CleanupTracker(clock, logger, agent.cancelGraceMs)
  const logic = contextLogic(agent)
  const recoveryQueue = new RecoveryQueue(clock)
  const observers = new Observers(logger)
  const webhooks = sender && new Webhooks({ store, clock, logger, limits, sender, sharesByTenant: tenants.areSeveral })
  const push = sender && webhooks && { sender, webhooks }
  const contexts = new ContextRegistry({ store, clock, ids, logger, limits, sharesByTenant: tenants.areSeveral, metering, feeds, loads, logic, agent, cleanUps, recoveryQueue, observers, telemetry, webhooks })
  const services: OperationServices = { store, contexts, feeds, clock, ids, limits, metering, dedupe, sendsUnderWay: new ReleasingMap<never>(), takesMessages: agent.messages !== 'reject', negotiation, inputModes: inputModesOf(agent.card), opening: agent.negotiate ? undefined : agent.input, push }
  let closing: Promise<void> | undefined

  const close = async () => {
    recoveryQueue.close()
    const told = webhooks?.close()
    await contexts.processEnds()
    const erased = contexts.close()
    const swept = upkeep.close()
    feeds.close(shutDown())
    await cleanUps.settled()
    await Promise.all([erased, swept, told])
    await store.close()
  }
  const upkeep = new RetentionSweeper({ store, clock: options.clock ?? systemClock, logger }, retention)
  contexts.resume()
  webhooks?.start()

  /** Makes the checks common to all operations. */
  const checked = <Name extends OperationName>(name: Name, params: unknown, call: CallContext) => {
    if (closing) throw shutDown()
    const admitted = counted(metering.stray, call, params, () => admit(name, params, call, extensions))
    const isServed = tenants.has(admitted.scope, call.claims)
    const user = metering.request(admitted.scope, isServed, call.bytes)
    const refusal = refused.get(name)
    if (refusal) throw refusal()
    killPoint('request checked')
    return { user, admitted: isServed ? admitted : { ...admitted, scope: nowhereFor(name) } }
  }
  /** Goes on with what is checked: at once, or when it is its user's turn and its caller has been authorized. Nothing is looked up before. */
  const permitted = <Params extends { readonly tenant?: string }, T>(
    operation: AuthorizationRequest['operation'],
    call: CallContext,
    { user, admitted }: { readonly user: object; readonly admitted: Admitted<Params> },
    goOn: (admitted: Admitted<Params>) => T | Promise<T>
  ): T | Promise<T> => {
    const { params } = admitted
    const turn = turns?.next(user)
    const isPermitted = () => authorize && checkPermission(authorize, { logger, clock, limits }, { ...callerOf(scopeOf(params, call), call), operation, params } as unknown as AuthorizationRequest)
    const waits = turn ? turn.then(isPermitted) : isPermitted()
    if (!waits) return goOn(admitted)
    return waits.then(() => {
      if (closing) throw shutDown()
      call.signal?.throwIfAborted()
      return goOn(admitted)
    })
  }
  const answered = <Name extends OperationName, T>(name: Name, params: unknown, call: CallContext, goOn: (admitted: Admitted<OperationRequests[Name]>) => Promise<T>) =>
    hideInternalErrors(logger, call, name, () => permitted(name, call, checked(name, params, call), goOn))
  const streamed = <Name extends OperationName>(name: Name, params: unknown, call: CallContext, goOn: (admitted: Admitted<OperationRequests[Name]>) => Promise<Opened>) =>
    new TaskStream(() => permitted(name, call, checked(name, params, call), goOn), error => toPublicError(logger, call, name, error))

  const runtime: Runtime = {
    sendMessage: (params, call = {}) => answered('sendMessage', params, call, admitted => sendMessage(services, admitted)),
    sendStreamingMessage: (params, call = {}) => streamed('sendStreamingMessage', params, call, admitted => sendStreamingMessage(services, admitted)),
    getTask: (params, call = {}) => answered('getTask', params, call, admitted => getTask(services, admitted)),
    listTasks: (params, call = {}) => answered('listTasks', params, call, admitted => listTasks(services, admitted)),
    cancelTask: (params, call = {}) => answered('cancelTask', params, call, admitted => cancelTask(services, admitted)),
    subscribeToTask: (params, call = {}) => streamed('subscribeToTask', params, call, admitted => subscribeToTask(services, admitted)),
    authorized: (taskId, data, call = {}) =>
      hideInternalErrors(logger, call, 'authorized', async () => {
        const asked = checked('getTask', { id: taskId }, call)
        return permitted('authorized', call, asked, admitted => deliverAuthorization(services, admitted, data))
      }),
    taskNamed: (name, call = {}) =>
      hideInternalErrors(logger, call, 'taskNamed', () => readNamed(services, checked('getTask', { id: name }, call).admitted.scope, name)),
    roundsBefore: (taskId, call = {}) => hideInternalErrors(logger, call, 'roundsBefore', () => roundsBefore(services, scopeOf({}, call), taskId, call.room)),
    createTaskPushNotificationConfig: (params, call = {}) => answered('createTaskPushNotificationConfig', params, call, admitted => createPushConfig(services, admitted)),
    getTaskPushNotificationConfig: (params, call = {}) => answered('getTaskPushNotificationConfig', params, call, admitted => getPushConfig(services, admitted)),
    listTaskPushNotificationConfigs: (params, call = {}) => answered('listTaskPushNotificationConfigs', params, call, admitted => listPushConfigs(services, admitted)),
    deleteTaskPushNotificationConfig: (params, call = {}) => answered('deleteTaskPushNotificationConfig', params, call, admitted => deletePushConfig(services, admitted)),
    getExtendedAgentCard: async (params, call = {}) => {
      if (capabilities.extendedAgentCard) counted(metering.stray, call, params, () => checkIsKnown(call))
      return answered('getExtendedAgentCard', params, call, async admitted => signed(await extendedAgentCard(cards, admitted, call, { limits, clock, logger, tenants })))
    },
    agentCard: publicCard,
    signedCard: (interfaces, tenant, change = card => card) => hideInternalErrors(logger, {}, 'signedCard', () => signed(change(publicCard(interfaces, tenant)))),
    writesWebhooks: (version, writing) => void webhooks?.writings.set(version, writing),
    settings: {
      capabilities, limits, logger, clock, extensions: extensions.supported, opensTasks: agent.work !== undefined, hasTenants: tenants.listed !== undefined, countStray: metering.stray, unfinished: unfinishedBytes(limits), reading: new FairQueue(READING), sharerOf: (principal, tenant) => tenants.sharerOf(principal, tenant),
      ...(authenticate && { authenticate, challenge: challengeOf(authenticate, agent.card) }), ...(origins && { origins }), ...(hosts && { hosts }), ...(publicUrl !== undefined && { publicUrl }), ...(telemetry && { telemetry })
    },
    erase: async data => {
      const whose = erasureOf(data)
      if (closing) throw shutDown()
      const isErased = await erase(services, whose).finally(() => metering.forget(whose))
      observers.told?.erased(whose)
      return isErased
    },
    observe: observer => {
      const stop = observers.add(observer)
      for (const live of contexts.live) observer.entered?.(live)
      return { agent, store, stop }
    },
    settled: () => contexts.settled(),
    close: () => (closing ??= close())
  }
  return telemetry ? tracedRuntime(runtime, telemetry) : runtime
}

function shutDown(): A2AError {
  return new A2AError('Overloaded', 'The agent is shutting down. Send the request again later.', { retryAfterMs: 1000 })
}

export type { RuntimeOptions }
