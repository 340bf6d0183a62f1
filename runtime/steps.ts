import { fault } from './fault.ts'
import { keptValue } from './outcomes.ts'
import type { RunLog } from './run-log.ts'
import { StepPromise } from './step-promise.ts'
import type { StepArguments } from './work-arguments.ts'

/** The steps of one piece of work, under `prefix` in the journal of its task: each result is kept once, and found when the work runs again. */
export class Steps {
  readonly #log: RunLog
  readonly #prefix: string
  readonly #signal: () => AbortSignal
  readonly #counts = new Map<string, number>()
  /** Steps that have rejected, and that nobody had awaited then. */
  readonly #rejected: { readonly name: string; readonly error: unknown; readonly step: StepPromise<unknown> }[] = []
  #underWay = 0
  #hasEnded = false

  constructor(log: RunLog, prefix: string, signal: () => AbortSignal) {
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
    fault('P11')
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
    fault('P10')
    const result = await this.whileUnderWay(async () => run({ idempotencyKey: `${this.#log.taskId}/${key}`, signal: this.#signal() }))
    return keptValue(result, `the result of step ${name}`)
  }
}
