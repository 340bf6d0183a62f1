import type { WorkWord } from '../../machines/task-events.ts'
import { keptValue, checkWait } from '../authoring/checked-words.ts'
import type { StepArguments } from '../authoring/work-arguments.ts'
import type { ActorHost } from '../commits/actor-host.ts'
import { appendItem, NONE } from '../primitives/collections.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { kindOf } from '../primitives/options.ts'
import type { JournalRow } from '../store/store.ts'
import { ENDED_SLEEP, hasEnded, isSleep, type Replay } from './replay.ts'

/** A generator pauses after this many yields, and after this many bytes. */
const YIELDS_BEFORE_PAUSE = 32
const BYTES_BEFORE_PAUSE = 256 * 1024

/** The longest name of a patch, in characters. */
const PATCH_NAME = 200
const PATCH_PREFIX = 'patch/'

/** A decision on a patch, as the journal keeps it: whether the task runs the code with it, and since when. */
interface PatchDecision {
  readonly isPatched: boolean
  /** In milliseconds since 1970. */
  readonly atMs: number
}

/** The decision on a patch that a row of a journal holds, with the patch's name; `undefined` for other rows. */
export function patchIn({ key, value }: JournalRow): (PatchDecision & { readonly name: string }) | undefined {
  return key.startsWith(PATCH_PREFIX)
    ? { name: key.slice(PATCH_PREFIX.length), ...(value as PatchDecision) }
    : undefined
}

/** The words of one run, by ordinal, and its journal, by key. A replay reads the values of earlier runs from it. */
export class RunJournal {
  readonly taskId: string
  readonly #host: ActorHost
  #replay: Replay | undefined
  #ordinal = 0
  /** The bytes of the task at the last pause. */
  #pausedAtBytes = 0
  /** Whether this run has got what no earlier run had: an answer, a result of a step, the end of a wait. */
  #hasNews = false
  /** Sleeps that ended in this run, whose end the journal does not have yet. */
  #endedSleeps: readonly string[] = NONE
  /** Decisions on patches that this run has made, by name. */
  #patches: Map<string, boolean> | undefined
  /** The commit of the newest decision on a patch, until it is there. */
  #deciding: Promise<void> | undefined

  constructor(taskId: string, host: ActorHost) {
    this.taskId = taskId
    this.#host = host
  }

  /** Replays the record of an earlier run. */
  replayFrom(replay: Replay): void {
    this.#replay = replay
  }

