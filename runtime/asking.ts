import { A2AError, type FieldViolation } from '../machines/protocol/errors.ts'
import type { ToWork, WorkEvent } from '../machines/task-events.ts'
import { questionEventOf } from './outcomes.ts'
import { answerTo, type Question } from './questions.ts'
import { checkWait, type RunLog } from './run-log.ts'

interface OpenQuestion {
  readonly ordinal: number
  readonly question: Question
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: unknown) => void
}

/** What a run's questions need of their task. */
interface AskedTask {
  readonly say: (event: WorkEvent) => void
  /** Whether the task waits for its client already. */
  readonly isInterrupted: () => boolean
}

/** In the journal in place of an answer: nobody answered in time. */
const EXPIRED = { expired: true } as const

/** The questions of one run of work: one at a time, each answered, expired, or given up with the run. */
export class Asking {
  readonly #log: RunLog
  readonly #task: AskedTask
  #open: OpenQuestion | undefined

  constructor(log: RunLog, task: AskedTask) {
    this.#log = log
    this.#task = task
  }

  get isOpen(): boolean {
    return this.#open !== undefined
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
      const open = { ordinal, question, resolve, reject }
      const kept = log.kept(String(ordinal))
      if (kept) return answerAgain(open, kept as ToWork | typeof EXPIRED)
      this.#open = open
      this.#expireIn(open)
      // Asked before, it is asked again only if the task does not wait: the work was started again meanwhile.
      if (word || !this.#task.isInterrupted()) this.#task.say({ ...event, ordinal })
      else log.afterCommit(() => {})
    })
  }

  /**
   * What is wrong with an answer to the open question, by field; nothing if it may be given, also if the schema throws:
   * then the work gets the error. `undefined` if no question is open.
   */
  faultsOf(given: ToWork): readonly FieldViolation[] | undefined {
    if (!this.#open) return undefined
    const result = checked(this.#open.question, given)
    return 'violations' in result ? result.violations : []
  }

  /** Answers the open question; one that a queued message does not answer is asked. */
  receive(given: ToWork): void {
    const open = this.#open
    if (!open) return
    const result = checked(open.question, given)
    if ('answer' in result) this.#close(open, given, () => open.resolve(result.answer))
    else if ('error' in result) this.#close(open, given, () => open.reject(result.error))
    else this.#task.say({ ...questionEventOf(open.question), ordinal: open.ordinal })
  }

  /** Gives the open question up: without a word, or with an error to whoever waits for its answer. */
  giveUp(error?: { reason: unknown }): void {
    const open = this.#open
    this.#open = undefined
    if (open && error) open.reject(error.reason)
  }

  #expireIn(open: OpenQuestion): void {
    const { deadlineMs } = open.question.options
    if (deadlineMs === undefined) return
    this.#log.alarm(`${open.ordinal}/until`, deadlineMs, () => {
      if (this.#open === open) this.#close(open, EXPIRED, () => open.reject(expired(open.question)))
    })
  }

  #close(open: OpenQuestion, given: ToWork | typeof EXPIRED, settle: () => void): void {
    this.#open = undefined
    if (open.question.options.deadlineMs !== undefined) this.#log.noAlarm(`${open.ordinal}/until`)
    this.#log.keep(String(open.ordinal), given)
    this.#task.say({ type: 'work.resumed' })
    this.#log.afterCommit(settle)
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
