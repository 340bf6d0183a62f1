import type { ActorRefFrom, AnyActorLogic, AnyActorRef, AnyActorScope, InputFrom } from 'xstate'
import { isObject } from '../../machines/protocol/codec/json.ts'
import type { Message, RequestDetails, Task } from '../../machines/protocol/objects.ts'
import type { ToWork, WorkEvent, WorkOutcome, WorkWord } from '../../machines/task-events.ts'
import type { RefiningOptions, EarlierArtifact } from '../authoring/artifact-choices.ts'
import { toOutcome, toWorkEvent } from '../authoring/checked-words.ts'
import type { Question } from '../authoring/questions.ts'
import { UnusedWords } from '../authoring/words.ts'
import {
  type FindArtifact,
  type ReceivedMessage,
  type StepArguments,
  TOOLS,
  type WorkArguments,
  type WorkEnd,
  type WorkInput,
  type WorkStepArguments
} from '../authoring/work-arguments.ts'
import { type ActorHost, deferEffects, hostOf, taskIdOf } from '../commits/actor-host.ts'
import { appendItem, NONE } from '../primitives/collections.ts'
import { ignoreRejection } from '../primitives/event-loop.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { checkArgument, type Kind, withMethods } from '../primitives/options.ts'
import type { Scope } from '../store/rows.ts'
import type { JournalRow } from '../store/store.ts'
import { createActor } from '../xstate/library.ts'
import { refuseOtherMajor } from '../xstate/other-majors.ts'
import { ArtifactChunks } from './artifact-chunks.ts'
import { prerequisitesOf } from './awaited-tasks.ts'
import { RunJournal, Steps } from './journal.ts'
import { type CheckedAnswer, QuestionQueue, type Relayed } from './question-queue.ts'
import { findArtifactToRefine } from './refining.ts'
import { Replay } from './replay.ts'
import { detailsFromJournal } from './work-input.ts'

/** The function that a run calls: the author's code, with its arguments and the run. */
export type WorkProgram = (work: WorkArguments, run: WorkRun) => WorkEnd | Promise<WorkEnd>

/** Options of a run. `isRerun`: the work has run before, so its record is replayed, by default with {@link Replay}. */
interface RunOptions {
  readonly scope: AnyActorScope
  readonly program: WorkProgram
  readonly isRerun: boolean
  readonly replay?: () => Replay
  /** Called with the outcome, unless the work was stopped or crashed. */
  readonly ended: (outcome: WorkOutcome) => void
}

/** Why a run is over: the abort reason of its signal. */
type Ending = { readonly reason: unknown }

const A_TASK_ID: Kind = [value => typeof value === 'string', 'the id of a task']
const A_TASK: Kind = [
  value => typeof value === 'string' || (isObject(value) && typeof value['id'] === 'string'),
  'a task or its id'
]
const A_LOGIC: Kind = withMethods(['transition', 'getInitialSnapshot'], 'the logic of an actor')

const LEFT_MEMORY = ending('The work leaves memory.')
const TASK_ENDED = ending('The task has ended.')
const WORK_ENDED = ending('The work has ended.')

/**
 * One run of a work function or generator, from its start. Its words become events of its task. Answers, results of
 * steps and ends of sleeps are stored before it continues. So it can run again with its journal: after a crash, after a
 * restart of the process, or when it left memory while it waited.
 */
export class WorkRun {
  readonly #options: RunOptions
  readonly #host: ActorHost
  readonly #log: RunJournal
  /** Created by the first question. */
  #questions: QuestionQueue | undefined
  /** Created by the first artifact. */
  #chunksMade: ArtifactChunks | undefined
  /** Created by the first step. */
  #stepsMade: Steps | undefined
  #children: readonly AnyActorRef[] = NONE
  #reported: readonly string[] = NONE
  #abort: AbortController | undefined
  #over: Ending | undefined
  #settled: Promise<unknown> | undefined
  #cleanUp: (() => Promise<unknown>) | undefined
  #isReplaying: boolean
  #whenReplayed: readonly (() => void)[] = NONE
  #unusedWords: UnusedWords | undefined

  constructor(options: RunOptions) {
    this.#options = options
    this.#host = hostOf(options.scope.system)
    this.#log = new RunJournal(taskIdOf(options.scope.self), this.#host)
    this.#isReplaying = options.isRerun
  }

