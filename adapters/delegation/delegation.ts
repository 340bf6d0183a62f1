import type { StreamResponse } from '../../machines/protocol/objects.ts'
import type { MessageContent } from '../../machines/task-events.ts'
import { messageOf, checkWait } from '../../runtime/authoring/checked-words.ts'
import { checkOptions, type OptionKinds } from '../../runtime/primitives/options.ts'
import type { AgentClient } from '../client/agent-client.ts'
import { nameQuestion } from '../client/messages.ts'
import { delay } from '../client/retries/request-retry.ts'
import type { PooledClient } from './pooled-client.ts'
import {
  cancelRemote,
  deliverAnswer,
  isNotDoneThere,
  notCompleted,
  openTask,
  tooLate,
  troubleWith
} from './remote-calls.ts'
import {
  type PendingAnswer,
  pendingAnswersIn,
  digestOf,
  dropAnswer,
  keepAnswer,
  RecordKeeper,
  type RecordPlace,
  type RemoteRecord
} from './remote-record.ts'
import { type RemoteTaskListener, type RemoteInput, type RemoteResult, RemoteTask } from './remote-task.ts'

/** The outcome of a delegation. */
export type RemoteOutcome = { readonly result: RemoteResult } | { readonly error: unknown }

/** The options of a delegation. */
export interface DelegationOptions {
  readonly agent: PooledClient
  readonly place: RecordPlace
  readonly input: RemoteInput
  readonly listener: RemoteTaskListener
  /** The id of its actor. */
  readonly from: string
  /** Called with the outcome, unless the delegation was stopped. */
  readonly ended: (outcome: RemoteOutcome) => void
}

const INPUT: OptionKinds<RemoteInput> = { message: true, contextId: true, referenceTaskIds: true, deadlineMs: true }

/** The polling interval of a task without streaming: it doubles from the first to the last. */
const FIRST_LOOK_MS = 1000
const LAST_LOOK_MS = 30_000

/** The number of events that are forwarded before their effects must be committed. */
const AT_ONCE = 32

/**
 * A task of another agent on behalf of a task of this runtime. It is opened once, followed to its end across lost
 * connections and restarts, given the answers to its questions, and canceled when it is no longer needed. Forwarded
 * events are recorded in the journal in the same turn, so that none is forwarded twice or lost.
 */
export class Delegation {
  readonly #options: DelegationOptions
  readonly #stopping = new AbortController()
  /** The id of the task; `undefined` if there is none. */
  readonly #known: Promise<string | undefined>
  #identified: ((id?: string) => void) | undefined
  #task: RemoteTask | undefined
  #client: AgentClient | undefined
  readonly #answers: PendingAnswer[] = []
  #answered = 0
  #isDelivering = false
  #isOver = false
  #pause = new AbortController()

  constructor(options: DelegationOptions) {
    this.#options = options
    this.#known = new Promise(resolve => (this.#identified = resolve))
  }

