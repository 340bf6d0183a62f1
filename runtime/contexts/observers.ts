import type { AnyActorRef, InspectionEvent } from 'xstate'
import type { Agent } from '../agent/define-agent.ts'
import type { LocalModules } from '../definitions/agent-outline.ts'
import type { ObservedCluster } from '../ports/cluster-status.ts'
import type { Logger } from '../ports/logger.ts'
import type { Commit, ContextKey, Erasure, Store } from '../store/store.ts'

/** A context in memory: `root` is its actor, `root.system` the system of all its actors. */
export interface LiveActors {
  readonly key: ContextKey
  /** The key as one string. */
  readonly name: string
  readonly root: AnyActorRef
  /** The version of the agent whose work a task runs: an earlier one, or the one now. */
  versionOf(taskId: string): string
}

/**
 * A passive observer of a runtime, such as an inspector. All members are optional; errors that they throw are logged.
 */
export interface Observer {
  /** A context has entered memory. Its actors exist, but may not have started. */
  entered?(actors: LiveActors): void
  /** A context has left memory, and its actors have stopped. */
  left?(actors: LiveActors): void
  /** A turn of a context in memory is committed, and is published now. */
  committed?(commit: Commit, actors: LiveActors): void
  /** Stored data has been erased. */
  erased?(whose: Erasure): void
  /** The author's code of a task runs next: its work starts or continues, or its chart gets an event. */
  runs?(taskId: string): void
  /**
   * The author's code of a task has thrown. Clients learn only that it did. The task fails, unless its work starts
   * again.
   */
  crashed?(taskId: string, error: unknown): void
  /**
   * XState's option `inspect`, for the actors of each context that enters memory from now on: the context, its tasks
   * and all below them. Actors of earlier contexts are inspected by `root.system.inspect` in `entered`.
   */
  inspect?(event: InspectionEvent): void
}

/** Access of an observer to its runtime. */
export interface Observation {
  readonly agent: Agent
  /** For a node of a cluster. */
  readonly cluster?: ObservedCluster
  readonly store: Pick<
    Store,
    | 'listTasks'
    | 'loadContext'
    | 'measureTasks'
    | 'readDefinition'
    | 'readEvents'
    | 'readJournal'
    | 'readMessages'
    | 'readSnapshot'
    | 'readTask'
    | 'readTaskMessages'
    | 'readTransitions'
  >
  /** Gives the local modules of the agent, if its file is known. */
  readonly localModules?: () => LocalModules
  /** Ends the observation. May be called twice. */
  stop(): void
}

/** The observers of a runtime. */
export class Observers {
  /** Calls all observers; `undefined` while there are none, so that only this is checked. */
  active: Required<Observer> | undefined
  /** The option `inspect` of a context that enters memory now; `undefined` if no observer has it. */
  inspect: ((event: InspectionEvent) => void) | undefined
  readonly #all = new Set<Observer>()
  readonly #everyone: Required<Observer>

  constructor(logger: Logger) {
    this.#everyone = new Everyone(this.#all, logger)
  }

  /** Makes `inspect` the option of contexts that enter memory from now on, if an observer has it. */
  #setInspect(): void {
    const isWanted = Array.from(this.#all).some(observer => observer.inspect !== undefined)
    this.inspect = isWanted ? event => this.#everyone.inspect(event) : undefined
  }

  /** Adds an observer. Call the result to remove it; it may be called twice. */
  add(observer: Observer): () => void {
    this.#all.add(observer)
    this.active = this.#everyone
    this.#setInspect()
    return () => {
      this.#all.delete(observer)
      this.#setInspect()
      if (this.#all.size === 0) this.active = undefined
    }
  }
}

/** Calls each observer. It allocates nothing, because a task makes several calls. */
class Everyone implements Required<Observer> {
  readonly #all: ReadonlySet<Observer>
  readonly #logger: Logger

  constructor(all: ReadonlySet<Observer>, logger: Logger) {
    this.#all = all
    this.#logger = logger
  }

  entered(actors: LiveActors): void {
    this.#notify('entered', actors)
  }

  left(actors: LiveActors): void {
    this.#notify('left', actors)
  }

  committed(commit: Commit, actors: LiveActors): void {
    this.#notify('committed', commit, actors)
  }

  erased(whose: Erasure): void {
    this.#notify('erased', whose)
  }

  runs(taskId: string): void {
    this.#notify('runs', taskId)
  }

  crashed(taskId: string, error: unknown): void {
    this.#notify('crashed', taskId, error)
  }

  inspect(event: InspectionEvent): void {
    this.#notify('inspect', event)
  }

  #notify(what: keyof Observer, about: unknown, more?: unknown): void {
    for (const observer of this.#all) {
      const notify = observer[what] as ((about: unknown, more?: unknown) => void) | undefined
      try {
        notify?.call(observer, about, more)
      } catch (error) {
        this.#logger.error('an observer failed', { error })
      }
    }
  }
}
