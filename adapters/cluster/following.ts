import type { ClusterMember } from '../../runtime/operations/cluster.ts'
import type { Clock } from '../../runtime/ports/clock.ts'
import type { Scope } from '../../runtime/store/rows.ts'
import { TRY_AGAIN_MS, type NodeLink } from './link/link.ts'
import type { Placement } from './placement/placement.ts'
import type { Shards } from './shards.ts'

/** The pause before another request to a node for a task that it does not have. */
const AGAIN_MS = 50

/** A task with listeners on this node. */
interface Followed {
  readonly taskId: string
  readonly scope: Scope
  /** `undefined` until it is known. */
  shard: number | undefined
  /** The node that passes its events on, and the end of that. */
  source: { readonly address: string; readonly stop: () => void } | undefined
  timer: unknown
}

export interface FollowingServices {
  readonly member: ClusterMember
  readonly shards: Shards
  readonly placement: Placement
  readonly clock: Clock
  readonly linkTo: (address: string) => NodeLink
  readonly shardOfTask: (scope: Scope, taskId: string) => Promise<number | undefined>
}

/**
 * Brings the events of other nodes' tasks to the listeners of this node. A task is followed at its owner, and at the
 * next owner when it moves. Each time it begins with the task's newest generation. Listeners read what they have missed
 * from the store, so a failed node leaves no gap and no repeat.
 */
export class Following {
  readonly #services: FollowingServices
  readonly #tasks = new Map<string, Followed>()

  constructor(services: FollowingServices) {
    this.#services = services
  }

  /** Follows a task until the result is called. */
  readonly follow = (taskId: string, scope: Scope): (() => void) => {
    const task: Followed = {
      taskId,
      scope,
      shard: this.#services.shards.ofTask(taskId),
      source: undefined,
      timer: undefined
    }
    this.#tasks.set(taskId, task)
    if (task.shard === undefined) void this.#find(task)
    else this.#place(task)
    return () => {
      this.#tasks.delete(taskId)
      this.#leave(task)
    }
  }

  /** Looks for the owner of each task again: shards have moved. */
  moved(): void {
    for (const task of this.#tasks.values()) this.#place(task)
  }

  /** Notifies the listeners of tasks in shards that this node has got their newest generation. */
  gained(shards: readonly number[]): void {
    this.moved()
    for (const task of this.#tasks.values())
      if (task.shard !== undefined && shards.includes(task.shard)) this.#catchUp(task)
  }

  /** Finds the shard of a task with an id from before the cluster. */
  async #find(task: Followed): Promise<void> {
    try {
      task.shard = await this.#services.shardOfTask(task.scope, task.taskId)
      this.#place(task)
    } catch {
      this.#again(task, () => void this.#find(task))
    }
  }

  #place(task: Followed): void {
    const { shards, placement } = this.#services
    if (this.#tasks.get(task.taskId) !== task || task.shard === undefined) return
    const owner = shards.has(task.shard) ? undefined : placement.ownerOf(task.shard)
    if (owner === task.source?.address) return
    this.#leave(task)
    if (owner !== undefined) this.#watch(task, owner, task.shard)
  }

  #watch(task: Followed, address: string, shard: number): void {
    const { member, linkTo } = this.#services
    const { taskId, scope } = task
    const { stop } = linkTo(address).request({ watch: taskId, shard, scope }, answer => {
      if (typeof answer === 'object' && 'told' in answer) return member.publish(taskId, answer.told)
      if (typeof answer === 'object' && 'advanced' in answer) return member.advance(taskId, answer.advanced)
      task.source = undefined
      if (linkTo(address).fault === undefined) return this.#again(task, () => this.#place(task))
      // The node cannot be used for a while. Until then the listeners read the store, as after each attempt.
      this.#again(task, () => this.#place(task), TRY_AGAIN_MS)
      this.#advance(task).catch(() => {})
    })
    task.source = { address, stop }
  }

  /** The owner may have published the last event before the request of this node, or the store is away. */
  #catchUp(task: Followed): void {
    this.#advance(task).catch(() => this.#again(task, () => this.#catchUp(task)))
  }

  async #advance({ scope, taskId }: Followed): Promise<void> {
    const { member } = this.#services
    const generation = await member.generationOf(scope, taskId)
    if (generation !== undefined) member.advance(taskId, generation)
  }

  #again(task: Followed, retry: () => void, pauseMs = AGAIN_MS): void {
    const { clock } = this.#services
    if (this.#tasks.get(task.taskId) !== task) return
    clock.clearTimeout(task.timer)
    task.timer = clock.setTimeout(retry, pauseMs)
  }

  #leave(task: Followed): void {
    this.#services.clock.clearTimeout(task.timer)
    task.source?.stop()
    task.source = undefined
  }
}