  /** Whether the run only waits for an answer, so that it may leave memory. */
  get isWaiting(): boolean {
    return this.#questions?.isOpen === true && this.#stepsMade?.isUnderWay !== true
  }

  /** Resolves when a rerun has reached its open question or its end; `undefined` if it has, or is the first run. */
  replayed(): Promise<void> | undefined {
    return this.#isReplaying ? new Promise(to => (this.#whenReplayed = appendItem(this.#whenReplayed, to))) : undefined
  }

  get signal(): AbortSignal {
    this.#abort ??= new AbortController()
    if (this.#over) this.#abort.abort(this.#over.reason)
    return this.#abort.signal
  }

  /** Runs the work. Without `input` it is read from the store. */
  begin(input: WorkInput | undefined): void {
    this.#settled = this.#work(input)
  }

  /** Validates an answer: see {@link QuestionQueue.check}. */
  check<Given extends ToWork>(given: Given): CheckedAnswer<Given> | undefined {
    return this.#questions?.check(given)
  }

  receive(given: ToWork): void {
    this.#questions?.receive(given)
  }

  get isOver(): boolean {
    return this.#over !== undefined
  }

  /** The pause of a generator after its yields so far, if one is due: see {@link RunJournal.pause}. */
  pause(yielded: number): Promise<void> | undefined {
    return this.#log.pause(yielded)
  }

  /** The words that a generator has made and not yielded. */
  get unusedWords(): UnusedWords {
    return (this.#unusedWords ??= new UnusedWords())
  }

  /** Whether the work is a generator, which yields its words and its questions. */
  get isGenerator(): boolean {
    return this.#cleanUp !== undefined
  }

  /** Sets the cleanup of a generator, for a task that ends before its work. */
  onStop(cleanUp: () => Promise<unknown>): void {
    this.#cleanUp = cleanUp
  }

  /** Ends the run, because its task has ended or leaves memory. Later words are dropped. May be called twice. */
  stop(): void {
    if (this.#over) return
    const { isLeaving } = this.#host
    this.#finish(isLeaving ? LEFT_MEMORY : TASK_ENDED)
    if (!isLeaving && this.#settled)
      this.#host.awaitCleanup(this.#log.taskId, Promise.allSettled([this.#settled, this.#cleanUp?.()]))
  }

  emit(words: unknown): void {
    const event = this.#acceptedWord(words)
    if (!event) return
    const ordinal = this.#log.next()
    const word = this.#log.emitOnce(ordinal, event)
    if (!word) return
    word.ordinal = ordinal
    this.#send(word)
  }

  ask<Answer>(question: Question<Answer>): Promise<Answer> {
    return this.#forAuthor(this.#askQuestion(question)) as Promise<Answer>
  }

  /** Asks a question of another agent: see {@link QuestionQueue.relay}. */
  relay(question: Question, relayed: Relayed): Promise<unknown> {
    const answer = this.#questionQueue.relay(question, relayed)
    if (this.#questionQueue.isOpen) this.#isUpToDate()
    return this.#forAuthor(answer)
  }

  /**
   * Sends a word of a step, or of another agent, without an ordinal. It is not compared on replay, so the caller must
   * not repeat it.
   */
  pass(words: unknown): void {
    const event = this.#acceptedWord(words)
    if (event) this.#send(event)
  }

  lastAnswer(): ReceivedMessage | undefined {
    return this.#questionQueue.lastAnswer
  }

  step<T>(name: string, run: (step: WorkStepArguments) => T | Promise<T>): Promise<T> {
    const emit = (words: unknown) => this.pass(words)
    const runWith = typeof run === 'function' ? (step: StepArguments) => run({ ...step, emit }) : run
    return this.#steps.forAuthor(name, this.#forAuthor(this.#steps.run(name, runWith)))
  }

  patch(name: string): boolean {
    this.#check()
    return this.#log.patch(name)
  }

  retired(name: string): void {
    this.#check()
    this.#log.retired(name)
  }

  history(limit?: number): Promise<Message[]> {
    return this.#forAuthor(this.#host.readHistory(this.#log.taskId, limit))
  }

  sleep(ms: number): Promise<void> {
    return this.#forAuthor(this.#slept(ms))
  }

  get owner(): Scope {
    const { tenant, principal } = this.#host.key
    return { tenant, principal }
  }

  readTask(taskId = this.#log.taskId): Promise<Task> {
    checkArgument(taskId, A_TASK_ID, 'readTask(taskId)')
    return this.#forAuthor(this.#host.readTask(taskId))
  }

  completed(task: Task | string): Promise<Task> {
    checkArgument(task, A_TASK, 'completed(task)')
    const taskId = typeof task === 'string' ? task : task.id
    return this.#forAuthor(
      this.#steps.whileUnderWay(async () =>
        this.#log.noteWait(taskId, this.#host.completedTask(taskId, this.#log.taskId, this.signal))
      )
    )
  }

  spawn<Logic extends AnyActorLogic>(
    logic: Logic,
    { id, input }: { id?: string; input?: InputFrom<Logic> } = {}
  ): ActorRefFrom<Logic> {
    this.#check()
    refuseOtherMajor(logic, 'The actor')
    checkArgument(logic, A_LOGIC, 'spawn(fromPromise(async () => …))')
    const child = createActor(deferEffects(logic), {
      parent: this.#options.scope.self,
      ...(id !== undefined && { id }),
      input
    })
    this.#children = appendItem(this.#children, child)
    return child.start() as unknown as ActorRefFrom<Logic>
  }

  get #steps(): Steps {
    return (this.#stepsMade ??= new Steps(this.#log, '', () => this.signal))
  }

  get #chunks(): ArtifactChunks {
    return (this.#chunksMade ??= new ArtifactChunks())
  }

  get #questionQueue(): QuestionQueue {
    return (this.#questions ??= new QuestionQueue(this.#log, {
      send: event => this.#send(event),
      isInterrupted: () => this.#host.isInterrupted(this.#log.taskId)
    }))
  }

