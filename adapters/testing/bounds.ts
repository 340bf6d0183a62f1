import type { OptionKinds } from '../../runtime/primitives/options.ts'

/** How much of a chart is explored. */
export interface BoundOptions {
  /** The maximum number of configurations per opening message. */
  readonly limit?: number
  /** The maximum time, in milliseconds. Default 120,000. */
  readonly timeLimitMs?: number
  /** The maximum memory, in bytes. Default 1 GiB. */
  readonly memoryLimitBytes?: number
}

export const BOUND_OPTIONS = {
  limit: [value => Number(value) > 0, 'a number above 0'],
  timeLimitMs: [value => Number(value) > 0, 'a number of milliseconds above 0'],
  memoryLimitBytes: [value => Number(value) > 0, 'a number of bytes above 0']
} as const satisfies OptionKinds<BoundOptions>

/** A chart could not be explored whole, since a bound was met. So nothing is known of the rest. */
export class BoundError extends RangeError {}

const TIME_LIMIT_MS = 120_000
const MEMORY_LIMIT_BYTES = 2 ** 30

/** The time and the memory of an exploration. */
interface Meter {
  readonly ms: () => number
  readonly bytes: () => number
}

const METER: Meter = { ms: () => performance.now(), bytes: () => process.memoryUsage().heapUsed }

/** The bounds of one exploration, which begins now. */
export class ExplorationBounds {
  readonly #limit: number
  readonly #timeLimitMs: number
  readonly #memoryLimitBytes: number
  readonly #meter: Meter
  readonly #beganMs: number
  readonly #beganBytes: number

  constructor(
    {
      limit,
      timeLimitMs = TIME_LIMIT_MS,
      memoryLimitBytes = MEMORY_LIMIT_BYTES
    }: BoundOptions & { readonly limit: number },
    meter: Meter = METER
  ) {
    this.#limit = limit
    this.#timeLimitMs = timeLimitMs
    this.#memoryLimitBytes = memoryLimitBytes
    this.#meter = meter
    this.#beganMs = meter.ms()
    this.#beganBytes = meter.bytes()
  }

  /** The bound that is met with so many configurations, as a clause. */
  met(configurations: number): string | undefined {
    if (configurations > this.#limit) return `there are more than ${this.#limit} configurations`
    if (this.#meter.ms() - this.#beganMs > this.#timeLimitMs)
      return `the time limit of ${this.#timeLimitMs / 1000} s has passed after ${configurations} configurations`
    if (this.#meter.bytes() - this.#beganBytes > this.#memoryLimitBytes)
      return `more than the memory limit of ${Math.ceil(this.#memoryLimitBytes / 2 ** 20)} MB is needed after ${configurations} configurations`
    return undefined
  }
}
