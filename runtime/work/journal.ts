import { inspect } from 'node:util'
import type { WorkWord } from '../../machines/task-events.ts'
import { keptValue } from '../authoring/checked-words.ts'
import type { StepArguments } from '../authoring/work-arguments.ts'
import type { ActorHost } from '../commits/actor-host.ts'
import { killPoint } from '../primitives/kill-points.ts'
import { isSleep, type Replay } from './replay.ts'

/** What one run of work writes down: words by their ordinals, and a journal by keys. When it runs again it finds what was there. */
export class RunJournal {
  readonly taskId: string
  readonly #host: ActorHost
  #replay: Replay | undefined
  #ordinal = 0

  constructor(taskId: string, host: ActorHost) {
    this.taskId = taskId
    this.#host = host
  }

  /** Takes what an earlier run has left. */
  follow(replay: Replay): void {
    this.#replay = replay
  }

  next(): number {
    return (this.#ordinal += 1)
  }

  /** The word as it has to be said now; nothing if it was said before. */
  word(ordinal: number, word: WorkWord): WorkWord | undefined {
    return this.#replay ? this.#replay.word(ordinal, word) : word
  }

  /** The work ends: throws InvalidAgentResponse if it did not ask what it asked before. */
  checkEnd(): void {
    this.#replay?.checkEnd(this.#ordinal)
  }

  /** What the journal held under this key when the run began; `undefined` if nothing. */
  kept(key: string): unknown {
    return this.#replay?.entry(key)
  }

  /** Puts a JSON value into the journal with the current turn. */
  keep(key: string, value: unknown): void {
    this.#host.keep({ taskId: this.taskId, key, value })
  }

  /** Notes a wait that has this ordinal. Throws if there was something else. */
  noteSleep(ordinal: number): void {
    this.#replay?.check(ordinal, 'sleep')
  }

  /** Rings once, this long after the first run got here; the journal keeps when. */
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

  /** Logs a step whose error nobody will hear. */
  notAwaited(step: string, error: unknown): void {
    this.#host.logger.error('a step failed, and its promise was never awaited', { taskId: this.taskId, step, error })
  }

  /** Resolves when the store takes commits again; nothing to wait for if it does. */
  writable(): Promise<void> | undefined {
    return this.#host.writable(this.taskId)
  }

  /** Resolves when everything until now is committed. */
  committed(): Promise<void> {
    return new Promise(resolve => this.afterCommit(resolve))
  }
}

/** Throws RangeError for a wait that nobody could keep: it is a number of milliseconds, from 0, and with an end. */
export function checkWait(delayMs: number): void {
  if (typeof delayMs !== 'number' || !(delayMs >= 0 && delayMs < Infinity)) throw new RangeError(`A wait is a number of milliseconds from 0, not ${inspect(delayMs)}.`)
}

/**
 * The promise of a step as the author's code gets it: it knows whether anybody has waited for it. `await` and everything that
 * calls `then` read its `constructor` first. Its rejection does not end the process.
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

  /** Settles as `promise` does; `rejected` hears if that rejects. */
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

/** The steps of one piece of work, under `prefix` in the journal of its task: each result is kept once, and found when the work runs again. */
export class Steps {
  readonly #log: RunJournal
  readonly #prefix: string
  readonly #signal: () => AbortSignal
  readonly #counts = new Map<string, number>()
  /** Steps that have rejected, and that nobody had awaited then. */
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

  /** Runs a step, or gives the result that it had. The result is what JSON makes of it, the first time too. */
  async run<T>(name: string, run: (step: StepArguments) => T | Promise<T>): Promise<T> {
    const signal = this.#signal()
    signal.throwIfAborted()
    const count = (this.#counts.get(name) ?? 0) + 1
    this.#counts.set(name, count)
    const key = `${this.#prefix}step/${name}/${count}`
    const kept = this.#log.kept(key) as { result?: T } | undefined
    // A copy each time: what the author changes in it does not reach the journal.
    if (kept) return structuredClone(kept.result) as T
    // A step whose result cannot be kept would be done again.
    const refused = this.#log.writable()
    if (refused) await refused
    signal.throwIfAborted()
    const result = await this.#made(name, key, run)
    const own = structuredClone(result)
    signal.throwIfAborted()
    killPoint('effect ended')
    this.#log.keep(key, { result })
    await this.#log.committed()
    return own
  }

  /** The promise of a step as the author's code gets it. If it rejects and nobody awaits it, that is logged when the work ends. */
  handed<T>(name: string, promise: Promise<T>): Promise<T> {
    return StepPromise.of(promise, (error, step) => {
      if (!step.isAwaited) this.#rejected.push({ name, error, step })
      if (this.#hasEnded) this.end()
    })
  }

  /** The work has ended by itself, so nobody will await the steps that nobody has awaited: those that rejected are logged. */
  end(): void {
    this.#hasEnded = true
    for (const { name, error, step } of this.#rejected.splice(0)) {
      const isStopped = this.#signal().aborted && (error as Error | undefined)?.name === 'AbortError'
      if (!step.isAwaited && !isStopped) this.#log.notAwaited(name, error)
    }
  }

  /** Runs what has no result to keep, but is under way like a step. */
  async whileUnderWay<T>(run: () => Promise<T>): Promise<T> {
    this.#underWay += 1
    try {
      return await run()
    } finally {
      this.#underWay -= 1
    }
  }

  async #made<T>(name: string, key: string, run: (step: StepArguments) => T | Promise<T>): Promise<T> {
    killPoint('effect started')
    const result = await this.whileUnderWay(async () => run({ idempotencyKey: `${this.#log.taskId}/${key}`, signal: this.#signal() }))
    return keptValue(result, `the result of step ${name}`)
  }
}
