import { createHash } from 'node:crypto'
import { A2AError } from '../../machines/protocol/errors.ts'
import { fruitless, type Recoveries, type Recovery } from '../../machines/supervision.ts'
import type { Agent } from '../agent/define-agent.ts'
import type { ActorHost } from '../commits/actor-host.ts'
import type { Effect } from '../commits/commit-pipeline.ts'
import type { TaskLedger } from '../commits/task-ledger.ts'
import type { RestoredTask } from '../snapshots/snapshot-text.ts'
import type { JournalRow } from '../store/store.ts'
import { isSleep } from '../work/replay.ts'
import { checkRestoredBytes } from '../work/work-input.ts'
import type { ContextServices } from './dependencies.ts'
import { NOT_RESTARTED } from './errors.ts'

/** Period in which recoveries without progress are counted. */
const PERIOD_MS = 24 * 3600 * 1000

/** Factor of the permitted recoveries for sleeping work, which makes no progress by design. */
const ASLEEP_FACTOR = 20

/**
 * Number of recoveries without progress that makes work a suspect. Fewer may be accidents: the process, or its heir in
 * a cluster, was killed from outside.
 */
const SUSPECT_AFTER = 2

/** The permitted recoveries that suspects keep for the queue: one until the cause is found, and one after it. */
const SPARE = 2

/** The part of a host that recovery uses. */
type RecoveringHost = Pick<ActorHost, 'key' | 'isLeaving' | 'afterCommit' | 'failTask' | 'markChanged' | 'send'> & {
  workOf(taskId: string): Pick<Agent, 'recovery'>
}

/**
 * Recovers the tasks of one context that were running when the process ended, or in which a delayed event is due.
 * Effects and events of a task are held back until the decision of its chart on the recovery is committed. The actors
 * are restored before, by `snapshots/restored-task.ts` and `LiveContext`.
 */
export class ContextRecovery {
  readonly #services: ContextServices
  readonly #tasks: TaskLedger
  readonly #host: RecoveringHost
  readonly #kept = new Map<string, Effect[]>()
  /** Tasks whose recovery is decided, but not committed yet. */
  readonly #decided = new Set<string>()
  readonly #recovered = new Set<string>()

  constructor(services: ContextServices, tasks: TaskLedger, host: RecoveringHost) {
    this.#services = services
    this.#tasks = tasks
    this.#host = host
  }

  /** Holds back an effect if the recovery of its task is pending. Gives whether it did. */
  keepsBack(effect: Effect): boolean {
    return this.#kept.get(effect.taskId)?.push(effect) !== undefined
  }

  /** Holds back the effects of a task from now on, until `recover` or `goOn`. */
  expect(taskId: string): void {
    this.#kept.set(taskId, [])
  }

  isExpected(taskId: string): boolean {
    return this.#kept.has(taskId)
  }

  /** Whether a task is to be recovered, or its recovery is not committed yet. */
  isUnderWay(taskId: string): boolean {
    return this.#kept.has(taskId) || this.#decided.has(taskId)
  }

  /** Recovers an expected task by the agent's policy. `wasAtWork`: logic was running in it. */
  recover(task: RestoredTask, wasAtWork: boolean): void {
    const { taskId, state, wakeAtMs } = task.row
    if (
      this.#host.workOf(taskId).recovery === 'fail' &&
      wasAtWork &&
      wakeAtMs === 0 &&
      state !== 'TASK_STATE_SUBMITTED'
    ) {
      this.#host.failTask(taskId, new A2AError('InternalError', NOT_RESTARTED))
      return this.#release(taskId)
    }
    this.#readJournal(taskId).then(
      journal => this.#recoverInTurn(task, journal),
      error => {
        if (this.#host.isLeaving) return
        this.#host.failTask(taskId, error)
        this.#release(taskId)
      }
    )
  }

  /** Resumes an expected task without a recovery, after its next commit: its context broke in this process. */
  goOn(taskId: string): void {
    this.#host.markChanged(taskId)
    this.#release(taskId)
  }

  /** Undoes the recoveries of this process at a clean shutdown. */
  processEnds(): void {
    for (const taskId of this.#recovered) {
      if (this.#tasks.has(taskId)) this.#host.send({ type: 'recovery.undone', taskId })
    }
  }

  /** Rejects with RateLimited if the journal is too large to be read. */
  async #readJournal(taskId: string): Promise<JournalRow[]> {
    const { reads, limits } = this.#services
    const { key } = this.#host
    const [size] = await reads.measureTasks({ ...key, taskIds: [taskId] })
    if (size) checkRestoredBytes({ ...size, bytes: 0 }, limits)
    return reads.readJournal(key, taskId)
  }

  /** Recovers work at once, or through the queue of suspects if it has made no progress for several recoveries. */
  #recoverInTurn({ row, saved }: RestoredTask, journal: readonly JournalRow[]): void {
    const { clock, recoveryQueue, limits } = this.#services
    const atMs = clock.now()
    const isAsleep = journal.some(({ value }) => isSleep(value) && value.untilMs > atMs)
    const before = saved.context.recoveries
    const done = [row.generation, journal.length, isAsleep, digestOf(saved)].join(' ')
    const limit = { done, intensity: limits.recoveries * (isAsleep ? ASLEEP_FACTOR : 1), periodMs: PERIOD_MS }
    const recovered = fruitless({ ...limit, atMs }, before)
    const recoveredAtMs = recovered.at(-1)
    const recover = (started = () => {}) => this.#recover(row.taskId, { ...limit, atMs: clock.now() }, before, started)
    if (recoveredAtMs === undefined || recovered.length < Math.min(SUSPECT_AFTER, limit.intensity - SPARE)) recover()
    else recoveryQueue.add({ taskId: row.taskId, recoveredAtMs, recover })
  }

  #recover(taskId: string, recovery: Recovery, before: Recoveries | undefined, started: () => void): void {
    if (this.#host.isLeaving) return
    const ends = fruitless(recovery, before).length + 1
    const message = {
      parts: [{ text: `The process ended ${ends} times while this task was working, without progress in between.` }]
    }
    if (this.#tasks.has(taskId)) this.#host.send({ type: 'task.recover', taskId, message, recovery })
    this.#recovered.add(taskId)
    this.#release(taskId)
    this.#host.afterCommit({ taskId, run: started })
  }

  /** Releases held effects, which start after the commit of the open turn. */
  #release(taskId: string): void {
    const effects = this.#kept.get(taskId) as Effect[]
    this.#kept.delete(taskId)
    this.#decided.add(taskId)
    for (const effect of effects) this.#host.afterCommit(effect)
    this.#host.afterCommit({ taskId, run: () => void this.#decided.delete(taskId) })
  }
}

/** Digest of the states of a task's charts. Due times are left out, because a renewed timer is no progress. */
function digestOf({ children, delayed = [] }: RestoredTask['saved']): string {
  const timers = delayed.map(event => JSON.stringify({ ...event, dueMs: undefined })).toSorted()
  return createHash('sha256')
    .update(JSON.stringify([children?.['work'], timers]))
    .digest('base64url')
    .slice(0, 16)
}
