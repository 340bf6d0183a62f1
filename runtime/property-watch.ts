import { isEnd, Monitor, updateNameOf, type PropertyState } from '../machines/properties/monitor.ts'
import { UPDATE_RULES } from '../machines/properties/properties.ts'
import type { Agent } from './agent/define-agent.ts'
import type { LiveActors, Observer } from './contexts/observers.ts'
import type { Clock } from './ports/clock.ts'
import type { Logger } from './ports/logger.ts'
import type { Commit, ContextKey, Store, TaskEvent } from './store/store.ts'
import { hasState } from './store/task-record.ts'
import { readAllEvents } from './streams/task-stream.ts'
import type { Counters } from './telemetry/counters.ts'

/** How many lines a minute the log gets. All violations are counted. */
const LINES_A_MINUTE = 10

const MINUTE_MS = 60_000

/** How many earlier events of a restored task are read. One with more is not observed any further. */
const MOST_EARLIER = 200

/** A task in memory. */
interface Watched {
  readonly taskId: string
  /** Of its version of the agent. */
  readonly monitor: Monitor
  /** `undefined` while earlier events are read, or if the task cannot be observed. */
  standing: PropertyState | undefined
  /** Events that wait for the earlier ones. */
  waiting: TaskEvent[] | undefined
}

interface Services {
  readonly agent: Agent
  readonly store: Pick<Store, 'readEvents'>
  readonly clock: Clock
  readonly logger: Logger
  readonly counters: Counters
}

/**
 * Evaluates properties on the updates of tasks: the rules of A2A, and the agent's own. Counts each violation, once for
 * each task and property, and logs it. A restored task gets its earlier events from the store; if they are not all
 * there, it is not observed.
 */
export class PropertyWatch implements Observer {
  readonly #services: Services
  readonly #monitor: Monitor
  /** The monitors of the agent's earlier versions, by version. */
  readonly #earlier: ReadonlyMap<string, Monitor>
  /** The tasks of the contexts in memory that have not ended. */
  readonly #contexts = new Map<ContextKey, Watched[]>()
  #minuteBeganMs = -Infinity
  #lines = 0
  /** Violations without a line since the last line. */
  #unlogged = 0

  constructor(services: Services) {
    this.#services = services
    const { properties, earlier = {} } = services.agent
    this.#monitor = new Monitor({ ...properties, ...UPDATE_RULES })
    this.#earlier = new Map(
      Object.entries(earlier).map(([version, { properties }]) => [
        version,
        new Monitor({ ...properties, ...UPDATE_RULES })
      ])
    )
    const names = [this.#monitor, ...this.#earlier.values()].flatMap(monitor => monitor.names)
    services.counters.observes([...new Set(names)])
  }

  committed({ key, log }: Commit, live: Pick<LiveActors, 'versionOf'>): void {
    for (const entry of log) {
      if (!('message' in entry)) this.#onEvent(key, entry, live)
    }
  }

  left({ key }: LiveActors): void {
    this.#contexts.delete(key)
  }

  #onEvent(key: ContextKey, event: TaskEvent, live: Pick<LiveActors, 'versionOf'>): void {
    const tasks = this.#contexts.get(key)
    const watched = tasks?.find(({ taskId }) => taskId === event.taskId) ?? this.#enter(key, event, tasks, live)
    if (watched.standing) this.#evaluate(key, watched, event)
    else watched.waiting?.push(event)
    if (isEnd(event.update)) this.#leave(key, watched)
  }

  #enter(
    key: ContextKey,
    event: TaskEvent,
    tasks: Watched[] | undefined,
    live: Pick<LiveActors, 'versionOf'>
  ): Watched {
    const { taskId, generation } = event
    const monitor = this.#earlier.get(live.versionOf(taskId)) ?? this.#monitor
    const isKnown = isFirst(event)
    const waiting = isKnown || generation > MOST_EARLIER ? undefined : []
    const watched: Watched = { taskId, monitor, standing: isKnown ? monitor.start : undefined, waiting }
    if (tasks) tasks.push(watched)
    else this.#contexts.set(key, [watched])
    if (waiting) void this.#catchUp(key, watched, waiting, generation - 1)
    return watched
  }

  #leave(key: ContextKey, watched: Watched): void {
    const others = (this.#contexts.get(key) as Watched[]).filter(one => one !== watched)
    if (others.length > 0) this.#contexts.set(key, others)
    else this.#contexts.delete(key)
  }

  /**
   * Goes through the earlier events of a task, whose violations were reported in their time, then through those that
   * wait.
   */
  async #catchUp(key: ContextKey, watched: Watched, waiting: readonly TaskEvent[], until: number): Promise<void> {
    let earlier: readonly TaskEvent[] = []
    try {
      earlier = await readAllEvents(this.#services.store, key, watched.taskId, until)
    } catch {
      // The store reports its own failure. The task is not observed.
    }
    watched.waiting = undefined
    const [first] = earlier
    if (!first || !isFirst(first)) return
    watched.standing = watched.monitor.start
    for (const event of earlier) this.#evaluate(key, watched, event, false)
    for (const event of waiting) this.#evaluate(key, watched, event)
  }

  #evaluate(key: ContextKey, watched: Watched, event: TaskEvent, isNew = true): void {
    const before = watched.standing
    if (!before) return
    try {
      const after = watched.monitor.after(before, event.update)
      watched.standing = after
      if (isNew)
        for (const property of watched.monitor.violatedBetween(before, after)) this.#report(property, key, event)
    } catch (error) {
      watched.standing = undefined
      this.#log('a property cannot be evaluated, so its task is not observed', { taskId: watched.taskId, error })
    }
  }

  #report(property: string, { contextId }: ContextKey, { taskId, generation, update }: TaskEvent): void {
    this.#services.counters.violated(property)
    this.#log('a task violates a property', { property, taskId, contextId, event: updateNameOf(update), generation })
  }

  #log(message: string, details: Record<string, unknown>): void {
    const { clock, logger } = this.#services
    if (Math.abs(clock.now() - this.#minuteBeganMs) >= MINUTE_MS) {
      this.#minuteBeganMs = clock.now()
      this.#lines = 0
    }
    if (this.#lines === LINES_A_MINUTE) return void (this.#unlogged += 1)
    this.#lines += 1
    logger.error(message, this.#unlogged === 0 ? details : { ...details, unlogged: this.#unlogged })
    this.#unlogged = 0
  }
}

/** Whether an event is the first of its task. */
function isFirst(event: TaskEvent): boolean {
  return hasState(event, state => state === 'TASK_STATE_SUBMITTED')
}
