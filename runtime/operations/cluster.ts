import type { Clock } from '../ports/clock.ts'
import type { ObservedCluster } from '../ports/cluster-status.ts'
import { randomIds } from '../ports/ids.ts'
import type { Scope } from '../store/rows.ts'
import type { ContextKey, Erasure, TaskEntry } from '../store/store.ts'
import type { FeedListener } from '../streams/task-tail.ts'

/** The calls that only the node of a context can handle: its changes. */
export const OWNER_CALL_NAMES = [
  'send',
  'cancel',
  'withdraw',
  'authorized',
  'note',
  'createPushConfig',
  'deletePushConfig'
] as const
export type OwnerCallName = (typeof OWNER_CALL_NAMES)[number]

/**
 * The node for a change: the owner of a task or a context, or a fixed node for a text. Without any of them it is the
 * node that got the request, if it has shards.
 */
export type ShardSelector =
  | { readonly scope: Scope; readonly taskId: string }
  | { readonly context: ContextKey }
  | { readonly text: string }
  | undefined

/** A change, and the node for it. */
export interface OwnerCall {
  readonly name: OwnerCallName
  readonly place: ShardSelector
  /** Its parameters as JSON, for another node. */
  readonly request: object
  /**
   * Whether it may be made twice, so that it is repeated when a node fails and the outcome of the first attempt is
   * unknown.
   */
  readonly isRepeatable: boolean
  readonly signal?: AbortSignal | undefined
}

/** The result of a change: of this node, or the JSON of another. */
export type OwnerResult<Here> = { readonly here: Here } | { readonly there: unknown }

/** The nodes that share a store. Each context, with its tasks, belongs to one node at a time. */
export interface Cluster {
  /** The time that all nodes share. It is the default clock of their runtimes. */
  readonly clock?: Clock
  /** Adds a runtime as this node. Called once, by `createRuntime`. */
  join(member: ClusterMember): Membership
}

/** Figures of a node: its own shards and the nodes that it knows now, and counts since it was created. */
export interface NodeFigures {
  readonly shards: number
  readonly nodes: number
  /** Changes that another node made for this one. */
  readonly forwarded: number
  /** Shards that this node got, handed over, and lost: its session ended, or another node took them. */
  readonly moves: { readonly gained: number; readonly given: number; readonly lost: number }
  /**
   * How often this node could not join, refused a caller of its link that is no node of the cluster, and found another
   * node that it cannot reach.
   */
  readonly refusals: { readonly join: number; readonly caller: number; readonly node: number }
}

/** The cluster, for the runtime of one node. */
export interface Membership {
  figures(): NodeFigures
  /** The cluster, for an observer of this node. */
  readonly observed: ObservedCluster
  /**
   * Makes a change on its node: with `here` if that is this one, which gets the shard for new contexts. Waits while no
   * node has the shard.
   */
  runOnOwner<Here>(change: OwnerCall, here: (shard: number) => Promise<Here>): Promise<OwnerResult<Here>>
  /** Whether a context belongs to this node. */
  owns(key: ContextKey): boolean
  /** A new id of a context in a shard. */
  contextId(shard: number): string
  /** A new id of a task of a context. */
  taskId(key: ContextKey): string
  /**
   * Called when a task gets its first listener on this node. Its events of other nodes are published until the result
   * is called.
   */
  readonly followed: (taskId: string, scope: Scope) => () => void
  /** Erases data while all other nodes withhold it. */
  erase(whose: Erasure, erase: () => Promise<boolean>): Promise<boolean>
  /** Hands everything over to the other nodes. May be called twice. */
  leave(): Promise<void>
}

/** The runtime of one node, for its cluster. */
export interface ClusterMember {
  /** The version of the agent, and the newest format of stored actors that this runtime reads and writes. */
  readonly version: string
  readonly format: number
  /** Makes a change for another node. */
  run(name: OwnerCallName, request: object, shard: number, signal: AbortSignal): Promise<unknown>
  /** The context of a task; `undefined` for an unknown task. */
  contextOf(scope: Scope, taskId: string): Promise<ContextKey | undefined>
  /** Adds a listener for the log of a task of this node. Call the result to remove it. */
  listen(taskId: string, listener: FeedListener): () => void
  /** Publishes entries of a task of another node. */
  publish(taskId: string, entries: readonly TaskEntry[]): void
  /** Notifies the listeners of a task of its generation: they read missing events from the store. */
  advance(taskId: string, generation: number): void
  /** The newest generation of a task in the store; `undefined` for an unknown task. */
  generationOf(scope: Scope, taskId: string): Promise<number | undefined>
  /**
   * Resumes the contexts and webhooks that this node has gained. `isContinued`: the context had no other owner in
   * between.
   */
  gained(isContinued: (key: ContextKey) => boolean): void
  /**
   * Stops the contexts and webhooks that this node has no longer. `isOrderly`: after everything decided is committed.
   */
  release(
    isLost: { readonly context: (key: ContextKey) => boolean; readonly task: (taskId: string) => boolean },
    isOrderly: boolean
  ): Promise<void>
  /**
   * Withholds data that another node erases. Calls `withheld` when its contexts have stopped; `erased` resolves to
   * whether anything was erased. If not, restores the contexts, then rejects.
   */
  withhold(whose: Erasure, withheld: () => void, erased: Promise<boolean>): Promise<void>
}

/** Connections of clients by name, so that the shares of anonymous callers are the same on other nodes. */
export class ConnectionNames {
  readonly #names = new WeakMap<object, string>()
  readonly #named = new Map<string, WeakRef<object>>()
  readonly #gone = new FinalizationRegistry<string>(this.#named.delete.bind(this.#named))

  /** The name of a connection of this node. */
  nameOf(connection: object): string {
    const name = this.#names.get(connection) ?? randomIds()
    this.#names.set(connection, name)
    return name
  }

  /** The same object for each call over a connection of another node, as long as it is in use. */
  named(name: string): object {
    const known = this.#named.get(name)?.deref()
    if (known) return known
    const connection = { name }
    this.#named.set(name, new WeakRef(connection))
    this.#gone.register(connection, name)
    return connection
  }
}
