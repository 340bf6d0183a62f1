import type { WorldConfig } from './config.ts'
import type { Journal } from './journal.ts'
import type { Ledger } from './ledger.ts'
import { brief } from './reference-model.ts'
import { randomOf, type Random } from './random.ts'
import type { Violations } from './violations.ts'
import type { ClockView } from './virtual-clock.ts'

/** What was asked of the outside for one step of one task, each time with a key. */
export interface Effects {
  readonly keys: string[]
}

/** What the works of one process can do to the outside. */
export interface Reach {
  /**
   * Does something that may be done once only, for a step of a task: with one key always. Gives the number of the try.
   */
  effect(taskId: string, at: number, idempotencyKey: string): Promise<number>
  /** Takes some time, of which nothing is left after a restart. */
  busy(ms: number): Promise<void>
}

/** What the outside looks at. */
interface OutsideServices {
  readonly journal: Journal
  readonly ledger: Ledger
  readonly violations: Violations
}

/** The world outside, which outlives all processes and remembers what was done to it. */
export class Outside {
  /** By task and place in its script. */
  readonly #effects = new Map<string, Effects>()
  readonly #journal: Journal
  readonly #ledger: Ledger
  readonly #violations: Violations
  readonly #random: Random

  constructor({ seed }: WorldConfig, { journal, ledger, violations }: OutsideServices) {
    this.#journal = journal
    this.#ledger = ledger
    this.#violations = violations
    this.#random = randomOf(seed, 'outside')
  }

  effectsOf(taskId: string, at: number): Effects {
    const name = `${taskId} ${at}`
    const effects = this.#effects.get(name) ?? { keys: [] }
    this.#effects.set(name, effects)
    return effects
  }

  /** The outside as a process reaches it, for as long as that lives. */
  reach(clock: ClockView, isDead: () => boolean): Reach {
    const passed = (ms: number) => new Promise<void>(resolve => void clock.setTimeout(resolve, ms))
    return {
      effect: async (taskId, at, idempotencyKey) => {
        if (isDead()) return new Promise(() => {})
        const told = this.#ledger.tasks.get(taskId)?.events.some(event => brief(event).startsWith(`WORKING e@${at}: `))
        if (told)
          this.#violations.add(`I7: the effect at ${at} of ${taskId} is asked for again, though its result was told`)
        const { keys } = this.effectsOf(taskId, at)
        keys.push(idempotencyKey)
        const attempt = keys.length
        this.#journal.note(`effect ${attempt} at ${at} of ${taskId} as ${idempotencyKey}`)
        await passed(this.#random.below(30))
        return attempt
      },
      busy: passed
    }
  }
}
