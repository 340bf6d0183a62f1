import { assign, emit, enqueueActions, fromPromise, sendTo, setup } from 'xstate'
import { isA2AError } from './protocol/errors.ts'
import type { Artifact } from './protocol/objects.ts'
import type { Message } from './protocol/parts.ts'
import type { TaskState } from './protocol/states.ts'

/** What is said in a message, before the runtime gives it its ids and role (§4.1.4). */
export type MessageContent = Pick<Message, 'parts' | 'metadata' | 'extensions'>

/** What an artifact holds, before the runtime gives it an id where the author gave none (§4.1.7). */
export type ArtifactContent = Omit<Artifact, 'artifactId'> & { artifactId?: string }

/** How work ended: its artifacts and last words, or why it was given up. */
export type WorkOutcome =
  | { state: 'completed'; artifacts: ArtifactContent[]; message?: MessageContent; metadata?: Record<string, unknown> }
  | { state: 'failed' | 'rejected'; message: MessageContent; metadata?: Record<string, unknown> }

/** What work may say to its task while it lasts. */
export type WorkEvent =
  | { type: 'work.progressed'; message?: MessageContent; metadata?: Record<string, unknown> }
  | { type: 'work.produced'; artifact: ArtifactContent; append?: boolean; lastChunk?: boolean }
  | { type: 'work.asked'; message: MessageContent; metadata?: Record<string, unknown> }
  | { type: 'work.needsAuthorization'; message: MessageContent; metadata?: Record<string, unknown> }
  | { type: 'work.resumed' }

/** Everything that a task actor receives, apart from the end of its work. */
export type TaskMachineEvent =
  | WorkEvent
  | { type: 'task.start'; taskId: string; input: unknown; deadlineAtMs?: number }
  | { type: 'task.cancel'; taskId: string; message?: MessageContent }
  | { type: 'task.fail'; taskId: string; message: MessageContent }
  | { type: 'task.reject'; taskId: string; message: MessageContent }
  | { type: 'message.received'; taskId: string; message: Message }

/** What a task tells the world: facts without time or number, which the runtime stamps. */
export type TaskFact =
  | { type: 'status.changed'; state: TaskState; message?: MessageContent; metadata?: Record<string, unknown> }
  | { type: 'artifact.produced'; artifact: ArtifactContent; append?: boolean; lastChunk?: boolean }

type Said = { message?: MessageContent; metadata?: Record<string, unknown> }
type Completion = Extract<WorkOutcome, { state: 'completed' }>
type StatusCause = Said & { type: string; output?: Said; error?: unknown }
type ToldState = { state: TaskState; event: StatusCause }
type Produced = Omit<Extract<WorkEvent, { type: 'work.produced' }>, 'type'>

/** The ids that a task actor is born with. */
export type TaskInput = { taskId: string; contextId: string }

/** `deadlineAtMs`: when the task fails if it has not ended, in milliseconds since 1970; the runtime sees to it. */
export type TaskContext = TaskInput & { deadlineAtMs?: number }

/**
 * The life of one A2A task (§4.1.3), from submission to a terminal state.
 *
 * `active` holds every state that may still change, so that nothing can leave a terminal one. Each
 * state tells its own name on entry; the facts are numbered, timed and committed by the runtime.
 * The author's logic is the actor `work`: it is invoked once `task.start` arrives, which the runtime
 * sends when the submission is durable, and it goes on through every interruption.
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
    passOnToWork: sendTo('work', ({ event }) => event)
  }
}).createMachine({
  id: 'task',
  context: ({ input }) => ({ taskId: input.taskId, contextId: input.contextId }),
  initial: 'active',
  states: {
    active: {
      initial: 'submitted',
      on: {
        'task.cancel': 'canceled',
        'task.fail': 'failed',
        'task.reject': 'rejected'
      },
      states: {
        // Accepted, not begun: from here only to work, or to an end that is not completion.
        submitted: {
          entry: tells('TASK_STATE_SUBMITTED'),
          on: { 'task.start': { target: 'started', actions: { type: 'keepDeadline', params: ({ event }) => deadlineOf(event) } } }
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
            'work.asked': '.inputRequired',
            'work.needsAuthorization': '.authRequired'
          },
          initial: 'working',
          states: {
            working: {
              entry: tells('TASK_STATE_WORKING'),
              on: { 'work.progressed': { target: 'working', reenter: true } }
            },
            // The agent asked; the client answers with a message to this task (§3.4.3). The work
            // takes the answer and says itself when it goes on, or asks again.
            inputRequired: {
              tags: 'interrupted',
              entry: tells('TASK_STATE_INPUT_REQUIRED'),
              on: { 'message.received': { actions: 'passOnToWork' }, 'work.resumed': 'working' }
            },
            // Credentials arrive out of band; messages are taken meanwhile (§7.6).
            authRequired: {
              tags: 'interrupted',
              entry: tells('TASK_STATE_AUTH_REQUIRED'),
              on: { 'message.received': { actions: 'passOnToWork' }, 'work.resumed': 'working' }
            }
          }
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
  const said = output ?? event
  return { ...(said.message && { message: said.message }), ...(said.metadata && { metadata: said.metadata }) }
}

/** What a client may know of an error in the author's code: our own words, never the error's. */
export function reasonOf(error: unknown): string {
  return isA2AError(error) ? error.message : 'The work ended with an error.'
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