  /** Starts or resumes it. Throws for invalid input. */
  begin(): void {
    checkOptions(this.#options.input, INPUT, 'remoteAgent', "input: { message: 'a room in Helsinki' }")
    const { message, deadlineMs } = this.#options.input
    if (deadlineMs !== undefined) checkWait(deadlineMs)
    this.#run(messageOf(message))
      .then(
        outcome => this.#end(outcome),
        error => this.#fail(error)
      )
      .finally(() => this.#identified?.())
  }

  /** Takes an answer for the agent: it is stored in this turn, and sent after the commit. */
  answer(content: MessageContent): void {
    const {
      place,
      place: { host, taskId }
    } = this.#options
    const { status: to, question } = this.#task?.record.now ?? {}
    const answer = {
      name: `${host.turnNumber}.${(this.#answered += 1)}`,
      content: nameQuestion(content, question?.event.message),
      ...(to !== undefined && { to })
    }
    keepAnswer(place, answer)
    this.#task?.answered()
    this.#answers.push(answer)
    host.afterCommit({ taskId, run: () => this.#deliver() })
  }

  /** Called when its actor is stopped: cancels the task, unless it will be resumed. */
  stop(): void {
    /* c8 ignore next -- it ended while its stop waited for the commit */
    if (this.#isOver) return
    const {
      place: { host },
      listener
    } = this.#options
    const goesOn = host.isLeaving || listener.goesOn()
    this.#leave()
    if (goesOn) this.#halt()
    else this.#cancel()
  }

  /** Ends it with an error, and cancels the task. */
  fail(error: unknown): void {
    this.#end({ error })
  }

  async #run(content: MessageContent): Promise<RemoteOutcome> {
    const {
      agent,
      place,
      place: { host, taskId }
    } = this.#options
    const journal = await host.readJournal(taskId)
    const begun = RecordKeeper.in(journal, place)
    if (!begun) this.#checkWanted()
    const record = begun ?? RecordKeeper.begin(place, this.#beginning())
    const task = new RemoteTask(record, this.#options, id => this.#identified?.(id))
    const early = this.#answers.map(({ name }) => name)
    const again = pendingAnswersIn(journal, place).filter(({ name }) => !early.includes(name))
    if (this.#isOver) task.silence()
    else this.#takeUp(task, again)
    if (!begun) await new Promise<void>(resolve => host.afterCommit({ taskId, run: resolve }))
    const how = { isPatient: begun !== undefined, signal: this.#stopping.signal }
    return agent.use(async client => {
      this.#client = client
      if (task.id === undefined) await this.#open(client, task, content, begun !== undefined)
      this.#checkWanted()
      this.#deliver(again)
      await this.#follow(client, task)
      return outcomeOf(client, task, agent.title, this.#stopping.signal)
    }, how)
  }

  #beginning(): RemoteRecord {
    const {
      place: { host, taskId, key },
      input: { contextId, deadlineMs }
    } = this.#options
    const own = contextId ?? digestOf('context', taskId, key)
    return { contextId: own, questions: 0, ...(deadlineMs !== undefined && { untilMs: host.clock.now() + deadlineMs }) }
  }

  /** Resumes it from the journal. */
  #takeUp(task: RemoteTask, again: readonly PendingAnswer[]): void {
    const {
      place: { host, taskId },
      input: { deadlineMs = 0 },
      agent
    } = this.#options
    this.#task = task
    this.#answers.unshift(...again)
    if (this.#answers.length > 0) task.answered()
    task.takeUp()
    const { untilMs } = task.record.now
    if (untilMs !== undefined)
      host.setAlarm(taskId, this.#alarm, untilMs, () => this.fail(tooLate(agent.title, deadlineMs)))
  }

  get #alarm(): string {
    return `${this.#options.place.key}/until`
  }

  #open(client: AgentClient, task: RemoteTask, content: MessageContent, isAgain: boolean): Promise<void> {
    const {
      place: { taskId, key },
      input: { contextId: given, referenceTaskIds }
    } = this.#options
    const { contextId } = task.record.now
    const about = { contextId, ...(referenceTaskIds && { referenceTaskIds: [...referenceTaskIds] }) }
    const message = { ...content, messageId: digestOf('message', taskId, key), role: 'ROLE_USER' as const, ...about }
    return openTask({
      client,
      message,
      isAgain,
      isOwnContext: given === undefined,
      signal: this.#stopping.signal,
      checkWanted: () => this.#checkWanted(),
      identify: id => task.identify(id),
      isKnown: () => task.id !== undefined,
      take: events => this.#take(events, task)
    })
  }

  async #take(events: AsyncIterable<StreamResponse>, task: RemoteTask): Promise<void> {
    const { host, taskId } = this.#options.place
    let count = 0
    for await (const event of events) {
      task.take(event)
      if (task.hasEnded) return
      count += 1
      if (count % AT_ONCE === 0) await new Promise<void>(resolve => host.afterCommit({ taskId, run: resolve }))
    }
  }

  /** Follows a task to its end: subscribes as often as necessary, and polls if the agent does not stream. */
  async #follow(client: AgentClient, task: RemoteTask): Promise<void> {
    const { clock } = this.#options.place.host
    const { signal } = this.#stopping
    for (let waitMs = FIRST_LOOK_MS; !task.hasEnded; waitMs = Math.min(2 * waitMs, LAST_LOOK_MS)) {
      const pause = new AbortController()
      this.#pause = pause
      const { passedOn } = task
      const {
        id = '',
        record: {
          now: { generation: afterGeneration = 0 }
        }
      } = task
      try {
        await this.#take(client.subscribeToTask({ id }, { signal, afterGeneration }), task)
      } catch (error) {
        if (!isNotDoneThere(error)) throw error
      }
      if (!task.hasEnded) task.take({ task: await client.getTask({ id }, { signal }) })
      if (task.passedOn > passedOn) waitMs = FIRST_LOOK_MS
      if (!task.hasEnded && !pause.signal.aborted) await delay(waitMs, clock, pause.signal)
    }
  }

  /** Sends waiting answers in order. Answers from before a restart may have been sent already. */
  #deliver(again: readonly PendingAnswer[] = []): void {
    const client = this.#client
    if (client && this.#task && !this.#isDelivering)
      this.#deliverAll(client, this.#task, again).catch(error => this.#fail(error))
  }

  async #deliverAll(client: AgentClient, task: RemoteTask, again: readonly PendingAnswer[]): Promise<void> {
    const {
      place,
      place: { host, taskId, key },
      agent
    } = this.#options
    this.#isDelivering = true
    try {
      for (let answer = this.#answers[0]; answer && task.id !== undefined; answer = this.#answers[0]) {
        const messageId = digestOf('answer', taskId, key, answer.name)
        const refusal = await deliverAnswer({
          client,
          answer,
          messageId,
          taskId: task.id,
          isAgain: again.includes(answer),
          signal: this.#stopping.signal
        })
        /* c8 ignore next -- it was stopped while the answer was sent: an ended task has no journal */
        if (this.#isOver) return
        this.#answers.shift()
        dropAnswer(place, answer)
        if (refusal !== undefined && !task.askAgain(refusal))
          host.logger.warn('another agent took no message', { taskId, agent: agent.title, refusal })
        this.#pause.abort()
      }
    } finally {
      this.#isDelivering = false
    }
  }

  #checkWanted(): void {
    if (this.#isOver) throw new DOMException('The task is not wanted any more.', 'AbortError')
  }

  #fail(error: unknown): void {
    this.#end({ error: troubleWith(this.#options.agent.title, error) })
  }

  #end(outcome: RemoteOutcome): void {
    if (this.#isOver) return
    const {
      place: { host, taskId },
      ended
    } = this.#options
    const mayGoOn = this.#task?.hasEnded !== true
    this.#leave()
    if (mayGoOn) host.afterCommit({ taskId, run: () => this.#cancel() })
    else this.#halt()
    ended(outcome)
  }

  #leave(): void {
    const {
      place: { host, taskId },
      listener
    } = this.#options
    this.#isOver = true
    this.#task?.silence()
    listener.over()
    host.clearAlarm(taskId, this.#alarm)
  }

  #halt(): void {
    this.#stopping.abort()
    this.#pause.abort()
  }

  #cancel(): void {
    const {
      place: { host, taskId },
      agent
    } = this.#options
    host.awaitCleanup(taskId, cancelRemote({ host, taskId, agent, known: this.#known, halt: () => this.#halt() }))
  }
}

/** The outcome of an ended task. */
async function outcomeOf(
  client: AgentClient,
  { id = '', reply }: RemoteTask,
  title: string,
  signal: AbortSignal
): Promise<RemoteOutcome> {
  if (reply) return { result: { artifacts: [], message: reply, ...contextOf(reply) } }
  const task = await client.getTask({ id }, { signal })
  const {
    status: { state, message },
    artifacts = []
  } = task
  if (state !== 'TASK_STATE_COMPLETED') return { error: notCompleted(title, task) }
  return { result: { artifacts, ...(message && { message }), ...contextOf(task), task } }
}

function contextOf({ contextId }: { contextId?: string | undefined }): { contextId?: string } {
  return contextId === undefined ? {} : { contextId }
}
