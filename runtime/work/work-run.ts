import { createActor, type ActorRefFrom, type AnyActorLogic, type AnyActorRef, type AnyActorScope, type InputFrom } from 'xstate'
import type { Task } from '../../machines/protocol/objects.ts'
import type { Message } from '../../machines/protocol/parts.ts'
import type { ToWork, WorkEvent, WorkOutcome, WorkWord } from '../../machines/task-events.ts'
import { toOutcome, toWorkEvent } from '../authoring/checked-words.ts'
import type { Question } from '../authoring/questions.ts'
import type { ReceivedMessage, WorkStepArguments, WorkArguments, WorkEnd, WorkInput } from '../authoring/work-arguments.ts'
import { familyOf, hostOf, type ActorHost } from '../commits/actor-host.ts'
import { gated } from '../commits/commit-gate.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { ignoreRejection } from '../primitives/promises.ts'
import type { JournalRow, Scope } from '../store/store.ts'
import { RunJournal, Steps } from './journal.ts'
import { QuestionQueue, type CheckedAnswer, type Relayed } from './question-queue.ts'
import { Replay } from './replay.ts'
import { RunArguments } from './run-arguments.ts'
import { openedIn } from './work-input.ts'

/** What a run calls, with what the author's code is given and the run itself. */
export type WorkProgram = (work: WorkArguments, run: WorkRun) => WorkEnd | Promise<WorkEnd>

/** What a run is made of. `isRerun`: there was a run of this work before, whose words and results count. */
export interface RunOptions {
  readonly scope: AnyActorScope
  readonly program: WorkProgram
  readonly isRerun: boolean
  /** Hears how the work ended, unless it was stopped or has crashed. */
  readonly ended: (outcome: WorkOutcome) => void
}

/** Why a run is over. */
type Ending = { readonly reason: unknown }

const LEFT = ending('The work leaves memory.')
const ENDED_BEFORE = ending('The task has ended.')
const ENDED = ending('The work has ended.')

/**
 * One run of work as a function or as a generator, from its start. What it says becomes events of its task; what it
 * learns (answers, results of steps, ends of sleeps) is durable before it goes on, so that it may run again: after a
 * crash, a restart, or because it left memory while it waited.
 */
export class WorkRun {
  readonly #options: RunOptions
  readonly #host: ActorHost
  readonly #log: RunJournal
  /** None before the work asks. */
  #questions: QuestionQueue | undefined
  readonly #steps: Steps
  readonly #children: AnyActorRef[] = []
  readonly #reported = new Set<string>()
  #abort: AbortController | undefined
  #over: Ending | undefined
  #settled: Promise<unknown> | undefined
  #cleanUp: () => Promise<unknown> = async () => {}
  #isCatchingUp: boolean
  #caughtUp = () => {}

  constructor(options: RunOptions) {
    this.#options = options
    this.#host = hostOf(options.scope.system)
    this.#log = new RunJournal(familyOf(options.scope.self), this.#host)
    this.#steps = new Steps(this.#log, '', () => this.signal)
    this.#isCatchingUp = options.isRerun
  }

  /** True while it has asked and nothing else is under way, so that it may leave memory. */
  get isWaiting(): boolean {
    return this.#questions?.isOpen === true && !this.#steps.isUnderWay
  }

  /** Resolves when a run that follows another has come to its open question, or to its end. */
  caughtUp(): Promise<void> | undefined {
    return this.#isCatchingUp ? new Promise(resolve => (this.#caughtUp = chain(this.#caughtUp, resolve))) : undefined
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.#over) this.#abort.abort(this.#over.reason)
    return this.#abort.signal
  }

  /** Runs the work. The input is read again if it is not given. */
  begin(input: WorkInput | undefined): void {
    this.#settled = this.#work(input)
  }

  /** Checks an answer: see {@link QuestionQueue.check}. */
  check<Given extends ToWork>(given: Given): CheckedAnswer<Given> | undefined {
    return this.#questions?.check(given)
  }

  receive(given: ToWork): void {
    this.#questions?.receive(given)
  }

  get isOver(): boolean {
    return this.#over !== undefined
  }

  /** Waits until what was said is told, and others have had their turn. */
  async flow(): Promise<void> {
    await this.#log.committed()
    await new Promise(resolve => setImmediate(resolve))
    this.#host.runs(this.#log.taskId)
  }

  /** Takes what is to be done if the task ends before the work does. */
  onStop(cleanUp: () => Promise<unknown>): void {
    this.#cleanUp = cleanUp
  }