  /** The word for the task; `undefined` if it is dropped. */
  #acceptedWord(words: unknown): WorkWord | undefined {
    if (this.#over) return this.#warnDropped('a word was dropped because its work had ended')
    const event = toWorkEvent(words)
    // A status without a question would end the interruption.
    if (event.type === 'work.progressed' && this.#questions?.isOpen)
      return this.#warnDropped('progress was dropped because the task waits for an answer')
    return event.type === 'work.produced' ? this.#chunks.next(event) : event
  }

  async #askQuestion(question: Question): Promise<unknown> {
    this.#check()
    const answer = this.#questionQueue.ask(question)
    if (this.#questionQueue.isOpen) this.#isUpToDate()
    return answer
  }

  /** Logs a dropped word, once per run and reason. */
  #warnDropped(why: string): undefined {
    if (!this.#reported.includes(why)) this.#host.logger.warn(why, { taskId: this.#log.taskId })
    this.#reported = appendItem(this.#reported, why)
  }

  /** Warns of words that a generator made and did not yield. */
  #warnUnused(): void {
    const { taskId } = this.#log
    const words = this.#unusedWords?.names() ?? []
    if (words.length > 0)
      this.#host.logger.warn(`a generator made words that it never said. Write ${words.join(', ')}`, { taskId })
  }

  async #work(input: WorkInput | undefined): Promise<void> {
    try {
      const { taskId } = this.#log
      let journal: readonly JournalRow[] | undefined
      const readDetails = async () => {
        journal = await this.#host.readJournal(taskId)
        return detailsFromJournal(journal)
      }
      const given = input ?? (await this.#host.workInput(taskId, readDetails))
      if (this.#isReplaying) {
        const events = await this.#host.readEvents(taskId)
        this.#chunks.note(events)
        journal ??= await this.#host.readJournal(taskId)
        this.#log.replayFrom(this.#options.replay?.() ?? new Replay({ events, journal }))
      }
      // The task may have ended meanwhile, in a turn that is not committed yet.
      if (this.#over || this.#options.scope.self.getSnapshot().status !== 'active') return
      killPoint('effect started')
      this.#host.noteRun(taskId)
      const outcome = toOutcome(await this.#options.program(new RunArguments(given, this), this))
      if (this.#over) return
      this.#log.checkEnd()
      this.#warnUnused()
      killPoint('effect ended')
      this.#finish(WORK_ENDED)
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
        this.#log.noteAwake(ordinal)
        resolve()
      })
      signal.addEventListener('abort', stopped, { once: true })
    })
  }

  #finish(over: Ending): void {
    this.#over = over
    this.#unusedWords?.end()
    this.#questions?.giveUp(this.#host.isLeaving ? undefined : over)
    this.#abort?.abort(over.reason)
    for (const child of this.#children) this.#options.scope.stopChild(child)
    if (over !== LEFT_MEMORY && over !== TASK_ENDED) this.#stepsMade?.end()
    this.#isUpToDate()
  }

