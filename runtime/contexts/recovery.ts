import { createHash } from 'node:crypto'
import { A2AError } from '../../machines/protocol/errors.ts'
import { fruitless, type Recoveries, type Recovery } from '../../machines/supervision.ts'
import type { ActorHost } from '../commits/actor-host.ts'
import type { TaskLedger } from '../commits/task-ledger.ts'
import type { Effect } from '../commits/turn.ts'
import type { RestoredTask } from '../snapshots/restored-task.ts'
import type { JournalRow } from '../store/store.ts'
import { isSleep } from '../work/replay.ts'
import { checkReadable } from '../work/work-input.ts'
import type { ContextServices } from './dependencies.ts'
import { NOT_RESTARTED } from './errors.ts'

/** Recoveries without progress are counted within this time. */
const PERIOD_MS = 24 * 3600 * 1000

/** Work that sleeps makes no progress by intent: it may be recovered as many times as often as other work. */
const ASLEEP_FACTOR = 20

/** What recovery asks of the host of its context. */
type RecoveringHost = Pick<ActorHost, 'key' | 'isLeaving' | 'afterCommit' | 'failTask' | 'noteMove' | 'send'>

/**
 * Recovers the tasks of one context that were at work when the process ended, or in which a delayed event is due. Until the
 * task's chart has decided upon the recovery, and that is durable, nothing starts in the task and no event is delivered.
 */
export class ContextRecovery {
  readonly #services: ContextServices
  readonly #tasks: TaskLedger
  readonly #host: RecoveringHost
  readonly #kept = new Map<string, Effect[]>()
  /** Tasks whose recovery is decided, and not durable yet. */
  readonly #decided = new Set<string>()
  readonly #recovered = new Set<string>()

  constructor(services: ContextServices, tasks: TaskLedger, host: RecoveringHost) {
    this.#services = services
    this.#tasks = tasks
    this.#host = host
  }

  /** Keeps an effect back, if its task is to be recovered first. */
  keepsBack(effect: Effect): boolean {
    return this.#kept.get(effect.taskId)?.push(effect) !== undefined
  }

  /** From now on keeps back what is to start for a task, until `recover` lets it go. */
  expect(taskId: string): void {
    this.#kept.set(taskId, [])
  }

  isExpected(taskId: string): boolean {
    return this.#kept.has(taskId)
  }

  /** Whether a task is to be recovered, or its recovery is not durable yet. */
  isUnderWay(taskId: string): boolean {
    return this.#kept.has(taskId) || this.#decided.has(taskId)
  }

  /** Recovers a task that is expected, as the agent's policy says of one that was at work or not. */
  recover(task: RestoredTask, wasAtWork: boolean): void {
    const { taskId, state, wakeAtMs } = task.row
    if (this.#services.agent.recovery === 'fail' && wasAtWork && wakeAtMs === 0 && state !== 'TASK_STATE_SUBMITTED') {
      this.#host.failTask(taskId, new A2AError('InternalError', NOT_RESTARTED))
      return this.#letGo(taskId)
    }
    this.#readJournal(taskId).then(
      journal => this.#recoverInTurn(task, journal),
      error => {
        if (this.#host.isLeaving) return
        this.#host.failTask(taskId, error)
        this.#letGo(taskId)
      }
    )
  }

  /** Lets a task that is expected go on when a commit of it has been taken: the last one of its context was not. */
  goOn(taskId: string): void {
    this.#host.noteMove(taskId)
    this.#letGo(taskId)
  }

  /** The process ends in order: what was recovered is no cause of that, and its recovery does not count. */
  processEnds(): void {
    for (const taskId of this.#recovered) {
      if (this.#tasks.has(taskId)) this.#host.send({ type: 'recovery.undone', taskId })
    }
  }

  /** Rejects if the journal is too large to be read. */
  async #readJournal(taskId: string): Promise<JournalRow[]> {
    const { store, limits } = this.#services
    const { key } = this.#host
    const [size] = await store.measureTasks({ ...key, taskIds: [taskId] })
    if (size) checkReadable({ ...size, bytes: 0 }, limits)
    return store.readJournal(key, taskId)
  }

  /** Work that has made progress since its last recovery is recovered at once; other work when it has its turn. */
  #recoverInTurn({ row, saved }: RestoredTask, journal: readonly JournalRow[]): void {
    const { clock, recoveryQueue, limits } = this.#services
    const atMs = clock.now()
    const isAsleep = journal.some(({ value }) => isSleep(value) && value.untilMs > atMs)
    const before = saved.context.recoveries
    const done = [row.generation, journal.length, isAsleep, digestOf(saved)].join(' ')
    const terms = { done, intensity: limits.recoveries * (isAsleep ? ASLEEP_FACTOR : 1), periodMs: PERIOD_MS }
    const recoveredAtMs = fruitless({ ...terms, atMs }, before).at(-1)
    const recover = (started = () => {}) => this.#recover(row.taskId, { ...terms, atMs: clock.now() }, before, started)
    if (recoveredAtMs === undefined) recover()
    else recoveryQueue.add({ recoveredAtMs, recover })
  }

  #recover(taskId: string, recovery: Recovery, before: Recoveries | undefined, started: () => void): void {
    if (this.#host.isLeaving) return
    const ends = fruitless(recovery, before).length + 1
    const message = { parts: [{ text: `The process ended ${ends} times while this task was at work, and it made no progress.` }] }
    if (this.#tasks.has(taskId)) this.#host.send({ type: 'task.recover', taskId, message, recovery })
    this.#recovered.add(taskId)
    this.#letGo(taskId)
    this.#host.afterCommit({ taskId, run: started })
  }

  /** Has what was kept back start with the commit of what was just decided. */
  #letGo(taskId: string): void {
    const effects = this.#kept.get(taskId) as Effect[]
    this.#kept.delete(taskId)
    this.#decided.add(taskId)
    for (const effect of effects) this.#host.afterCommit(effect)
    this.#host.afterCommit({ taskId, run: () => void this.#decided.delete(taskId) })
  }
}

/** A text that differs when a task's charts are in another state. A timer that begins again in the same state is no progress. */
function digestOf({ children, delayed = [] }: RestoredTask['saved']): string {
  const timers = delayed.map(event => JSON.stringify({ ...event, dueMs: undefined })).toSorted()
  return createHash('sha256').update(JSON.stringify([children?.['work'], timers])).digest('base64url').slice(0, 16)
}