  /** Ends the run, since its task has ended or leaves memory. What it says later is dropped. May be called twice. */
  stop(): void {
    if (this.#over) return
    const { isLeaving } = this.#host
    this.#finish(isLeaving ? LEFT : ENDED_BEFORE)
    if (!isLeaving && this.#settled) this.#host.cleansUp(this.#log.taskId, Promise.allSettled([this.#settled, this.#cleanUp()]))
  }

  emit(words: unknown): void {
    const event = this.#heard(words)
    if (!event) return
    const ordinal = this.#log.next()
    const word = this.#log.word(ordinal, event)
    if (!word) return
    word.ordinal = ordinal
    this.#say(word)
  }

  ask<Answer>(question: Question<Answer>): Promise<Answer> {
    return this.#handed(this.#asked(question)) as Promise<Answer>
  }

  /** Asks what another agent asks through this work: see {@link QuestionQueue.relay}. */
  relay(question: Question, relayed: Relayed): Promise<unknown> {
    const answer = this.#asking.relay(question, relayed)
    if (this.#asking.isOpen) this.#isUpToDate()
    return this.#handed(answer)
  }

  /** Says without an ordinal what a step says while it runs, or another agent through this work: whoever has it said knows what was said already. */
  pass(words: unknown): void {
    const event = this.#heard(words)
    if (event) this.#say(event)
  }

  lastAnswer(): ReceivedMessage | undefined {
    return this.#asking.lastAnswer
  }

  step<T>(name: string, run: (step: WorkStepArguments) => T | Promise<T>): Promise<T> {
    return this.#steps.handed(name, this.#handed(this.#steps.run(name, step => run({ ...step, emit: words => this.pass(words) }))))
  }

  history(limit?: number): Promise<Message[]> {
    return this.#handed(this.#host.readHistory(this.#log.taskId, limit))
  }

  sleep(ms: number): Promise<void> {
    return this.#handed(this.#slept(ms))
  }

  get owner(): Scope {
    const { tenant, principal } = this.#host.key
    return { tenant, principal }
  }

  readTask(taskId = this.#log.taskId): Promise<Task> {
    return this.#handed(this.#host.readTask(taskId))
  }

  completed(task: Task | string): Promise<Task> {
    const taskId = typeof task === 'string' ? task : task.id
    return this.#handed(this.#steps.whileUnderWay(async () => this.#host.completedTask(taskId, this.#log.taskId, this.signal)))
  }

  spawn<Logic extends AnyActorLogic>(logic: Logic, { id, input }: { id?: string; input?: InputFrom<Logic> } = {}): ActorRefFrom<Logic> {
    this.#check()
    const child = createActor(gated(logic), { parent: this.#options.scope.self, ...(id !== undefined && { id }), input })
    this.#children.push(child)
    return child.start() as unknown as ActorRefFrom<Logic>
  }

  get #asking(): QuestionQueue {
    return (this.#questions ??= new QuestionQueue(this.#log, { say: event => this.#say(event), isInterrupted: () => this.#host.isInterrupted(this.#log.taskId) }))
  }

  /** What the author's words say to the task; nothing if nobody is to hear them. */
  #heard(words: unknown): WorkWord | undefined {
    if (this.#over) return this.#unheard('what a work said after its end was dropped')
    const event = toWorkEvent(words)
    // A status of its own would take the question away.
    if (event.type === 'work.progressed' && this.#questions?.isOpen) return this.#unheard('progress was not told, for the task waits for an answer')
    return event
  }

  async #asked(question: Question): Promise<unknown> {
    this.#check()
    const answer = this.#asking.ask(question)
    if (this.#asking.isOpen) this.#isUpToDate()
    return answer
  }

  /** Reports, once in a run for each reason, that a word goes unheard. */
  #unheard(why: string): undefined {
    if (!this.#reported.has(why)) this.#host.logger.warn(why, { taskId: this.#log.taskId })
    this.#reported.add(why)
  }

  async #work(input: WorkInput | undefined): Promise<void> {
    try {
      const { taskId } = this.#log
      let journal: readonly JournalRow[] | undefined
      const given = input ?? (await this.#host.workInput(taskId, async () => openedIn((journal = await this.#host.readJournal(taskId)))))
      if (this.#isCatchingUp) this.#log.follow(new Replay({ events: await this.#host.readEvents(taskId), journal: journal ?? (await this.#host.readJournal(taskId)) }))
      if (this.#over) return
      killPoint('effect started')
      this.#host.runs(taskId)
      const outcome = toOutcome(await this.#options.program(new RunArguments(given, this), this))
      if (this.#over) return
      this.#log.checkEnd()
      killPoint('effect ended')
      this.#finish(ENDED)
      this.#options.ended(outcome)
    } catch (error) {
      if (this.#over) return
      this.#finish({ reason: error })
      this.#host.crash(this.#log.taskId, error)
    }
  }

  async #slept(ms: number): Promise<void> {
    this.#check()
    const ordinal = this.#log.next()
    this.#log.noteSleep(ordinal)
    const { signal } = this
    await new Promise<void>((resolve, reject) => {
      const stopped = () => reject(signal.reason)
      this.#log.alarm(String(ordinal), ms, () => {
        signal.removeEventListener('abort', stopped)
        resolve()
      })
      signal.addEventListener('abort', stopped, { once: true })
    })
  }

  #finish(over: Ending): void {
    this.#over = over
    this.#questions?.giveUp(this.#host.isLeaving ? undefined : over)
    this.#abort?.abort(over.reason)
    for (const child of this.#children) this.#options.scope.stopChild(child)
    if (over !== LEFT && over !== ENDED_BEFORE) this.#steps.end()
    this.#isUpToDate()
  }

  #isUpToDate(): void {
    this.#isCatchingUp = false
    this.#caughtUp()
  }

  #say(event: WorkEvent): void {
    this.#options.scope.self._parent?.send(event)
  }

  #check(): void {
    if (this.#over) throw this.#over.reason
  }

  /**
   * A promise as the author's code gets it. Work that leaves memory hears no more of it, so that nothing is undone that
   * will go on. After its end the error comes in another turn of the event loop: code that tries again for ever, whatever
   * it catches, holds up nobody else.
   */
  #handed<T>(promise: Promise<T>): Promise<T> {
    return ignoreRejection(new Promise((resolve, reject) => {
      promise.then(resolve, error => {
        if (!this.#over) reject(error)
        else if (this.#over !== LEFT) setImmediate(reject, error)
      })
    }))
  }
}

/** An ending whose error is made when somebody asks for it. */
function ending(text: string): Ending {
  return {
    get reason() {
      return new DOMException(text, 'AbortError')
    }
  }
}

function chain(first: () => void, second: () => void): () => void {
  return () => {
    first()
    second()
  }
}
