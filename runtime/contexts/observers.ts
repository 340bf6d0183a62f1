import type { AnyActorRef } from 'xstate'
import type { Agent } from '../agent/define-agent.ts'
import type { Logger } from '../ports/logger.ts'
import type { Commit, ContextKey, Erasure, Store } from '../store/store.ts'

/** A context in memory, by its actor: `root.system` is the actor system of all that live in it. */
export interface LiveActors {
  readonly key: ContextKey
  readonly root: AnyActorRef
}

/** Hears what happens in a runtime and does not take part in it, such as an inspector. Each member may be left out; an error that one throws is logged. */
export interface Observer {
  /** A context is in memory. Its actors are there and may not have started. */
  entered?(actors: LiveActors): void
  /** A context has left memory: its actors have stopped. */
  left?(actors: LiveActors): void
  /** What a context decided is durable, and told to its listeners now. */
  committed?(commit: Commit): void
  /** What is stored of these is no more. */
  erased?(whose: Erasure): void
  /** The code of a task gets control: its work starts or goes on, or its chart takes an event. */
  runs?(taskId: string): void
}

/** What an observer may read. */
export interface Observation {
  readonly agent: Agent
  readonly store: Pick<Store, 'listTasks' | 'readEvents'>
  /** Nothing is told from now on. May be called twice. */
  stop(): void
}

/** The observers of a runtime. Without any there is nobody to tell, which is all that is looked at then. */
export class Observers {
  /** Tells all of them; undefined while there are none. */
  told: Required<Observer> | undefined
  readonly #all = new Set<Required<Observer>>()
  readonly #logger: Logger

  constructor(logger: Logger) {
    this.#logger = logger
  }

  /** Adds one. The answer removes it, and may be called twice. */
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
      runs: taskId => each(one => one.runs(taskId))
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
    runs: taskId => attempt(() => observer.runs?.(taskId))
  }
}
