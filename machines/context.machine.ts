import { assign, emit, enqueueActions, fromPromise, sendTo, setup, spawnChild, stopChild, type DoneActorEvent, type ErrorActorEvent, type EventObject } from 'xstate'
import type { Message } from './protocol/parts.ts'
import { taskMachine } from './task.machine.ts'
import type { MessageContent, TaskMachineEvent } from './task-events.ts'

/**
 * A message that addresses no task. `callId` names the call that waits for it, `taskId` is for the task that it may open,
 * `extensions` are those of the author's that its client has activated, if any. `isOnce`: the message is not to be taken twice.
 */
export type ContextRequest = { callId: string; taskId: string; message: Message; extensions?: readonly string[]; isOnce?: true }

/** What came of a negotiation: an answer without a task, a task with its terms, a task refused, or an error. */
export type NegotiationOutcome = { request: ContextRequest } & (
  | { decision: 'replied'; reply: MessageContent }
  | { decision: 'accepted'; terms?: Record<string, unknown> }
  | { decision: 'rejected'; reason: MessageContent }
  | { decision: 'failed' }
)

/** Everything that a context actor receives, apart from the ends of its children. */
export type ContextMachineEvent =
  | { type: 'request.received'; request: ContextRequest }
  | Exclude<Extract<TaskMachineEvent, { taskId: string }>, { type: 'task.reject' }>

/** What a context tells: what became of each request, and of a child that broke. */
export type ContextFact =
  | { type: 'task.opened'; request: ContextRequest; terms?: Record<string, unknown> }
  | { type: 'request.answered'; request: ContextRequest; reply: MessageContent }
  | { type: 'request.refused'; request: ContextRequest; reason: 'full' | 'failed' }
  | { type: 'child.crashed'; actorId: string }

/** `negotiates`: requests are negotiated before a task is opened. `taskLimit`: live tasks at the most. */
export type ContextInput = { contextId: string; negotiates: boolean; taskLimit: number }

/** `tasks`: ids of the live ones, oldest first. `negotiations`: ids of the calls whose request is being negotiated. */
export type ContextContext = ContextInput & { tasks: string[]; negotiations: string[] }

type ChildEnded = DoneActorEvent<NegotiationOutcome> | ErrorActorEvent
type Opening = { request: ContextRequest; terms?: Record<string, unknown>; reason?: MessageContent }

/**
 * A conversation (§3.4.1): the actor of one `contextId`, which spawns the actors of its tasks.
 *
 * A request, a message that addresses no task, opens a task at once or is negotiated first. Events for
 * a task are passed on to it while it lives, and a task is let go of when it has ended: its results
 * are in the store. Negotiations and tasks run side by side; none blocks another.
 */
