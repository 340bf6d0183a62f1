import { assign, emit, enqueueActions, fromPromise, sendTo, setup } from 'xstate'
import { isA2AError } from './protocol/errors.ts'
import type { Message } from './protocol/parts.ts'
import type { TaskState } from './protocol/states.ts'
import { mayRecover, mayRestart, recoveriesAfter, restartsAfter, withoutNewest, type Crash, type Recoveries, type Recovery } from './supervision.ts'
import type { Answered, Received, Said, TaskFact, TaskMachineEvent, ToWork, WorkEvent, WorkOutcome } from './task-events.ts'

type Completion = Extract<WorkOutcome, { state: 'completed' }>
type StatusCause = Said & { type: string; output?: Said; error?: unknown }
type ToldState = { state: TaskState; event: StatusCause }
type Produced = Omit<Extract<WorkEvent, { type: 'work.produced' }>, 'type'>

/** The ids that a task actor is born with. */
export type TaskInput = { taskId: string; contextId: string }

/**
 * `queue`: messages that wait for a question, oldest first, each alone if its request has no metadata and no configuration. `restarts`: when the work was started again lately after a
 * crash, and `recoveries`: after its process had ended. `deadlineAtMs`: when the task fails if it has not ended, in
 * milliseconds since 1970; the runtime sees to it.
 */
export type TaskContext = TaskInput & { queue: (Message | Received)[]; restarts: number[]; recoveries?: Recoveries; deadlineAtMs?: number }

/**
 * The life of one A2A task (§4.1.3), from submission to a terminal state.
 *
 * `active` holds every state that may still change, so that nothing can leave a terminal one. Each
 * state tells its own name on entry; the facts are numbered, timed and committed by the runtime.
 * The author's logic is the actor `work`: it is invoked once `task.start` arrives, which the runtime
 * sends when the submission is durable, and it goes on through every interruption. Work that crashes
 * is started again as its restart policy says, or fails its task; work that was at work when its process ended is
 * started again until it has ended with the process too often without any progress.
 */
export const taskMachine = setup({
  types: {
    context: {} as TaskContext,
    events: {} as TaskMachineEvent,
    emitted: {} as TaskFact,
    input: {} as TaskInput,
    tags: {} as 'interrupted' | 'terminal'
  },
  actors: { work: fromPromise<WorkOutcome, unknown>(notProvided) },
  guards: {
    hasQueued: ({ context }) => context.queue.length > 0,
    mayRestart: ({ context }, crash: Crash) => mayRestart(crash, context.restarts),
    mayRecover: ({ context }, recovery: Recovery) => mayRecover(recovery, context.recoveries),
    isFailure: (_, outcome: WorkOutcome) => outcome.state === 'failed',
    isRejection: (_, outcome: WorkOutcome) => outcome.state === 'rejected'
  },
  actions: {
    tellStatus: emit((_, told: ToldState) => ({ type: 'status.changed', state: told.state, ...saidBy(told.event) })),
    tellArtifact: emit((_, produced: Produced) => ({ ...produced, type: 'artifact.produced' })),
    tellArtifacts: enqueueActions(({ enqueue }, { artifacts }: Completion) => {
      for (const artifact of artifacts) enqueue.emit({ type: 'artifact.produced', artifact, lastChunk: true })
    }),
    keepDeadline: assign((_, deadline: { deadlineAtMs?: number }) => deadline),
    requestRestart: emit({ type: 'restart.requested' }),
    noteRestart: assign({ restarts: ({ context }, crash: Crash) => restartsAfter(crash, context.restarts) }),
    noteRecovery: assign({ recoveries: ({ context }, recovery: Recovery) => recoveriesAfter(recovery, context.recoveries) }),
    forgetRecovery: assign(({ context }) => (context.recoveries ? { recoveries: withoutNewest(context.recoveries) } : {})),
    queueMessage: assign({ queue: ({ context }, received: Received) => [...context.queue, received.request ? received : received.message] }),
    passOnQueued: enqueueActions(({ context, enqueue }) => {
      const [next, ...queue] = context.queue
      if (next) enqueue.sendTo('work', { type: 'message.received', ...('message' in next ? next : { message: next }), queued: true } satisfies ToWork)
      enqueue.assign({ queue })
    }),
    passOnMessage: sendTo('work', (_, received: Received & Answered) => ({ type: 'message.received', ...received }) satisfies ToWork),
    passOnAuthorization: sendTo('work', (_, given: { data: unknown } & Answered) => ({ type: 'authorization.received', ...given }) satisfies ToWork)
  }
}).createMachine({
  id: 'task',
  context: ({ input }) => ({ taskId: input.taskId, contextId: input.contextId, queue: [], restarts: [] }),
  initial: 'active',
  states: {
    active: {
      initial: 'submitted',
      on: {
        'task.cancel': 'canceled',
        'task.fail': 'failed',
        'task.reject': 'rejected',
        // The process ended while the task was at work; what that is to go on with starts when this is durable.
        'task.recover': [
          {
            guard: { type: 'mayRecover', params: ({ event }) => event.recovery },
            actions: { type: 'noteRecovery', params: ({ event }) => event.recovery }
          },
          { target: 'failed' }
        ],
        'recovery.undone': { actions: 'forgetRecovery' }
      },
      states: {
        // Accepted, not begun: from here only to work, or to an end that is not completion.
        submitted: {
          entry: tells('TASK_STATE_SUBMITTED'),
          on: {
            'task.start': { target: 'started', actions: { type: 'keepDeadline', params: ({ event }) => deadlineOf(event) } },
            'message.queued': { actions: queues() }
          }
        },
        started: {
          invoke: {
            id: 'work',
            src: 'work',
            input: ({ event }: { event: TaskMachineEvent }) => startInput(event),
            onDone: [
              { guard: { type: 'isFailure', params: ({ event }) => event.output }, target: '#task.failed' },
              { guard: { type: 'isRejection', params: ({ event }) => event.output }, target: '#task.rejected' },
              {
                actions: { type: 'tellArtifacts', params: ({ event }) => event.output as Completion },
                target: '#task.completed'
              }
            ],
            onError: '#task.failed'
          },
          on: {
            'work.produced': {
              actions: { type: 'tellArtifact', params: ({ event }) => event }
            },
            // A message that came too early for a question answers it now, without an interruption.
            'work.asked': [{ guard: 'hasQueued', actions: 'passOnQueued' }, { target: '.inputRequired' }],
            'work.needsAuthorization': '.authRequired',
            'work.crashed': [
              {
                guard: { type: 'mayRestart', params: ({ event }) => event.crash },
                actions: { type: 'noteRestart', params: ({ event }) => event.crash },
                target: 'restarting'
              },
              { target: '#task.failed' }
            ]
          },
          initial: 'working',
          states: {
            working: {
              entry: tells('TASK_STATE_WORKING'),
              on: {
                'work.progressed': { target: 'working', reenter: true },
                'message.steered': { actions: passesOn() },
                'message.queued': { actions: queues() }
              }
            },
            // The agent asked; the client answers with a message to this task (§3.4.3). The work
            // takes the answer and says itself when it goes on, or asks again.
            inputRequired: {
              tags: 'interrupted',
              entry: tells('TASK_STATE_INPUT_REQUIRED'),
              on: { 'message.received': { actions: passesOn() }, 'work.resumed': 'working' }
            },
            // Credentials arrive out of band; messages are taken meanwhile (§7.6).
            authRequired: {
              tags: 'interrupted',
              entry: tells('TASK_STATE_AUTH_REQUIRED'),
              on: {
                'authorization.received': { actions: { type: 'passOnAuthorization', params: dataOf } },
                'message.received': { actions: passesOn() },
                'work.resumed': 'working'
              }
            }
          }
        },
        // The work crashed and is started again: the runtime sends `task.start` when that is durable.
        restarting: {
          entry: [tells('TASK_STATE_WORKING'), 'requestRestart'],
          on: { 'task.start': 'started', 'message.queued': { actions: queues() } }
        }
      }
    },
    completed: { type: 'final', tags: 'terminal', entry: tells('TASK_STATE_COMPLETED') },
    failed: { type: 'final', tags: 'terminal', entry: tells('TASK_STATE_FAILED') },
    canceled: { type: 'final', tags: 'terminal', entry: tells('TASK_STATE_CANCELED') },
    rejected: { type: 'final', tags: 'terminal', entry: tells('TASK_STATE_REJECTED') }
  }
})

