import {
  assign,
  emit,
  enqueueActions,
  fromPromise,
  sendTo,
  setup,
  spawnChild,
  stopChild,
  type DoneActorEvent,
  type ErrorActorEvent,
  type EventObject
} from 'xstate'
import type {
  ContextRequest,
  NegotiationLimits,
  NegotiationMachineEvent,
  NegotiationOutcome,
  NegotiationTerms
} from './negotiation-events.ts'
import { negotiationMachine } from './negotiation.machine.ts'
import type { FieldViolation } from './protocol/errors.ts'
import type { MessageContent, TaskMachineEvent } from './task-events.ts'
import { taskMachine } from './task.machine.ts'
import { doneType, errorType } from './xstate-names.ts'

/** Actor id of a context's single negotiation, where one negotiation lasts for the whole context. */
export const BARGAINING = 'bargaining'

const BARGAINING_DONE = doneType(BARGAINING)
const BARGAINING_FAILED = errorType(BARGAINING)
const ANY_DONE = doneType('*')
const ANY_FAILED = errorType('*')

/** Events that a context actor receives, other than done and error events of its children. */
export type ContextMachineEvent =
  | { type: 'request.received'; request: ContextRequest }
  | { type: 'request.decided'; output: NegotiationOutcome }
  | Exclude<Extract<TaskMachineEvent, { taskId: string }>, { type: 'task.reject' }>

/** Events that a context emits: the outcome of each request, and crashes of child actors. */
export type ContextFact =
  | { type: 'task.opened'; request: ContextRequest; terms?: NegotiationTerms }
  | { type: 'request.answered'; request: ContextRequest; reply: MessageContent }
  | { type: 'request.refused'; request: ContextRequest; reason: RefusalReason; violations?: readonly FieldViolation[] }
  | { type: 'child.crashed'; actorId: string }

/**
 * Why a request gets no answer. `full`: too many live tasks. `crowded`: too many waiting requests. `failed`: the
 * author's negotiation threw. `late`: it took too long.
 */
export type RefusalReason = 'full' | 'crowded' | 'failed' | 'late'

/**
 * `negotiates`: each request is negotiated separately before a task is opened. `bargains`: all requests go to one
 * lasting negotiation with these limits. `taskLimit`: maximum number of live tasks.
 */
export type ContextInput = {
  contextId: string
  negotiates: boolean
  bargains?: NegotiationLimits | undefined
  taskLimit: number
}

/**
 * `tasks`: ids of the live tasks, oldest first. `negotiations`: ids of the calls whose request is being negotiated.
 * `isBargaining`: the lasting negotiation has been spawned.
 */
export type ContextContext = ContextInput & { tasks: string[]; negotiations: string[]; isBargaining?: boolean }

type ChildEnded = DoneActorEvent<NegotiationOutcome> | ErrorActorEvent
type Refused = Omit<Extract<ContextFact, { type: 'request.refused' }>, 'type'>
type Outcome = { output: NegotiationOutcome }
type Opening = { request: ContextRequest; terms?: NegotiationTerms; reason?: MessageContent }

/**
 * A context (§3.4.1): the actor of one `contextId`, which spawns the actors of its tasks.
 *
 * A request is a message that addresses no task. It opens a task at once, or is negotiated first. Events for a live
 * task are forwarded to it. A task that has ended is stopped and forgotten, because its results are in the store.
 * Negotiations and tasks run concurrently; none blocks another.
 */
