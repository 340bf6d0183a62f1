import type { Effect } from '../commits/commit-pipeline.ts'
import type { Clock } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import { NONE } from '../primitives/collections.ts'

/** The period in which hasty turns are counted, and the longest wait. */
const PERIOD_MS = 1000

const FIRST_WAIT_MS = 10

/** The parts of a context whose tasks are slowed. */
interface PacedContext {
  readonly clock: Clock
  readonly logger: Logger
  /** Number of the context's commits; constant within a turn. */
  readonly turnNumber: number
  /** Runs an effect that was held back. */
  run(effect: Effect): void
}

interface Pace {
  /** Start of the period in which `turns` were counted. */
  sinceMs: number
  turns: number
  lastTurn: number
  /** 0 before the task is slowed. */
  waitMs: number
  /** Held effects while the task waits. */
  held: Effect[] | undefined
  timer: unknown
}

/**
 * Throttles tasks whose charts loop without a delay. A turn is hasty if nothing but the chart's own haste caused it:
 * an actor that ended at once, or an event without a delay. A task with more hasty turns than `limits.hastyTurns`
 * within a second waits before the next, 10 ms at first, then twice as long each time, up to a second. A message of a
 * client, or a second without a hasty turn, ends that.
 */
export class TaskPaces {
  readonly #context: PacedContext
  readonly #limit: number
  readonly #paces = new Map<string, Pace>()

  constructor(context: PacedContext, limit: number) {
    this.#context = context
    this.#limit = limit
  }

  /** Notes that the open turn of a task is a hasty one. */
  noteHaste(taskId: string): void {
    const { clock, logger, turnNumber } = this.#context
    const nowMs = clock.now()
    const pace = this.#paceOf(taskId, nowMs)
    if (pace.held || pace.lastTurn === turnNumber) return
    if (nowMs - pace.sinceMs >= PERIOD_MS + pace.waitMs) Object.assign(pace, { sinceMs: nowMs, turns: 0, waitMs: 0 })
    pace.lastTurn = turnNumber
    pace.turns += 1
    if (pace.turns <= this.#limit) return
    if (pace.waitMs === 0)
      logger.warn('a chart goes round at once, again and again, so its turns wait. Add a delay to its retries', {
        taskId,
        turns: pace.turns
      })
    pace.waitMs = Math.min(PERIOD_MS, pace.waitMs * 2 || FIRST_WAIT_MS)
    pace.sinceMs = nowMs
    pace.held = []
    pace.timer = clock.setTimeout(() => this.#release(pace), pace.waitMs)
  }

  /** Holds back an effect if its task waits. Gives whether it did. */
  keepsBack(effect: Effect): boolean {
    return this.#paces.get(effect.taskId)?.held?.push(effect) !== undefined
  }

  /**
   * Stops slowing a task, because a client has written to it, or it has ended. Gives the effects that were held back.
   */
  forget(taskId: string): readonly Effect[] {
    const pace = this.#paces.get(taskId)
    if (!pace) return NONE
    this.#paces.delete(taskId)
    this.#context.clock.clearTimeout(pace.timer)
    return pace.held ?? NONE
  }

  /** Drops everything that waits, because the context leaves memory. */
  clear(): void {
    for (const taskId of this.#paces.keys()) this.forget(taskId)
  }

  #paceOf(taskId: string, nowMs: number): Pace {
    const pace = this.#paces.get(taskId) ?? {
      sinceMs: nowMs,
      turns: 0,
      lastTurn: NaN,
      waitMs: 0,
      held: undefined,
      timer: undefined
    }
    this.#paces.set(taskId, pace)
    return pace
  }

  #release(pace: Pace): void {
    const held = pace.held as Effect[]
    pace.held = undefined
    for (const effect of held) this.#context.run(effect)
  }
}
