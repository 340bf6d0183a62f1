import { A2AError, type FieldViolation } from '../../machines/protocol/errors.ts'
import type { ToWork, WorkEvent } from '../../machines/task-events.ts'
import { questionEventOf, checkWait } from '../authoring/checked-words.ts'
import { answerTo, isQuestion, type Question } from '../authoring/questions.ts'
import { NO_DETAILS, type ReceivedMessage } from '../authoring/work-arguments.ts'
import { checkArgument, type Kind } from '../primitives/options.ts'
import type { RunJournal } from './journal.ts'

interface OpenQuestion {
  /** Journal key of its answer: its ordinal, or the key of a relayed question. */
  readonly key: string
  readonly question: Question
  readonly event: WorkEvent
  /** Opens it. */
  readonly put: () => void
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

/** The task of a run, as its questions use it. */
interface QuestionTask {
  readonly send: (event: WorkEvent) => void
  /** Whether the task already waits for its client. */
  readonly isInterrupted: () => boolean
}

/** Options of a question that another agent asks through this work. */
export interface Relayed {
  /** Journal key of the answer. */
  readonly key: string
  /** Withdraws the question, because the other agent no longer waits for an answer. */
  readonly signal: AbortSignal
}

/** Result of a validated answer: the event with its parsed answer, or violations. */
export type CheckedAnswer<Given extends ToWork> =
  | { readonly event: Given }
  | { readonly violations: readonly FieldViolation[] }

const A_QUESTION: Kind = [isQuestion, 'a question']

/** Journal value of a question that was not answered in time. */
const EXPIRED = { expired: true } as const

/** Journal key of the last relayed question. */
const RELAYED = 'relayed'

/**
 * The questions of one run, one at a time, in the order of the calls. Each is answered, expires, is withdrawn, or is
 * given up when the run ends.
 */
export class QuestionQueue {
  readonly #log: RunJournal
  readonly #task: QuestionTask
  #open: OpenQuestion | undefined
  /** Whether this run has had a question open. */
  #hasOpened = false
  #lastAnswer: ReceivedMessage | undefined
  /** Questions that wait until no other one is open. */
  #waiting: OpenQuestion[] | undefined

  constructor(log: RunJournal, task: QuestionTask) {
    this.#log = log
    this.#task = task
  }

  get isOpen(): boolean {
    return this.#open !== undefined
  }

  /** The newest message that answered a question. */
  get lastAnswer(): ReceivedMessage | undefined {
    return this.#lastAnswer
  }

  /**
   * Opens a question, as soon as no other one is open. A replay gives the stored answer, or waits for the answer,
   * without a second question to the client. Work that crashed while its question was open sends it again.
   */
  ask(question: Question): Promise<unknown> {
    return new Promise((resolve, reject) => {
      checkArgument(question, A_QUESTION, "ask(inputRequired('Which day?'))")
      const log = this.#log
      const event = questionEventOf(question)
      const { deadlineMs } = question.options
      if (deadlineMs !== undefined) checkWait(deadlineMs)
      const ordinal = log.next()
      const isNew = log.emitOnce(ordinal, event) !== undefined
      const open: OpenQuestion = {
        key: String(ordinal),
        question,
        event: { ...event, ordinal },
        put: () => this.#put(open, isNew),
        resolve,
        reject
      }
      if (!this.#isAnswered(open)) this.#enter(open, !isNew)
    })
  }

  /**
   * Opens a question of another agent, as soon as no other question is open. Resolves with the answer, or with
   * `undefined` if it is withdrawn. The order of such questions differs between runs, so they are found by their keys
   * and have no ordinals.
   */
  relay(question: Question, { key, signal }: Relayed): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const relayed: OpenQuestion = {
        key,
        question,
        event: questionEventOf(question),
        put: () => this.#putRelayed(relayed),
        resolve,
        reject
      }
      if (this.#isAnswered(relayed)) return
      signal.addEventListener('abort', () => this.#withdraw(relayed), { once: true })
      this.#enter(relayed, this.#log.storedValue(RELAYED) === key)
    })
  }

