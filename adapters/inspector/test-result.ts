/*
 * The part of the feed about the tests of the agent. Types only, so that code for the browser may import them.
 */

/** One step of a walk through the work's chart. The first is the opening of its task. */
export interface WalkedStep {
  /** The move as a clause: `the client says "red"`. */
  readonly move: string
  /** The ids of the active state nodes after it; empty in a negotiation, which is before the chart. */
  readonly states: readonly string[]
  /** The names of the transitions that it took. */
  readonly transitions: readonly string[]
}

/** A walk that failed. */
export interface FailedWalk {
  /** A sentence, unique with its driver. */
  readonly name: string
  readonly driver: string
  /** The expected and the actual result, for people. */
  readonly message: string
  /** The command that runs it alone. */
  readonly alone: string
  readonly steps: readonly WalkedStep[]
  /** The index of the step that failed. */
  readonly at: number
}

/** The coverage of the work's chart by the last `taskchart test AGENT`, and the walks that failed. */
export interface Coverage {
  readonly type: 'coverage'
  readonly chart: 'work'
  /** When the tests ended, milliseconds since 1970. */
  readonly atMs: number
  /** Ids of state nodes, and names of transitions. */
  readonly reached: { readonly states: readonly string[]; readonly transitions: readonly string[] }
  /** The states and transitions that were not reached, with reasons. */
  readonly missing: readonly { readonly name: string; readonly why: string }[]
  /** The first 20 walks that failed; absent if an earlier version of taskchart tested. */
  readonly failed?: readonly FailedWalk[]
}

/** The progress of the tests that a page asked for. */
export interface Testing {
  readonly type: 'testing'
  readonly isRunning: boolean
  readonly done: number
  /** 0 until it is known. */
  readonly total: number
  readonly failed: number
  /** Why they could not run, for people. */
  readonly error?: string
}
