import { inspect } from 'node:util'
import type { WorkWord } from '../machines/task-events.ts'
import type { ActorHost } from './actor-host.ts'
import { isSleep, type Replay } from './replay.ts'

/** What one run of work writes down: words by their ordinals, and a journal by keys. When it runs again it finds what was there. */
export class RunLog {
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
