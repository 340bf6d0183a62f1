import { assign, emit, enqueueActions, fromPromise, sendTo, setup } from 'xstate'
import { isA2AError } from './protocol/errors.ts'
import type { Message } from './protocol/objects.ts'
import type { TaskState } from './protocol/states.ts'
import {
  mayRecover,
  mayRestart,
  recoveriesAfter,
  restartsAfter,
  withoutNewest,
  type Crash,
  type Recoveries,
  type Recovery
} from './supervision.ts'
import type {
  ParsedAnswer,
  WorkQuestion,
  ClientMessage,
  StatusContent,
  TaskFact,
  TaskMachineEvent,
  ToWork,
  WorkEvent,
  WorkOutcome
} from './task-events.ts'
import { isErrorType } from './xstate-names.ts'

type Completion = Extract<WorkOutcome, { state: 'completed' }>
type StatusCause = StatusContent & { type: string; output?: StatusContent; error?: unknown }
type EmittedStatus = { state: TaskState; event: StatusCause }
type Produced = Omit<Extract<WorkEvent, { type: 'work.produced' }>, 'type'>

/** Ids of a task actor. */
export type TaskInput = { taskId: string; contextId: string }

/**
 * `queue`: messages that wait for a question, oldest first. An entry is the bare message if its request has no metadata
 * and no configuration. `restarts`: times of recent restarts after a crash. `recoveries`: restarts because the process
 * had ended. `deadlineAtMs`: when the runtime fails the task if it has not ended, in milliseconds since 1970. `asks`:
 * the newest question of work that may ask several at once.
 */
export type TaskContext = TaskInput & {
  queue: (Message | ClientMessage)[]
  restarts: number[]
  recoveries?: Recoveries
  deadlineAtMs?: number
  asks?: string
}

/**
 * The life of one A2A task (§4.1.3), from submission to a terminal state.
 *
 * `active` holds every state that may still change, so no transition can leave a terminal state. Each state emits its
 * wire name on entry; the runtime adds generation and time, and commits it. The author's logic is the actor `work`. It
 * is invoked by `task.start`, begins after the submission is stored, and runs on through interruptions.
 *
 * Crashed work is restarted as its restart policy allows, else the task fails. Work that was running when its process
 * ended is restarted too, unless that has happened too often without progress.
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
    tellStatus: emit((_, status: EmittedStatus) => ({
      type: 'status.changed',
      state: status.state,
      ...statusContentOf(status.event)
    })),
    tellArtifact: emit((_, produced: Produced) => ({ ...produced, type: 'artifact.produced' })),
    tellArtifacts: enqueueActions(({ enqueue }, { artifacts }: Completion) => {
      for (const artifact of artifacts) enqueue.emit({ type: 'artifact.produced', artifact, lastChunk: true })
    }),
    keepDeadline: assign((_, deadline: { deadlineAtMs?: number }) => deadline),
    keepQuestion: assign((_, question: Pick<TaskContext, 'asks'>) => question),
    requestRestart: emit({ type: 'restart.requested' }),
    noteRestart: assign({ restarts: ({ context }, crash: Crash) => restartsAfter(crash, context.restarts) }),
    noteRecovery: assign({
      recoveries: ({ context }, recovery: Recovery) => recoveriesAfter(recovery, context.recoveries)
    }),
    forgetRecovery: assign(({ context }) =>
      context.recoveries ? { recoveries: withoutNewest(context.recoveries) } : {}
    ),
    queueMessage: assign({
      queue: ({ context }, received: ClientMessage) => [
        ...context.queue,
        received.request ? received : received.message
      ]
    }),
    passOnQueued: enqueueActions(({ context, enqueue }) => {
      const [next, ...queue] = context.queue
      if (next)
        enqueue.sendTo('work', {
          type: 'message.received',
          ...('message' in next ? next : { message: next }),
          queued: true
        } satisfies ToWork)
      enqueue.assign({ queue })
    }),
    passOnMessage: sendTo(
      'work',
      (_, received: ClientMessage & ParsedAnswer) => ({ type: 'message.received', ...received }) satisfies ToWork
    ),
    passOnAuthorization: sendTo(
      'work',
      (_, given: { data: unknown } & ParsedAnswer) => ({ type: 'authorization.received', ...given }) satisfies ToWork
    )
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
        // The process ended while the task was working. The work restarts after this event is stored.
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
        // Accepted, but not started. A submitted task cannot complete without working.
        submitted: {
          entry: emitStatus('TASK_STATE_SUBMITTED'),
          on: {
            'task.start': {
              target: 'started',
              actions: { type: 'keepDeadline', params: ({ event }) => deadlineOf(event) }
            },
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
            // A queued message is tried as the answer, without an interruption.
            'work.asked': [
              { guard: 'hasQueued', actions: 'passOnQueued' },
              { target: '.inputRequired', actions: keepsQuestion() }
            ],
            'work.needsAuthorization': { target: '.authRequired', actions: keepsQuestion() },
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
              entry: emitStatus('TASK_STATE_WORKING'),
              on: {
                'work.progressed': { target: 'working', reenter: true },
                'message.steered': { actions: forward() },
                'message.queued': { actions: queues() }
              }
            },
            // The client answers with a message to this task (§3.4.3). The work sends `work.resumed` when it accepts
            // the answer.
            inputRequired: {
              tags: 'interrupted',
              entry: emitStatus('TASK_STATE_INPUT_REQUIRED'),
              on: { 'message.received': { actions: forward() }, 'work.resumed': 'working' }
            },
            // Credentials arrive out of band. Messages are accepted meanwhile (§7.6).
            authRequired: {
              tags: 'interrupted',
              entry: emitStatus('TASK_STATE_AUTH_REQUIRED'),
              on: {
                'authorization.received': { actions: { type: 'passOnAuthorization', params: dataOf } },
                'message.received': { actions: forward() },
                'work.resumed': 'working'
              }
            }
          }
        },
        // The work crashed. The runtime sends `task.start` after the restart is stored.
        restarting: {
          entry: [emitStatus('TASK_STATE_WORKING'), 'requestRestart'],
          on: { 'task.start': 'started', 'message.queued': { actions: queues() } }
        }
      }
    },
    completed: { type: 'final', tags: 'terminal', entry: emitStatus('TASK_STATE_COMPLETED') },
    failed: { type: 'final', tags: 'terminal', entry: emitStatus('TASK_STATE_FAILED') },
    canceled: { type: 'final', tags: 'terminal', entry: emitStatus('TASK_STATE_CANCELED') },
    rejected: { type: 'final', tags: 'terminal', entry: emitStatus('TASK_STATE_REJECTED') }
  }
})

// ---- implementations ----

/** Entry action of a state: emits the state's wire name, with the message of the event that led there. */
function emitStatus(state: TaskState) {
  return { type: 'tellStatus' as const, params: ({ event }: { event: StatusCause }) => ({ state, event }) }
}

