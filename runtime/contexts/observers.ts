import type { AnyActorRef } from 'xstate'
import type { Agent } from '../agent/define-agent.ts'
import type { ClusterStatus } from '../ports/cluster-status.ts'
import type { Logger } from '../ports/logger.ts'
import type { Commit, ContextKey, Erasure, Store } from '../store/store.ts'

/** A context in memory: `root` is its actor, `root.system` the system of all its actors. */
export interface LiveActors {
  readonly key: ContextKey
  readonly root: AnyActorRef
}

/** A passive observer of a runtime, such as an inspector. All members are optional; errors that they throw are logged. */
export interface Observer {
  /** A context has entered memory. Its actors exist, but may not have started. */
  entered?(actors: LiveActors): void
  /** A context has left memory, and its actors have stopped. */
  left?(actors: LiveActors): void
  /** A turn is committed, and is told now. */
  committed?(commit: Commit): void
  /** Stored data has been erased. */
  erased?(whose: Erasure): void
  /** The author's code of a task runs next: its work starts or continues, or its chart gets an event. */
  runs?(taskId: string): void
  /** The author's code of a task has thrown. Clients hear only that it did. The task fails, unless its work starts again. */
  crashed?(taskId: string, error: unknown): void
}

/** The cluster of an observed node. */
export interface ObservedCluster {
  /** The address of the node. */
  readonly address: string
  /** Reads all nodes, and the owners of all shards. Rejects while they cannot be read. */
  status(): Promise<ClusterStatus>
  shardOf(key: ContextKey): number
}

/** Access of an observer to its runtime. */
export interface Observation {
  readonly agent: Agent
  /** For a node of a cluster. */
  readonly cluster?: ObservedCluster
  readonly store: Pick<Store, 'listTasks' | 'readEvents' | 'readTask' | 'readMessages' | 'readTaskMessages' | 'readTransitions'>
  /** Ends the observation. May be called twice. */
  stop(): void
}

/** The line of the log about an error of the author's code. */
export const WORK_FAILED = 'the work of a task failed'

/** The observers of a runtime. */
export class Observers {
  /** Calls all observers; `undefined` while there are none, so that only this is checked. */
  told: Required<Observer> | undefined
  readonly #all = new Set<Required<Observer>>()
  readonly #logger: Logger

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Adds an observer. Call the result to remove it; it may be called twice. */
  add(observer: Observer): () => void {
    const own = guarded(observer, this.#logger)
    this.#all.add(own)
    this.told ??= this.#everyone()
    return () => {
      this.#all.delete(own)
      if (this.#all.size === 0) this.told = undefined
    }
  }

  #everyone(): Required<Observer> {
    const each = (tell: (observer: Required<Observer>) => void) => this.#all.forEach(tell)
    return {
      entered: actors => each(one => one.entered(actors)),
      left: actors => each(one => one.left(actors)),
      committed: commit => each(one => one.committed(commit)),
      erased: whose => each(one => one.erased(whose)),
      runs: taskId => each(one => one.runs(taskId)),
      crashed: (taskId, error) => each(one => one.crashed(taskId, error))
    }
  }
}

function guarded(observer: Observer, logger: Logger): Required<Observer> {
  const attempt = (tell: () => void) => {
    try {
      tell()
    } catch (error) {
      logger.error('an observer failed', { error })
    }
  }
  return {
    entered: actors => attempt(() => observer.entered?.(actors)),
    left: actors => attempt(() => observer.left?.(actors)),
    committed: commit => attempt(() => observer.committed?.(commit)),
    erased: whose => attempt(() => observer.erased?.(whose)),
    runs: taskId => attempt(() => observer.runs?.(taskId)),
    crashed: (taskId, error) => attempt(() => observer.crashed?.(taskId, error))
  }
}