export const contextMachine = setup({
  types: {
    context: {} as ContextContext,
    events: {} as ContextMachineEvent | ChildEnded,
    emitted: {} as ContextFact,
    input: {} as ContextInput
  },
  actors: { task: taskMachine, negotiation: fromPromise<NegotiationOutcome, ContextRequest>(notProvided) },
  guards: {
    negotiates: ({ context }) => context.negotiates,
    hasRoom,
    isEmpty: ({ context }) => context.tasks.length + context.negotiations.length === 0,
    isTask: ({ context }, id: string) => context.tasks.includes(id),
    isReply: (_, { decision }: NegotiationOutcome) => decision === 'replied',
    opensTask: ({ context }, { decision }: NegotiationOutcome) =>
      (decision === 'accepted' || decision === 'rejected') && hasRoom({ context })
  }
}).extend({
  actions: {
    negotiate: enqueueActions(({ context, enqueue }, request: ContextRequest) => {
      enqueue.assign({ negotiations: [...context.negotiations, request.callId] })
      enqueue.spawnChild('negotiation', { id: request.callId, input: request })
    }),
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
      if (outcome.decision === 'replied') enqueue.emit({ type: 'request.answered', request: outcome.request, reply: outcome.reply })
    }),
    refuse: emit((_, refusal: { request: ContextRequest; reason: 'full' | 'failed' }) => ({ type: 'request.refused', ...refusal })),
    tellCrash: emit((_, actorId: string) => ({ type: 'child.crashed', actorId })),
    passOn: sendTo((_, taskId: string) => taskId, ({ event }) => event),
    stopChild: stopChild((_, actorId: string) => actorId),
    forget: assign(({ context }, actorId: string) => ({
      tasks: context.tasks.filter(id => id !== actorId),
      negotiations: context.negotiations.filter(id => id !== actorId)
    }))
  }
}).createMachine({
  id: 'context',
  context: ({ input: { contextId, negotiates, taskLimit } }) => ({ contextId, negotiates, taskLimit, tasks: [], negotiations: [] }),
  initial: 'idle',
  states: {
    // Nothing is under way: the actor may leave memory.
    idle: {
      on: {
        'request.received': [
          { guard: 'negotiates', target: 'busy', actions: { type: 'negotiate', params: ({ event }) => event.request } },
          { target: 'busy', actions: opensTask() }
        ]
      }
    },
    busy: {
      always: { guard: 'isEmpty', target: 'idle' },
      on: {
        'request.received': [
          { guard: 'negotiates', actions: { type: 'negotiate', params: ({ event }) => event.request } },
          { guard: 'hasRoom', actions: opensTask() },
          { actions: { type: 'refuse', params: ({ event }) => ({ request: event.request, reason: 'full' }) } }
        ],
        'message.received': passedOn(),
        'message.steered': passedOn(),
        'message.queued': passedOn(),
        'authorization.received': passedOn(),
        'work.crashed': passedOn(),
        'task.start': passedOn(),
        'task.recover': passedOn(),
        'recovery.undone': passedOn(),
        'task.cancel': passedOn(),
        'task.fail': passedOn(),
        'xstate.done.actor.*': [
          {
            guard: { type: 'isTask', params: ({ event }) => event.actorId },
            actions: letsGo()
          },
          {
            guard: { type: 'isReply', params: ({ event }) => event.output },
            actions: [{ type: 'answer', params: ({ event }) => event.output }, ...letsGo()]
          },
          {
            guard: { type: 'opensTask', params: ({ event }) => event.output },
            actions: [...opensTask(), { type: 'rejectTask', params: ({ event }) => openingOf(event) }, ...letsGo()]
          },
          // The author's negotiation threw, or there was no room left for the task that it opened.
          {
            actions: [{ type: 'refuse', params: ({ event }) => refusal(event.output) }, ...letsGo()]
          }
        ],
        'xstate.error.actor.*': {
          actions: [{ type: 'tellCrash', params: ({ event }) => event.actorId }, ...letsGo()]
        }
      }
    }
  }
})

// ---- implementations ----

function hasRoom({ context }: { context: ContextContext }): boolean {
  return context.tasks.length < context.taskLimit
}

/** Opens the task that a request, or the outcome of its negotiation, asks for. */
function opensTask() {
  const params = ({ event }: { event: EventObject }) => openingOf(event)
  return [{ type: 'noteTask', params }, { type: 'tellOpened', params }, 'spawnTask'] as const
}

/** What an event opens a task with: a request itself, or the outcome of its negotiation. */
function openingOf(event: EventObject): Opening {
  return 'output' in event ? (event.output as Opening) : { request: (event as Extract<ContextMachineEvent, { request: unknown }>).request }
}

/** Lets go of a child that has ended. */
function letsGo() {
  const params = ({ event }: { event: { actorId: string } }) => event.actorId
  return [{ type: 'stopChild', params }, { type: 'forget', params }] as const
}

/** An event for one task: it goes to that task's actor, if it lives. */
function passedOn() {
  return {
    guard: { type: 'isTask' as const, params: ({ event }: { event: { taskId: string } }) => event.taskId },
    actions: { type: 'passOn' as const, params: ({ event }: { event: { taskId: string } }) => event.taskId }
  }
}

function refusal({ request, decision }: NegotiationOutcome): { request: ContextRequest; reason: 'full' | 'failed' } {
  return { request, reason: decision === 'failed' ? 'failed' : 'full' }
}

/** Stands where the runtime provides the author's negotiation. */
function notProvided(): Promise<NegotiationOutcome> {
  return Promise.reject(new TypeError('The context chart negotiates only with logic provided to it: contextMachine.provide({ actors: { negotiation } }).'))
}