export const contextMachine = setup({
  types: {
    context: {} as ContextContext,
    events: {} as ContextMachineEvent | ChildEnded,
    emitted: {} as ContextFact,
    input: {} as ContextInput
  },
  actors: {
    task: taskMachine,
    negotiation: fromPromise<NegotiationOutcome, ContextRequest>(notProvided),
    bargaining: negotiationMachine
  },
  guards: {
    negotiates: ({ context }) => context.negotiates,
    bargains: ({ context }) => context.bargains !== undefined,
    withdraws: (_, { isWithdrawal }: ContextRequest) => isWithdrawal === true,
    isBelowTaskLimit,
    isEmpty: ({ context }) => isEmpty(context),
    isTask: ({ context }, id: string) => context.tasks.includes(id),
    isReply: (_, { decision }: NegotiationOutcome) => decision === 'replied',
    isDeal: (_, outcome: NegotiationOutcome) => isDeal(outcome),
    opensTask: ({ context }, outcome: NegotiationOutcome) => isDeal(outcome) && isBelowTaskLimit({ context })
  }
})
  .extend({
    actions: {
      negotiate: enqueueActions(({ context, enqueue }, request: ContextRequest) => {
        enqueue.assign({ negotiations: [...context.negotiations, request.callId] })
        enqueue.spawnChild('negotiation', { id: request.callId, input: request })
      }),
      bargain: enqueueActions(({ context, enqueue }, request: ContextRequest) => {
        const { bargains, isBargaining, negotiations } = context
        enqueue.assign({ negotiations: [...negotiations, request.callId], isBargaining: true })
        if (!isBargaining) enqueue.spawnChild('bargaining', { id: BARGAINING, input: bargains as NegotiationLimits })
        enqueue.sendTo(BARGAINING, { type: 'request.received', request })
      }),
      withdraw: enqueueActions(({ context, enqueue }, { taskId }: ContextRequest) => {
        enqueue.sendTo(taskId, { type: 'task.cancel', taskId })
        if (context.isBargaining)
          enqueue.sendTo(BARGAINING, { type: 'client.withdrew' } satisfies NegotiationMachineEvent)
      }),
      tellBargaining: sendTo(
        BARGAINING,
        (_, type: 'deal.made' | 'deal.off') => ({ type }) satisfies NegotiationMachineEvent
      ),
      noteTask: assign({ tasks: ({ context }, { request }: Opening) => [...context.tasks, request.taskId] }),
      tellOpened: emit((_, { request, terms }: Opening) => ({ type: 'task.opened', request, ...(terms && { terms }) })),
      spawnTask: spawnChild('task', {
        id: ({ event }) => openingOf(event).request.taskId,
        input: ({ context, event }) => ({ taskId: openingOf(event).request.taskId, contextId: context.contextId })
      }),
      rejectTask: enqueueActions(({ enqueue }, { request: { taskId }, reason }: Opening) => {
        if (reason) enqueue.sendTo(taskId, { type: 'task.reject', taskId, message: reason })
      }),
      answer: enqueueActions(({ enqueue }, outcome: NegotiationOutcome) => {
        if (outcome.decision === 'replied')
          enqueue.emit({ type: 'request.answered', request: outcome.request, reply: outcome.reply })
      }),
      refuse: emit((_, refused: Refused) => ({ type: 'request.refused', ...refused })),
      tellCrash: emit((_, actorId: string) => ({ type: 'child.crashed', actorId })),
      passOn: sendTo(
        (_, taskId: string) => taskId,
        ({ event }) => event
      ),
      stopChild: stopChild((_, actorId: string) => actorId),
      stopBargaining: enqueueActions(({ context, enqueue }) => {
        for (const actorId of context.negotiations) enqueue.emit({ type: 'child.crashed', actorId })
        enqueue.stopChild(BARGAINING)
        enqueue.assign({ negotiations: [], isBargaining: false })
      }),
      forget: assign(({ context }, actorId: string) => ({
        tasks: context.tasks.filter(id => id !== actorId),
        negotiations: context.negotiations.filter(id => id !== actorId)
      }))
    }
  })
  .createMachine({
    id: 'context',
    context: ({ input }) => startingContext(input),
    initial: 'idle',
    states: {
      // No task and no negotiation is running, so the actor may leave memory. An offer may still be open.
      idle: {
        on: {
          'request.received': [
            {
              guard: { type: 'withdraws', params: requestOf },
              target: 'busy',
              actions: [...openTask(), { type: 'withdraw', params: requestOf }]
            },
            {
              guard: 'negotiates',
              target: 'busy',
              actions: { type: 'negotiate', params: ({ event }) => event.request }
            },
            { guard: 'bargains', target: 'busy', actions: { type: 'bargain', params: ({ event }) => event.request } },
            { target: 'busy', actions: openTask() }
          ],
          // The lasting negotiation has no final state. If it fails, the next request spawns a new one.
          [BARGAINING_DONE]: { actions: 'stopBargaining' },
          [BARGAINING_FAILED]: { actions: 'stopBargaining' }
        }
      },
      busy: {
        always: { guard: 'isEmpty', target: 'idle' },
        on: {
          'request.received': [
            {
              guard: { type: 'withdraws', params: requestOf },
              actions: [...openTask(), { type: 'withdraw', params: requestOf }]
            },
            { guard: 'negotiates', actions: { type: 'negotiate', params: ({ event }) => event.request } },
            { guard: 'bargains', actions: { type: 'bargain', params: ({ event }) => event.request } },
            { guard: 'isBelowTaskLimit', actions: openTask() },
            { actions: { type: 'refuse', params: ({ event }) => ({ request: event.request, reason: 'full' }) } }
          ],
          'request.decided': [
            {
              guard: { type: 'isReply', params: outcomeOf },
              actions: [{ type: 'answer', params: outcomeOf }, forgetsRequest()]
            },
            {
              guard: { type: 'opensTask', params: outcomeOf },
              actions: [
                ...openTask(),
                { type: 'rejectTask', params: ({ event }) => openingOf(event) },
                { type: 'tellBargaining', params: 'deal.made' },
                forgetsRequest()
              ]
            },
            {
              guard: { type: 'isDeal', params: outcomeOf },
              actions: [
                { type: 'refuse', params: ({ event }) => refusal(event.output) },
                { type: 'tellBargaining', params: 'deal.off' },
                forgetsRequest()
              ]
            },
            { actions: [{ type: 'refuse', params: ({ event }) => refusal(event.output) }, forgetsRequest()] }
          ],
          'message.received': { guard: isItsTask(), actions: forward() },
          'message.steered': { guard: isItsTask(), actions: forward() },
          'message.queued': { guard: isItsTask(), actions: forward() },
          'authorization.received': { guard: isItsTask(), actions: forward() },
          'work.crashed': { guard: isItsTask(), actions: forward() },
          'task.start': { guard: isItsTask(), actions: forward() },
          'task.recover': { guard: isItsTask(), actions: forward() },
          'recovery.undone': { guard: isItsTask(), actions: forward() },
          'task.cancel': { guard: isItsTask(), actions: forward() },
          'task.fail': { guard: isItsTask(), actions: forward() },
          [ANY_DONE]: [
            {
              guard: { type: 'isTask', params: ({ event }) => event.actorId },
              actions: stopAndForget()
            },
            {
              guard: { type: 'isReply', params: ({ event }) => event.output },
              actions: [{ type: 'answer', params: ({ event }) => event.output }, ...stopAndForget()]
            },
            {
              guard: { type: 'opensTask', params: ({ event }) => event.output },
              actions: [
                ...openTask(),
                { type: 'rejectTask', params: ({ event }) => openingOf(event) },
                ...stopAndForget()
              ]
            },
            // The author's negotiation threw, or the context is at its task limit.
            {
              actions: [{ type: 'refuse', params: ({ event }) => refusal(event.output) }, ...stopAndForget()]
            }
          ],
          [ANY_FAILED]: {
            actions: [{ type: 'tellCrash', params: ({ event }) => event.actorId }, ...stopAndForget()]
          },
          [BARGAINING_DONE]: { actions: 'stopBargaining' },
          [BARGAINING_FAILED]: { actions: 'stopBargaining' }
        }
      }
    }
  })