  next(): number {
    return (this.#ordinal += 1)
  }

  /** The word to send; `undefined` if an earlier run has sent it. */
  emitOnce(ordinal: number, word: WorkWord): WorkWord | undefined {
    return this.#replay ? this.#replay.word(ordinal, word) : word
  }

  /** Throws InvalidAgentResponse if the work ends without a question of an earlier run. */
  checkEnd(): void {
    this.#replay?.checkEnd(this.#ordinal)
  }

  /** The journal's value for this key when the run began; `undefined` if there was none. */
  storedValue(key: string): unknown {
    return this.#replay?.entry(key)
  }

  /** Writes a JSON value to the journal in the current turn. */
  keep(key: string, value: unknown): void {
    this.#host.keep({ taskId: this.taskId, key, value })
  }

  /** Writes what ended a wait to the journal: the answer to a question, or the result of a step. */
  keepNews(key: string, value: unknown): void {
    this.#hasNews = true
    this.keep(key, value)
  }

  /** Notes that a sleep has ended in this run, unless it had ended in an earlier one. */
  noteAwake(ordinal: number): void {
    const key = String(ordinal)
    if (hasEnded(this.storedValue(key))) return
    this.#hasNews = true
    this.#endedSleeps = appendItem(this.#endedSleeps, key)
  }

  /** Waits until another task has completed, and notes that, unless an earlier run had it. */
  async noteWait<T>(taskId: string, completed: Promise<T>): Promise<T> {
    const result = await completed
    const kept = this.storedValue(`needs/${taskId}`)
    // Without a row the task had completed before an earlier run asked for it, or this run is the first to ask.
    if (kept !== undefined && !hasEnded(kept)) this.#hasNews = true
    return result
  }

  /**
   * Writes which sleeps have ended, before a step starts: the journal says nothing of a step that has no result yet, so
   * a later run could not know that this one came so far.
   */
  keepEndedSleeps(): void {
    for (const key of this.#endedSleeps) this.keep(key, ENDED_SLEEP)
    this.#endedSleeps = NONE
  }

  /**
   * Whether the work runs the code with a patch: the decision of an earlier run or call, else a new one, which the
   * journal keeps. It is `false` if an earlier run passed this point, or may have passed it.
   */
  patch(name: string): boolean {
    checkPatch('patch', name)
    return this.#patchOf(name) ?? this.#decide(name, !this.#mayHavePassed)
  }

  /** Throws TypeError if an earlier run has passed this point without the patch. */
  retired(name: string): void {
    checkPatch('retired', name)
    if (this.#patchOf(name) ?? (!this.#hasPassed && this.#decide(name, true))) return
    throw new TypeError(
      `retired(${JSON.stringify(name)}): this task passed that point without the patch, so it needs the old code. Write work.patch(${JSON.stringify(name)}) with both codes, until taskchart tasks patches says that it can be retired.`
    )
  }

  #patchOf(name: string): boolean | undefined {
    const kept = this.storedValue(PATCH_PREFIX + name) as PatchDecision | undefined
    return this.#patches?.get(name) ?? kept?.isPatched
  }

  #decide(name: string, isPatched: boolean): boolean {
    this.#patches = (this.#patches ?? new Map<string, boolean>()).set(name, isPatched)
    this.keep(PATCH_PREFIX + name, { isPatched, atMs: this.#host.clock.now() } satisfies PatchDecision)
    const deciding = (this.#deciding = this.committed())
    this.afterCommit(() => {
      if (this.#deciding === deciding) this.#deciding = undefined
    })
    return isPatched
  }

  /** Whether the record has something that this run has not come to. */
  get #hasPassed(): boolean {
    return this.#host.wasRestored(this.taskId) && this.#replay?.hasMoreThan(this.#ordinal) === true
  }

  /**
   * Also true while a restored run has only what earlier runs had: one of them may have gone on from here, to a step
   * that it did not finish.
   */
  get #mayHavePassed(): boolean {
    return this.#hasPassed || (this.#replay !== undefined && this.#host.wasRestored(this.taskId) && !this.#hasNews)
  }

  /** Checks that an earlier run slept at this ordinal. Throws InvalidAgentResponse if it did something else. */
  noteSleep(ordinal: number): void {
    this.#replay?.check(ordinal, 'sleep')
  }

  /** Calls `ring` once, `delayMs` after the first run set this alarm. The journal keeps the time. */
  alarm(key: string, delayMs: number, ring: () => void): void {
    checkWait(delayMs)
    const kept = this.storedValue(key)
    const untilMs = isSleep(kept) ? kept.untilMs : this.#host.clock.now() + delayMs
    if (!isSleep(kept)) this.keep(key, { untilMs })
    this.#host.setAlarm(this.taskId, key, untilMs, ring)
  }

  noAlarm(key: string): void {
    this.#host.clearAlarm(this.taskId, key)
  }

  afterCommit(run: () => void): void {
    this.#host.afterCommit({ taskId: this.taskId, run })
  }

  logUnawaited(step: string, error: unknown): void {
    this.#host.logger.error('a step failed, and its promise was never awaited', { taskId: this.taskId, step, error })
  }

  /**
   * Resolves when a step may start: when the decisions on patches are stored, and the store accepts commits. `undefined`
   * if it may now.
   */
  writable(): Promise<void> | undefined {
    return this.#deciding ?? this.#host.writable(this.taskId)
  }

  /**
   * A generator pauses after many yields, or many bytes, until they are committed, and for one round of the event loop.
   * So it neither blocks the event loop, nor fills the memory with words that the store is yet to write.
   */
  pause(yielded: number): Promise<void> | undefined {
    const bytes = this.#host.bytesOf(this.taskId)
    if (yielded % YIELDS_BEFORE_PAUSE !== 0 && bytes - this.#pausedAtBytes < BYTES_BEFORE_PAUSE) return undefined
    this.#pausedAtBytes = bytes
    return this.#flow()
  }

  async #flow(): Promise<void> {
    await this.committed()
    await new Promise(resolve => setImmediate(resolve))
    this.#host.noteRun(this.taskId)
  }

  /** Resolves when everything up to now is committed. */
  committed(): Promise<void> {
    return new Promise(resolve => this.afterCommit(resolve))
  }
}

/** Throws TypeError for a step without a name or a function. */
function checkStep(name: unknown, run: unknown): void {
  if (typeof name !== 'string' || typeof run !== 'function')
    throw new TypeError(
      `step takes a name and a function, not ${kindOf(name)} and ${kindOf(run)}: step('price', async () => …).`
    )
}

/** Throws TypeError for what cannot be the name of a patch. */
function checkPatch(method: string, name: unknown): void {
  if (typeof name === 'string' && name !== '' && name.length <= PATCH_NAME) return
  const given =
    typeof name === 'string' ? (name === '' ? 'an empty one' : `one of ${name.length} characters`) : kindOf(name)
  throw new TypeError(
    `${method} takes the name of a patch, a text of 1 to ${PATCH_NAME} characters, not ${given}: ${method}('two-offers').`
  )
}

/**
 * The promise of a step for the author's code. It detects that it is awaited, since `await` and `then` read its
 * `constructor` first. Its rejection does not end the process.
 */
class StepPromise<T> extends Promise<T> {
  #isAwaited = false

  static {
    Reflect.defineProperty(this.prototype, 'constructor', {
      get(this: object) {
        if (#isAwaited in this) this.#isAwaited = true
        return Promise
      }
    })
  }

  /** Settles as `promise` does; `rejected` is called if that rejects. */
  static of<T>(promise: Promise<T>, rejected: (error: unknown, step: StepPromise<T>) => void): StepPromise<T> {
    const step = new StepPromise<T>((resolve, reject) => void promise.then(resolve, reject))
    step.catch((error: unknown) => rejected(error, step))
    step.#isAwaited = false
    return step
  }

  get isAwaited(): boolean {
    return this.#isAwaited
  }
}

/**
 * The steps of one work, stored under `prefix` in the journal of its task. On replay a step gives its stored result.
 */
export class Steps {
  readonly #log: RunJournal
  readonly #prefix: string
  readonly #signal: () => AbortSignal
  readonly #counts = new Map<string, number>()
  /** Steps that rejected before they were awaited. */
  readonly #rejected: { readonly name: string; readonly error: unknown; readonly step: StepPromise<unknown> }[] = []
  #underWay = 0
  #hasEnded = false

  constructor(log: RunJournal, prefix: string, signal: () => AbortSignal) {
    this.#log = log
    this.#prefix = prefix
    this.#signal = signal
  }

  get isUnderWay(): boolean {
    return this.#underWay > 0
  }

  /** Runs a step, or gives its stored result. The result is a copy through JSON, on the first run too. */
  async run<T>(name: string, run: (step: StepArguments) => T | Promise<T>): Promise<T> {
    checkStep(name, run)
    const signal = this.#signal()
    signal.throwIfAborted()
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    const key = `${this.#prefix}step/${name}/${count}`
    const kept = this.#log.storedValue(key) as { result?: T } | undefined
    // A copy, so that the author's changes to it do not reach the journal.
    if (kept) return structuredClone(kept.result) as T
    // A step whose result cannot be stored would run again, so it waits for the store.
    const refused = this.#log.writable()
    if (refused) await refused
    signal.throwIfAborted()
    this.#log.keepEndedSleeps()
    const result = await this.#execute(name, key, run)
    const own = structuredClone(result)
    signal.throwIfAborted()
    killPoint('effect ended')
    this.#log.keepNews(key, { result })
    await this.#log.committed()
    return own
  }

  /**
   * The promise of a step for the author's code. If it rejects and is never awaited, that is logged when the work ends.
   */
  forAuthor<T>(name: string, promise: Promise<T>): Promise<T> {
    return StepPromise.of(promise, (error, step) => {
      if (!step.isAwaited) this.#rejected.push({ name, error, step })
      if (this.#hasEnded) this.end()
    })
  }

  /** Call it when the work has ended by itself: logs the steps that rejected and were never awaited. */
  end(): void {
    this.#hasEnded = true
    for (const { name, error, step } of this.#rejected.splice(0)) {
      const isStopped = this.#signal().aborted && (error as Error | undefined)?.name === 'AbortError'
      if (!step.isAwaited && !isStopped) this.#log.logUnawaited(name, error)
    }
  }

  /** Keeps the work in memory while `run` is pending, as a step does, but stores no result. */
  async whileUnderWay<T>(run: () => Promise<T>): Promise<T> {
    this.#underWay += 1
    try {
      return await run()
    } finally {
      this.#underWay -= 1
    }
  }

  async #execute<T>(name: string, key: string, run: (step: StepArguments) => T | Promise<T>): Promise<T> {
    killPoint('effect started')
    const result = await this.whileUnderWay(async () =>
      run({ idempotencyKey: `${this.#log.taskId}/${key}`, signal: this.#signal() })
    )
    return keptValue(result, `the result of step ${name}`)
  }
}
