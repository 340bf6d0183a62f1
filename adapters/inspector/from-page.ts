/* The messages from pages to the hub. Types only, so that code for the browser may import them. */

/** Requests the actors and steps of a context, instead of the previous one; null for none. */
export interface Watch {
  readonly type: 'watch'
  readonly contextId: string | null
  /** Requests only later steps, if `instance` is still the hub's. */
  readonly afterStep?: number
  readonly instance?: string
}

/** Starts or stops the frames. */
export interface AskFrames {
  readonly type: 'frames'
  readonly on: boolean
}

/** Reports an authorization to a task that waits for it, as `runtime.authorized` does. */
export interface Authorize {
  readonly type: 'authorize'
  readonly taskId: string
  /** Any JSON value. Default null. */
  readonly data?: unknown
}

/** Runs the tests of the agent, unless they run already. Coverage follows `testing`. */
export interface AskTest {
  readonly type: 'test'
}

/** Proves the properties of the agent, unless that runs already. */
export interface AskProve {
  readonly type: 'prove'
}

/** Requests what tasks took in the author's charts until now. */
export interface AskHeat {
  readonly type: 'heat'
}

/** Requests the nodes of the cluster, and the way of a task over them. */
export interface AskNodes {
  readonly type: 'nodes'
  readonly taskId?: string
}

/** A message from a page to the hub. */
export type FromPage = Watch | AskFrames | AskTest | AskProve | AskHeat | AskNodes | Authorize