  /**
   * Validates an answer to the open question: gives the event with the parsed answer, or violations. If the schema
   * throws, the event is accepted as it is, and the work gets the error. `undefined` if no question is open.
   */
  check<Given extends ToWork>(given: Given): CheckedAnswer<Given> | undefined {
    if (!this.#open) return undefined
    const result = checked(this.#open.question, given)
    return 'violations' in result ? result : { event: 'answer' in result ? { ...given, answer: result.answer } : given }
  }

  /** Answers the open question. If a queued message is no valid answer, the client gets the question. */
  receive(given: ToWork): void {
    const open = this.#open
    if (!open) return
    const result = 'answer' in given ? { answer: given.answer } : checked(open.question, given)
    // The raw input is stored, because the parsed answer may not survive JSON.
    const { answer: _, ...raw } = given
    if ('answer' in result) this.#close(open, raw, () => open.resolve(result.answer))
    else if ('error' in result) this.#close(open, raw, () => open.reject(result.error))
    else this.#task.send(open.event)
  }

  /** Gives up the open question. With `error`, its promise rejects; without, it never settles. */
  giveUp(error?: { reason: unknown }): void {
    const open = this.#open
    this.#open = undefined
    if (open && error) open.reject(error.reason)
  }

  /** Settles a question with its stored answer, if there is one. */
  #isAnswered(open: OpenQuestion): boolean {
    const kept = this.#log.storedValue(open.key)
    if (kept) answerAgain(open, this.#noteAnswer(kept as ToWork | typeof EXPIRED))
    return kept !== undefined
  }

  #put(open: OpenQuestion, isNew: boolean): void {
    this.#open = open
    this.#hasOpened = true
    this.#expireIn(open)
    // A replay sends it again only if the task does not wait, which means that the work was restarted since.
    if (isNew || !this.#task.isInterrupted()) this.#task.send(open.event)
    else this.#log.afterCommit(() => {})
  }

  #putRelayed(relayed: OpenQuestion): void {
    const isSent = this.#log.storedValue(RELAYED) === relayed.key
    if (!isSent) this.#log.keep(RELAYED, relayed.key)
    this.#put(relayed, !isSent)
  }

  /**
   * Opens a question, or lets it wait. On replay in an interrupted task, the question that the task waits for
   * (`isExpected`) must be the first one open.
   */
  #enter(question: OpenQuestion, isExpected: boolean): void {
    if (!this.#open && (this.#hasOpened || !this.#task.isInterrupted() || isExpected)) question.put()
    else (this.#waiting ??= []).push(question)
  }

  #expireIn(open: OpenQuestion): void {
    const { deadlineMs } = open.question.options
    if (deadlineMs === undefined) return
    this.#log.alarm(`${open.key}/until`, deadlineMs, () => {
      if (this.#open === open) this.#close(open, EXPIRED, () => open.reject(expired(open.question)))
    })
  }

  #close(open: OpenQuestion, given: ToWork | typeof EXPIRED, settle: () => void): void {
    if (open.question.options.deadlineMs !== undefined) this.#log.noAlarm(`${open.key}/until`)
    this.#log.keepNews(open.key, given)
    this.#leave()
    this.#log.afterCommit(() => {
      this.#noteAnswer(given)
      settle()
    })
  }

  #noteAnswer(given: ToWork | typeof EXPIRED): ToWork | typeof EXPIRED {
    if ('message' in given) this.#lastAnswer = { message: given.message, request: given.request ?? NO_DETAILS }
    return given
  }

  #withdraw(relayed: OpenQuestion): void {
    if (this.#open === relayed) this.#leave()
    else this.#waiting = this.#waiting?.filter(other => other !== relayed)
    relayed.resolve(undefined)
  }

  #leave(): void {
    this.#open = undefined
    this.#task.send({ type: 'work.resumed' })
    this.#next()
  }

  #next(): void {
    this.#waiting?.shift()?.put()
  }
}

/** The parsed answer, violations, or the error that the schema throws. */
function checked(question: Question, given: ToWork): ReturnType<typeof answerTo> | { readonly error: unknown } {
  try {
    return answerTo(question, given)
  } catch (error) {
    return { error }
  }
}

function answerAgain({ question, resolve, reject }: OpenQuestion, given: ToWork | typeof EXPIRED): void {
  if ('expired' in given) return reject(expired(question))
  const result = answerTo(question, given)
  if ('answer' in result) resolve(result.answer)
  else
    reject(
      new A2AError(
        'InvalidAgentResponse',
        'On replay, the work asked a question that its stored answer does not fit. Put anything non-deterministic in a step.'
      )
    )
}

function expired({ options }: Question): A2AError {
  return new A2AError('DeadlineExceeded', `Nobody answered within ${options.deadlineMs} ms.`)
}
