/**
 * taskchart/testing: tests of every path through an agent, generated from its chart. `testAgent(t, agent, { cases })`
 * runs them with tap, `agentTests` gives them to any other runner. `proveAgent` and `proveChart` prove properties.
 */
export { agentTests, testAgent } from './agent-tests.ts'
export { proveAgent, proveChart } from './proof/prove.ts'

export type { AgentTestOptions, AgentTests, PathTest } from './agent-tests.ts'
export type { Coverage, ReachedParts } from './coverage.ts'
export type { Cases } from './plan/cases.ts'
export type { Proof, Verdict, Walk, WalkStep } from './proof/prove.ts'
