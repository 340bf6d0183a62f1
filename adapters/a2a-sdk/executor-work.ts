import { SendMessageConfiguration, type SendMessageRequest, type Task, TaskState } from '@a2a-js/sdk'
import { type AgentExecutor, DefaultExecutionEventBus, RequestContext, ServerCallContext } from '@a2a-js/sdk/server'
import type { RequestDetails } from '../../machines/protocol/objects.ts'
import { PROTOCOL_VERSION } from '../../machines/protocol/versions.ts'
import { sentValue } from '../../runtime/authoring/checked-words.ts'
import {
  type WorkFunction,
  type Authorization,
  authRequired,
  inputRequired,
  type WorkArguments,
  failed,
  type WorkWords
} from '../../runtime/index.ts'
import { onAbort } from '../../runtime/primitives/event-loop.ts'
import type { ReceivedMessage, WorkEnd } from '../../runtime/work-port.ts'
import { userNamed } from './call-context.ts'
import { executorWordsOf, type TurnEnd } from './executor-words.ts'
import { sdkMessage, sdkTask } from './sdk-objects.ts'

type QuestionEnd = Extract<TurnEnd, { asks: unknown }>

/** The beginning of a turn: the message that opened the task, or an answer. */
interface Opening extends ReceivedMessage {
  readonly question?: QuestionEnd['asks']
  readonly authorization?: unknown
}

/** A turn in the journal of the task. */
interface Recorded {
  readonly words: readonly WorkWords[]
  readonly end: TurnEnd
}

/**
 * An executor of the official SDK as work: `defineAgent({ card, work: fromExecutor(new MyExecutor()) })`.
 *
 * `execute` runs when the task starts, and again with the current task after each answer to a question (INPUT_REQUIRED,
 * AUTH_REQUIRED). Each run is a step: a completed run does not run again after a restart, an interrupted one does. A
 * message completes the task; returning without an end fails it, and so does an error. The state of the request's
 * context contains the agreed `terms`, and the `authorization` that arrived out of band. If the task ends before the
 * executor, its `cancelTask` is called once. Throws TypeError for anything but an executor.
 */
export function fromExecutor(executor: AgentExecutor): WorkFunction {
  if (typeof executor?.execute !== 'function' || typeof executor.cancelTask !== 'function') {
    throw new TypeError(
      'fromExecutor takes an AgentExecutor of the official SDK: an object with execute(requestContext, eventBus) and cancelTask(taskId, eventBus).'
    )
  }
  return async work => {
    try {
      return await turns(executor, work)
    } catch (error) {
      // The signal aborts only if the work will not be resumed.
      if (work.signal.aborted) await executor.cancelTask(work.taskId, new DefaultExecutionEventBus())
      throw error
    }
  }
}

async function turns(executor: AgentExecutor, work: WorkArguments): Promise<WorkEnd> {
  const earlierWords: WorkWords[] = []
  let opening: Opening = { message: work.message, request: work.request }
  for (;;) {
    const end = await turnOf(executor, work, opening, earlierWords)
    if ('result' in end) return end.result
    opening = await answered(work, end, opening)
  }
}

/** Runs a turn, or repeats its stored words. */
async function turnOf(
  executor: AgentExecutor,
  work: WorkArguments,
  opening: Opening,
  earlierWords: WorkWords[]
): Promise<TurnEnd> {
  const start = earlierWords.length
  let isRun = false
  const { words, end } = await work.step<Recorded>('execute', async ({ signal }) => {
    isRun = true
    const request = await requestOf(work, opening)
    signal.throwIfAborted()
    const turn = await runTurn({ executor, request, earlierWords, emit: work.emit, signal })
    return { words: earlierWords.slice(start), end: turn }
  })
  if (!isRun) {
    for (const word of words) work.emit(word)
    earlierWords.push(...words)
  }
  return end
}

async function answered(
  { ask, lastAnswer }: WorkArguments,
  { asks, message: question }: QuestionEnd,
  { message, request }: ReceivedMessage
): Promise<Opening> {
  const answer: Authorization =
    asks === 'input-required' ? { message: await ask(inputRequired(question)) } : await ask(authRequired(question))
  return 'message' in answer
    ? { message, request, ...lastAnswer(), question: asks }
    : { message, request, question: asks, authorization: answer.data }
}

async function requestOf(
  work: WorkArguments,
  { message, request: details, question, authorization }: Opening
): Promise<RequestContext> {
  const { taskId, contextId, terms, owner, referenceTasks } = work
  const { tenant, principal } = owner
  const state = new Map(
    Object.entries({ ...(terms && { terms }), ...(authorization !== undefined && { authorization }) })
  )
  const context = new ServerCallContext({
    user: userNamed(principal === 'anonymous' ? undefined : principal),
    tenant,
    requestedVersion: PROTOCOL_VERSION,
    state
  })
  const request = { tenant, message: sdkMessage({ ...message, taskId, contextId }), ...detailsFor(details) }
  const task = question && waiting(sdkTask(await work.readTask()), question)
  return new RequestContext(request, taskId, contextId, context, task, referenceTasks.map(sdkTask))
}

/** The metadata and configuration of a request for the SDK. Both may be absent. */
function detailsFor({
  metadata,
  ...configuration
}: RequestDetails): Pick<SendMessageRequest, 'configuration' | 'metadata'> {
  return {
    metadata,
    configuration: Object.keys(configuration).length > 0 ? SendMessageConfiguration.fromJSON(configuration) : undefined
  }
}

/** The task for the SDK, in the state before the answer. */
function waiting(task: Task, question: QuestionEnd['asks']): Task {
  const state = question === 'input-required' ? TaskState.TASK_STATE_INPUT_REQUIRED : TaskState.TASK_STATE_AUTH_REQUIRED
  return { ...task, status: { state, message: undefined, timestamp: task.status?.timestamp } }
}

/** The options of an executor's turn. */
interface TurnOptions {
  readonly executor: AgentExecutor
  readonly request: RequestContext
  /** The words of earlier turns; those of this turn are added. */
  readonly earlierWords: WorkWords[]
  readonly emit: (words: WorkWords) => void
  readonly signal: AbortSignal
}

const UNFINISHED =
  'The executor returned without an end. Before it returns, it has to publish a message, or a terminal or interrupted status.'

/**
 * Runs an executor once, until its question, the end of the task, or its return; later events are dropped. Rejects with
 * the executor's error, for invalid events, and when the signal aborts.
 */
function runTurn({ executor, request, earlierWords, emit, signal }: TurnOptions): Promise<TurnEnd> {
  const bus = new DefaultExecutionEventBus()
  const turn = new Promise<TurnEnd>((resolve, reject) => {
    const unfinished = () => resolve({ result: failed(UNFINISHED) })
    bus.on('finished', unfinished)
    bus.on('event', event => {
      // An error thrown in a listener would end the process.
      try {
        const { words, end } = executorWordsOf(event, request, earlierWords)
        for (const word of words) {
          emit(word)
          earlierWords.push(sentValue(word, word.type))
        }
        if (!end) return
        bus.removeAllListeners()
        resolve(sentValue(end, 'the end of the turn'))
      } catch (error) {
        bus.removeAllListeners()
        reject(error)
      }
    })
    const stopListening = onAbort(signal, () => reject(signal.reason))
    void execute(executor, request, bus).then(unfinished, reject).finally(stopListening)
  })
  return turn.finally(() => bus.removeAllListeners())
}

/** Makes an executor that throws synchronously reject. */
async function execute(executor: AgentExecutor, request: RequestContext, bus: DefaultExecutionEventBus): Promise<void> {
  await executor.execute(request, bus)
}
