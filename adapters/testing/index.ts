/**
 * taskchart/testing: tests of every path through an agent, generated from its chart. `testAgent(t, agent, { cases })` runs them
 * with tap, `agentTests` gives them to any other runner, `planFor` only finds the paths.
 */
export { agentTests } from './agent-tests.ts'
export { chartMermaid } from '../drawing/mermaid.ts'
export { describeMove } from './plan/moves.ts'
export { describeBargainMove } from './negotiation/moves.ts'
export { explainFailure, testAgent } from './test-agent.ts'
export { PathError } from './path-error.ts'
export { PATH_KINDS } from './plan/path-kinds.ts'
export { chartOf, planFor } from './plan/plan.ts'
export { VirtualClock } from './run/virtual-clock.ts'
export { allDrivers } from './run/drivers.ts'

export type { AgentTestOptions, AgentTests, PathTest, CoverageGap } from './agent-tests.ts'
export type { Cases, ByName, OpeningCase } from './plan/cases.ts'
export type { Coverage, ReachedParts, CoverageCount } from './coverage.ts'
export type { Move } from './plan/moves.ts'
export type { PathKind } from './plan/path-kinds.ts'
export type { BargainMove } from './negotiation/moves.ts'
export type { BargainPath } from './negotiation/plan.ts'
export type { Path, Plan, PlanOptions, Step } from './plan/plan.ts'
export type { TestContext } from './test-agent.ts'
export type { ComparedEvent } from './plan/told.ts'
export type { Driver } from './run/drivers.ts'