// ---- implementations ----

function startingContext({ contextId, negotiates, bargains, taskLimit }: ContextInput): ContextContext {
  const context = { contextId, negotiates, taskLimit, tasks: [], negotiations: [] }
  return bargains ? { ...context, bargains } : context
}

/** Whether a context has no task and no negotiation, which makes it `idle`. */
export function isEmpty({ tasks, negotiations }: Pick<ContextContext, 'tasks' | 'negotiations'>): boolean {
  return tasks.length + negotiations.length === 0
}

function isBelowTaskLimit({ context }: { context: ContextContext }): boolean {
  return context.tasks.length < context.taskLimit
}

/** Actions that open the task of a request or of an accepted negotiation. */
function openTask() {
  const params = ({ event }: { event: EventObject }) => openingOf(event)
  return [{ type: 'noteTask', params }, { type: 'tellOpened', params }, 'spawnTask'] as const
}

/** Reads the opening of a task from an event: the request itself, or the outcome of its negotiation. */
function openingOf(event: EventObject): Opening {
  return 'output' in event
    ? (event.output as Opening)
    : { request: (event as Extract<ContextMachineEvent, { request: unknown }>).request }
}

/** Actions that stop and forget a child that has ended. */
function stopAndForget() {
  const params = ({ event }: { event: { actorId: string } }) => event.actorId
  return [
    { type: 'stopChild', params },
    { type: 'forget', params }
  ] as const
}

/** Whether the task that an event names is live. */
function isItsTask() {
  return { type: 'isTask' as const, params: taskIdOf }
}

/** Forwards an event to the task that it names. */
function forward() {
  return { type: 'passOn' as const, params: taskIdOf }
}

function requestOf({ event }: { event: { request: ContextRequest } }): ContextRequest {
  return event.request
}

function taskIdOf({ event }: { event: { taskId: string } }): string {
  return event.taskId
}

/** Forgets a request that the lasting negotiation has decided. */
function forgetsRequest() {
  return { type: 'forget' as const, params: ({ event }: { event: Outcome }) => event.output.request.callId }
}

function outcomeOf({ event }: { event: Outcome }): NegotiationOutcome {
  return event.output
}

function isDeal({ decision }: NegotiationOutcome): boolean {
  return decision === 'accepted' || decision === 'rejected'
}

/** The refusal for an outcome. A deal that cannot open its task is refused as `full`. */
function refusal(outcome: NegotiationOutcome): Refused {
  const { request, decision } = outcome
  if (decision !== 'failed') return { request, reason: decision === 'crowded' ? decision : 'full' }
  return {
    request,
    reason: outcome.isLate ? 'late' : decision,
    ...(outcome.violations && { violations: outcome.violations })
  }
}

/** Placeholder for the author's negotiation, which the runtime provides. */
function notProvided(): Promise<NegotiationOutcome> {
  return Promise.reject(
    new TypeError(
      'The context chart has no negotiation. Provide one: contextMachine.provide({ actors: { negotiation } }).'
    )
  )
}
