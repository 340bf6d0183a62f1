import type { Agent } from '../agent/define-agent.ts'
import { type Clock, unrefTimer } from '../ports/clock.ts'
import type { Logger } from '../ports/logger.ts'
import { COUNTED_AT_ONCE, type VersionCounts } from '../store/rows.ts'
import type { Store } from '../store/store.ts'

/** The pause after a count. Ends of tasks within it are counted together. */
const PAUSE_MS = 10_000

interface Services {
  readonly agent: Pick<Agent, 'earlier'>
  readonly countVersions: NonNullable<Store['countVersions']>
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Logs when the last open task of an earlier version has ended, once for each version: its code can go. Other processes
 * may have tasks of the version, so the store is asked after an end.
 */
export class EarlierTasks {
  readonly #services: Services
  /** Versions with ends that no count has seen. */
  readonly #ended = new Set<string>()
  readonly #reported = new Set<string>()
  /** The newest count, until the pause after it has ended. */
  #counting: Promise<void> | undefined
  #isClosed = false
  #timer: unknown

  constructor(services: Services) {
    this.#services = services
  }

  /** Call it after the commit that ends a task of this version. */
  onEnd(version: string): void {
    if (this.#services.agent.earlier?.[version] === undefined || this.#reported.has(version)) return
    this.#ended.add(version)
    if (!this.#counting) void this.#count()
  }

  /** Counts once more if that is due, while the store is still open. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#services.clock.clearTimeout(this.#timer)
    await this.#counting
    if (this.#ended.size > 0) await this.#report()
  }

  /** Counts, then pauses. Ends within the pause are counted after it. */
  async #count(): Promise<void> {
    await (this.#counting = this.#report())
    if (this.#isClosed) return
    this.#timer = this.#services.clock.setTimeout(() => {
      this.#counting = undefined
      if (this.#ended.size > 0) void this.#count()
    }, PAUSE_MS)
    unrefTimer(this.#timer)
  }

  /** Logs the versions whose last task has ended. */
  async #report(): Promise<void> {
    const ended = [...this.#ended]
    this.#ended.clear()
    try {
      const open = await countOpenVersions(this.#services.countVersions)
      for (const version of ended) {
        if (open.has(version)) continue
        this.#reported.add(version)
        this.#services.logger.warn('the last open task of an earlier version has ended: its entry in earlier can go', {
          version
        })
      }
    } catch {
      // The store reports its own failure.
      for (const version of ended) this.#ended.add(version)
    }
  }
}

/** How many tasks are open of each version; '' stands for tasks from before versions existed. */
export async function countOpenVersions(
  countVersions: NonNullable<Store['countVersions']>
): Promise<ReadonlyMap<string, number>> {
  const open = new Map<string, number>()
  for (let after: string | undefined = ''; after !== undefined;) {
    const { versions, next }: VersionCounts = await countVersions(COUNTED_AT_ONCE, after)
    for (const [version, count] of Object.entries(versions)) open.set(version, (open.get(version) ?? 0) + count)
    after = next
  }
  return open
}
