import { A2AError, type FieldViolation } from '../../machines/protocol/errors.ts'
import type { ToWork, WorkEvent } from '../../machines/task-events.ts'
import { questionEventOf } from '../authoring/checked-words.ts'
import { answerTo, type Question } from '../authoring/questions.ts'
import { NO_DETAILS } from '../authoring/request-details.ts'
import type { ReceivedMessage } from '../authoring/work-arguments.ts'
import { checkWait, type RunJournal } from './journal.ts'

interface OpenQuestion {
  /** What the journal keeps its answer under: its ordinal, or what it was relayed under. */
  readonly key: string
  readonly question: Question
  /** What asks it. */
  readonly event: WorkEvent
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

/** What a run's questions need of their task. */
interface AskedTask {
  readonly say: (event: WorkEvent) => void
  /** Whether the task waits for its client already. */
  readonly isInterrupted: () => boolean
}

/** How a question is asked that the work has from another agent. */
export interface Relayed {
  /** What the journal keeps the answer under. */
  readonly key: string
  /** Withdraws the question: the other agent has gone on without an answer. */
  readonly signal: AbortSignal
}

/** What was checked for a question: an event with the answer that it holds, or what is wrong with that, by field. */
export type CheckedAnswer<Given extends ToWork> = { readonly event: Given } | { readonly violations: readonly FieldViolation[] }

/** In the journal in place of an answer: nobody answered in time. */
const EXPIRED = { expired: true } as const

/** The journal's key for which relayed question was asked last. */
const RELAYED = 'relayed'

/** The questions of one run of work: one at a time, each answered, expired, withdrawn, or given up with the run. */
export class QuestionQueue {
  readonly #log: RunJournal
  readonly #task: AskedTask
  #open: OpenQuestion | undefined
  /** Whether this run has had a question open. */
  #hasAsked = false
  #lastAnswer: ReceivedMessage | undefined
  /** Relayed questions that wait for their turn. */
  #waiting: OpenQuestion[] | undefined

  constructor(log: RunJournal, task: AskedTask) {
    this.#log = log
    this.#task = task
  }

  get isOpen(): boolean {
    return this.#open !== undefined
  }

  /** The message that answered the newest question that was answered by one. */
  get lastAnswer(): ReceivedMessage | undefined {
    return this.#lastAnswer
  }

  /**
   * Asks, unless the question was asked before the work ran again; then only the answer is waited for, or there already.
   * Work that crashed while its question was open asks it again.
   */
  ask(question: Question): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#open) throw new TypeError('The work has a question open: it can ask the next one when that is answered.')
      const log = this.#log
      const event = questionEventOf(question)
      const { deadlineMs } = question.options
      if (deadlineMs !== undefined) checkWait(deadlineMs)
      const ordinal = log.next()
      const word = log.word(ordinal, event)
      const open = { key: String(ordinal), question, event: { ...event, ordinal }, resolve, reject }
      if (!this.#isAnswered(open)) this.#put(open, word !== undefined)
    })
  }

  /**
   * Asks what another agent asks through this work, as soon as no other question is open. Resolves with the answer, or with
   * `undefined` if it is withdrawn. Such questions come when the other agents ask them, so they have no ordinals: another
   * run finds them, and which of them the task waits for, by their keys.
   */
  relay(question: Question, { key, signal }: Relayed): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const relayed = { key, question, event: questionEventOf(question), resolve, reject }
      if (this.#isAnswered(relayed)) return
      signal.addEventListener('abort', () => this.#withdraw(relayed), { once: true })
      if (this.#isFreeFor(key)) this.#putRelayed(relayed)
      else (this.#waiting ??= []).push(relayed)
    })
  }

  /**
   * Checks an answer to the open question: gives it with what the question makes of it, or what is wrong with it, by field. If
   * the schema throws it may be given: then the work gets the error. `undefined` if no question is open.
   */
  check<Given extends ToWork>(given: Given): CheckedAnswer<Given> | undefined {
    if (!this.#open) return undefined
    const result = checked(this.#open.question, given)
    return 'violations' in result ? result : { event: 'answer' in result ? { ...given, answer: result.answer } : given }
  }

  /** Answers the open question; one that a queued message does not answer is asked. */
  receive(given: ToWork): void {
    const open = this.#open
    if (!open) return
    const result = 'answer' in given ? { answer: given.answer } : checked(open.question, given)
    // What came is kept, and not what the schema has made of that, which JSON might not keep.
    const { answer: _, ...came } = given
    if ('answer' in result) this.#close(open, came, () => open.resolve(result.answer))
    else if ('error' in result) this.#close(open, came, () => open.reject(result.error))
    else this.#task.say(open.event)
  }

  /** Gives the open question up: without a word, or with an error to whoever waits for its answer. */
  giveUp(error?: { reason: unknown }): void {
    const open = this.#open
    this.#open = undefined
    if (open && error) open.reject(error.reason)
  }

  /** Gives the answer that it had before the work ran again, if it had one. */
  #isAnswered(open: OpenQuestion): boolean {
    const kept = this.#log.kept(open.key)
    if (kept) answerAgain(open, this.#noted(kept as ToWork | typeof EXPIRED))
    return kept !== undefined
  }

  #put(open: OpenQuestion, isNew: boolean): void {
    this.#open = open
    this.#hasAsked = true
    this.#expireIn(open)
    // Asked before, it is asked again only if the task does not wait: the work was started again meanwhile.
    if (isNew || !this.#task.isInterrupted()) this.#task.say(open.event)
    else this.#log.afterCommit(() => {})
  }

  #putRelayed(relayed: OpenQuestion): void {
    const isAsked = this.#log.kept(RELAYED) === relayed.key
    if (!isAsked) this.#log.keep(RELAYED, relayed.key)
    this.#put(relayed, !isAsked)
  }

  /** In a task that waited when the work began to run again the question that it waits for comes first. */
  #isFreeFor(key: string): boolean {
    if (this.#open) return false
    return this.#hasAsked || !this.#task.isInterrupted() || this.#log.kept(RELAYED) === key
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
    this.#log.keep(open.key, given)
    this.#leave()
    this.#log.afterCommit(() => {
      this.#noted(given)
      settle()
    })
  }

  /** Notes what the work may ask for of an answer that it gets now. */
  #noted(given: ToWork | typeof EXPIRED): ToWork | typeof EXPIRED {
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
    this.#task.say({ type: 'work.resumed' })
    this.#next()
  }

  #next(): void {
    const next = this.#waiting?.shift()
    if (next) this.#putRelayed(next)
  }
}

/** What the question makes of what came, or the error that its schema throws. */
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
  else reject(new A2AError('InvalidAgentResponse', 'The work wanted another answer when it ran again than it got before.'))
}

function expired({ options }: Question): A2AError {
  return new A2AError('DeadlineExceeded', `Nobody answered within ${options.deadlineMs} ms.`)
}