  #isUpToDate(): void {
    this.#isReplaying = false
    for (const resolve of this.#whenReplayed) resolve()
  }

  #send(event: WorkEvent): void {
    this.#options.scope.self._parent?.send(event)
  }

  #check(): void {
    if (this.#over) throw this.#over.reason
  }

  /**
   * A promise for the author's code. After the work has left memory it never settles, so that `catch` and `finally`
   * blocks do not undo work that will resume. After any other end it rejects in a later round of the event loop, so
   * that code which catches every error and retries does not block the process.
   */
  #forAuthor<T>(promise: Promise<T>): Promise<T> {
    return ignoreRejection(
      new Promise((resolve, reject) => {
        promise.then(resolve, error => {
          if (!this.#over) reject(error)
          else if (this.#over !== LEFT_MEMORY) setImmediate(reject, error)
        })
      })
    )
  }
}

/** An ending whose error is created when it is read. */
function ending(text: string): Ending {
  return {
    get reason() {
      return new DOMException(text, 'AbortError')
    }
  }
}

/** Members of the work arguments that the run provides. */
type WorkTools = Omit<WorkArguments, keyof WorkInput | 'artifactToRefine' | 'prerequisites'> &
  Pick<WorkRun, 'isGenerator'>

/** Arguments of work: its input, and the tools of its run, each bound when the work reads it. */
class RunArguments implements WorkArguments {
  readonly taskId: string
  readonly contextId: string
  readonly message: Message
  readonly request: RequestDetails
  readonly input: unknown
  readonly terms: Record<string, unknown> | undefined
  readonly extensions: readonly string[]
  readonly referenceTasks: Task[]
  readonly unloadedTasks: readonly string[]
  readonly earlierArtifacts: EarlierArtifact[]
  readonly #tools: WorkTools

  constructor(given: WorkInput, tools: WorkTools) {
    this.taskId = given.taskId
    this.contextId = given.contextId
    this.message = given.message
    this.request = given.request
    this.input = given.input
    this.terms = given.terms
    this.extensions = given.extensions
    this.referenceTasks = given.referenceTasks
    this.unloadedTasks = given.unloadedTasks
    this.earlierArtifacts = given.earlierArtifacts
    this.#tools = tools
  }

  get signal(): WorkArguments['signal'] {
    return this.#tools.signal
  }

  get emit(): WorkArguments['emit'] {
    return words => {
      if (this.#tools.isGenerator) throw notInGenerator('emit', "yield progress('…')")
      this.#tools.emit(words)
    }
  }

  get ask(): WorkArguments['ask'] {
    return <Answer>(question: Question<Answer>) => {
      if (this.#tools.isGenerator) throw notInGenerator('ask', "const answer = yield* inputRequired('…')")
      return this.#tools.ask(question)
    }
  }

  get [TOOLS](): WorkTools {
    return this.#tools
  }

  get lastAnswer(): WorkArguments['lastAnswer'] {
    return () => this.#tools.lastAnswer()
  }

  get step(): WorkArguments['step'] {
    return (name, run) => this.#tools.step(name, run)
  }

  get patch(): WorkArguments['patch'] {
    return name => this.#tools.patch(name)
  }

  get retired(): WorkArguments['retired'] {
    return name => this.#tools.retired(name)
  }

  get owner(): WorkArguments['owner'] {
    return this.#tools.owner
  }

  get readTask(): WorkArguments['readTask'] {
    return taskId => this.#tools.readTask(taskId)
  }

  get completed(): WorkArguments['completed'] {
    return task => this.#tools.completed(task)
  }

  get prerequisites(): WorkArguments['prerequisites'] {
    return () => prerequisitesOf(this)
  }

  get artifactToRefine(): FindArtifact {
    return ((options?: RefiningOptions) => findArtifactToRefine(this, options)) as FindArtifact
  }

  get history(): WorkArguments['history'] {
    return limit => this.#tools.history(limit)
  }

  get sleep(): WorkArguments['sleep'] {
    return ms => this.#tools.sleep(ms)
  }

  get spawn(): WorkArguments['spawn'] {
    return (logic, options) => this.#tools.spawn(logic, options)
  }
}

const notInGenerator = (name: string, instead: string) =>
  new TypeError(`${name} is for work that is a function. In a generator write: ${instead}.`)
