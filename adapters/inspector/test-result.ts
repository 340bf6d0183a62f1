/*
 * The part of the feed about the tests and the proofs of the agent. Types only, so that code for the browser may import
 * them.
 */

/** One step of a walk through the work's chart. The first is the opening of its task. */
export interface TestedStep {
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
  readonly steps: readonly TestedStep[]
  /** The index of the step that failed. */
  readonly at: number
}

/** The coverage of the work's chart by the last `taskchart test AGENT`, and the walks that failed. */
export interface ChartCoverage {
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

/** The progress of the tests that a page requested. */
export interface TestProgress {
  readonly type: 'testing'
  readonly isRunning: boolean
  readonly done: number
  /** 0 until it is known. */
  readonly total: number
  readonly failed: number
  /** Why they could not run, for people. */
  readonly error?: string
}

/** A counterexample: its steps, the opening first. */
export interface ShownWalk {
  /** Each step, with what it sends to clients and actors, in words. */
  readonly steps: readonly (TestedStep & { readonly told: string })[]
  /** How many of the last steps repeat for ever. */
  readonly loops: number
  /** The line before the steps that repeat, or after the last step; empty if the last step violates the property. */
  readonly ending: string
  /** The command that proves the property alone. */
  readonly alone: string
}

/** The verdict on a property. */
export interface ShownVerdict {
  readonly property: string
  readonly outcome: 'proved' | 'confirmed' | 'possible' | 'unknown'
  /** The meaning of the outcome, for people. */
  readonly means: string
  /** The reason, as a clause; may be empty. */
  readonly says: string
  readonly walk?: ShownWalk
}

/** The properties of an agent, as `taskchart prove AGENT` decides them. */
export interface ShownProof {
  /** When it ended, milliseconds since 1970. */
  readonly atMs: number
  /** Its size, for people. */
  readonly head: string
  /** The bounds of the proof, as lines. */
  readonly bounds: readonly string[]
  readonly verdicts: readonly ShownVerdict[]
}

/** The proof that a page requested, or that it still runs. */
export interface Proving {
  readonly type: 'proving'
  readonly isRunning: boolean
  readonly proof?: ShownProof
  /** Why there is no proof, for people. */
  readonly error?: string
}
