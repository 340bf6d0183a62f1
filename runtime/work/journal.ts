import { inspect } from 'node:util'
import type { WorkWord } from '../../machines/task-events.ts'
import { keptValue } from '../authoring/checked-words.ts'
import type { StepArguments } from '../authoring/work-arguments.ts'
import type { ActorHost } from '../commits/actor-host.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { kindOf } from '../primitives/options.ts'
import { isSleep, type Replay } from './replay.ts'

/** A generator pauses after this many yields, and after this many bytes. */
const YIELDS_BEFORE_PAUSE = 32
const BYTES_BEFORE_PAUSE = 256 * 1024

/** The words of one run, by ordinal, and its journal, by key. On replay it gives what earlier runs have left. */
export class RunJournal {
  readonly taskId: string
  readonly #host: ActorHost
  #replay: Replay | undefined
  #ordinal = 0
  /** The bytes of the task at the last pause. */
  #pausedAtBytes = 0

  constructor(taskId: string, host: ActorHost) {
    this.taskId = taskId
    this.#host = host
  }

  /** Replays the record of an earlier run. */
  follow(replay: Replay): void {
    this.#replay = replay
  }

  next(): number {
    return (this.#ordinal += 1)
  }

  /** The word to send; `undefined` if an earlier run has sent it. */
  word(ordinal: number, word: WorkWord): WorkWord | undefined {
    return this.#replay ? this.#replay.word(ordinal, word) : word
  }

  /** Throws InvalidAgentResponse if the work ends without a question that an earlier run asked. */
  checkEnd(): void {
    this.#replay?.checkEnd(this.#ordinal)
  }

  /** The journal's value for this key when the run began; `undefined` if there was none. */
  kept(key: string): unknown {
    return this.#replay?.entry(key)
  }

  /** Writes a JSON value to the journal in the current turn. */
  keep(key: string, value: unknown): void {
    this.#host.keep({ taskId: this.taskId, key, value })
  }

  /** Checks that an earlier run slept at this ordinal. Throws InvalidAgentResponse if it did something else. */
  noteSleep(ordinal: number): void {
    this.#replay?.check(ordinal, 'sleep')
  }

  /** Calls `ring` once, `delayMs` after the first run set this alarm. The journal keeps the time. */
  alarm(key: string, delayMs: number, ring: () => void): void {
    checkWait(delayMs)
    const kept = this.kept(key)
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

  /** Resolves when the store accepts commits again; `undefined` if it accepts them now. */
  writable(): Promise<void> | undefined {
    return this.#host.writable(this.taskId)
  }

  /**
   * A generator pauses after many yields, or many bytes, until they are committed, and for one round of the event loop. So it neither blocks
   * the event loop, nor fills the memory with words that the store is yet to write.
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
    this.#host.runs(this.taskId)
  }

  /** Resolves when everything up to now is committed. */
  committed(): Promise<void> {
    return new Promise(resolve => this.afterCommit(resolve))
  }
}

/** Throws RangeError unless the delay is a finite number of milliseconds of at least 0. */
export function checkWait(delayMs: number): void {
  if (typeof delayMs !== 'number' || !(delayMs >= 0 && delayMs < Infinity))
    throw new RangeError(
      `A wait is a number of milliseconds from 0, not ${inspect(delayMs)}: sleep(1000), or { deadlineMs: 1000 }.`
    )
}

/** Throws TypeError for a step without a name or a function. */
function checkStep(name: unknown, run: unknown): void {
  if (typeof name !== 'string' || typeof run !== 'function')
    throw new TypeError(
      `step takes a name and a function, not ${kindOf(name)} and ${kindOf(run)}: step('price', async () => …).`
    )
}

/**
 * The promise of a step for the author's code. It detects that it is awaited, since `await` and `then` read its `constructor`
 * first. Its rejection does not end the process.
 */
export class StepPromise<T> extends Promise<T> {
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

/** The steps of one work, stored under `prefix` in the journal of its task. On replay a step gives its stored result. */
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
    const kept = this.#log.kept(key) as { result?: T } | undefined
    // A copy, so that the author's changes to it do not reach the journal.
    if (kept) return structuredClone(kept.result) as T
    // A step whose result cannot be stored would run again, so it waits for the store.
    const refused = this.#log.writable()
    if (refused) await refused
    signal.throwIfAborted()
    const result = await this.#execute(name, key, run)
    const own = structuredClone(result)
    signal.throwIfAborted()
    killPoint('effect ended')
    this.#log.keep(key, { result })
    await this.#log.committed()
    return own
  }

  /** The promise of a step for the author's code. If it rejects and is never awaited, that is logged when the work ends. */
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