/** Message and metadata of a status: the event's own, those of its outcome, or the reason of a failure. */
function statusContentOf(event: StatusCause): StatusContent {
  const { type, output, error } = event
  if (isErrorType(type)) return { message: { parts: [{ text: failureReasonOf(error) }] } }
  const { message, metadata, ordinal } = output ?? event
  return { ...(message && { message }), ...(metadata && { metadata }), ...(ordinal !== undefined && { ordinal }) }
}

/** Forwards the message to the work. */
function forward() {
  return { type: 'passOnMessage' as const, params: receivedOf }
}

/** Keeps the key of the work's question, if it has one. */
function keepsQuestion() {
  return {
    type: 'keepQuestion' as const,
    params: ({ event: { asks } }: { event: WorkQuestion }) => (asks === undefined ? {} : { asks })
  }
}

/** Queues the message for the work's next question. */
function queues() {
  return { type: 'queueMessage' as const, params: receivedOf }
}

function dataOf({ event }: { event: { data: unknown } & ParsedAnswer }): { data: unknown } & ParsedAnswer {
  return { data: event.data, ...answerIn(event) }
}

function receivedOf({ event }: { event: ClientMessage & ParsedAnswer }): ClientMessage & ParsedAnswer {
  const { message, request } = event
  return { message, ...(request && { request }), ...answerIn(event) }
}

function answerIn(event: ParsedAnswer): ParsedAnswer {
  return {
    ...('answer' in event && { answer: event.answer }),
    ...(event.question !== undefined && { question: event.question })
  }
}

/**
 * Reason of a failure for clients: the message of an `A2AError`, else a fixed text, so that no other error of the
 * author's leaks.
 */
export function failureReasonOf(error: unknown): string {
  try {
    if (isA2AError(error)) return error.message
  } catch {
    // Reading this error throws, so it is the author's too.
  }
  return 'The work ended with an error.'
}

/** The deadline of a task that starts, if it has one. */
function deadlineOf({ deadlineAtMs }: { deadlineAtMs?: number }): { deadlineAtMs?: number } {
  return deadlineAtMs === undefined ? {} : { deadlineAtMs }
}

/** Input of the work. Only `task.start` enters `started`. */
function startInput(event: TaskMachineEvent): unknown {
  return (event as Extract<TaskMachineEvent, { type: 'task.start' }>).input
}

/** Placeholder for the author's logic, which the runtime provides. */
function notProvided(): Promise<WorkOutcome> {
  return Promise.reject(
    new TypeError('The task chart has no work. Provide it: taskMachine.provide({ actors: { work } }).')
  )
}