// ---- implementations ----

/** A state's entry: it tells its name on the wire, with what the event that led there says. */
function tells(state: TaskState) {
  return { type: 'tellStatus' as const, params: ({ event }: { event: StatusCause }) => ({ state, event }) }
}

/** The words that a status carries: of the event itself, of the outcome it brings, or the reason of a failure. */
function saidBy(event: StatusCause): Said {
  const { type, output, error } = event
  if (type.startsWith('xstate.error.')) return { message: { parts: [{ text: reasonOf(error) }] } }
  const { message, metadata, ordinal } = output ?? event
  return { ...(message && { message }), ...(metadata && { metadata }), ...(ordinal !== undefined && { ordinal }) }
}

/** Sends the message to the work. */
function passesOn() {
  return { type: 'passOnMessage' as const, params: receivedOf }
}

/** Stores the message for the work's next question. */
function queues() {
  return { type: 'queueMessage' as const, params: receivedOf }
}

function dataOf({ event }: { event: { data: unknown } & Answered }): { data: unknown } & Answered {
  return { data: event.data, ...answerIn(event) }
}

function receivedOf({ event }: { event: Received & Answered }): Received & Answered {
  const { message, request } = event
  return { message, ...(request && { request }), ...answerIn(event) }
}

function answerIn(event: Answered): Answered {
  return 'answer' in event ? { answer: event.answer } : {}
}

/** What a client may know of an error in the author's code: our own words, never the error's. */
export function reasonOf(error: unknown): string {
  try {
    if (isA2AError(error)) return error.message
  } catch {
    // An error that throws when it is looked at is one of the author's, too.
  }
  return 'The work ended with an error.'
}

/** The deadline that a task begins with, if it has one. */
function deadlineOf({ deadlineAtMs }: { deadlineAtMs?: number }): { deadlineAtMs?: number } {
  return deadlineAtMs === undefined ? {} : { deadlineAtMs }
}

/** What the work is given: `started` is entered by nothing but `task.start`. */
function startInput(event: TaskMachineEvent): unknown {
  return (event as Extract<TaskMachineEvent, { type: 'task.start' }>).input
}

/** Stands where the runtime provides the author's logic. */
function notProvided(): Promise<WorkOutcome> {
  return Promise.reject(new TypeError('The task chart runs only with work provided to it: taskMachine.provide({ actors: { work } }).'))
}
