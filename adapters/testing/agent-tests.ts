import type { Agent } from '../../runtime/agent/define-agent.ts'
import { isNegotiation } from '../../runtime/negotiation/negotiation.ts'
import { checkOptions, textSuchAs, type OptionKinds } from '../../runtime/primitives/options.ts'
import { checkAgent } from '../../runtime/runtime-options.ts'
import { walkChart, type Liveness } from './chart-run.ts'
import { CoverageLog, type Coverage, type Reached } from './coverage.ts'
import type { BargainPath } from './negotiation/plan.ts'
import { walkBargain } from './negotiation/run.ts'
import { coverageLines, crashLines, missingIn } from './notes.ts'
import { walk, type Manner } from './path-run.ts'
import { PLAN_OPTIONS, planFor, type Path, type PlanOptions } from './plan.ts'
import { Puppet } from './puppet.ts'
import { Stage } from './stage.ts'
import { SOME_WAYS, waysHere, WAYS, type Way } from './ways.ts'

/** How an agent is tested. */
export interface AgentTestOptions extends PlanOptions {
  /** Which ways of walking the paths to take. Default all for which there is what they need. */
  readonly ways?: readonly Way[]
  /** Only the paths whose name has this text in it. */
  readonly only?: string
}

const OPTIONS: OptionKinds<AgentTestOptions> = { ...PLAN_OPTIONS, ways: SOME_WAYS, only: textSuchAs("'is canceled'") }

/** One test: a path, walked in one way. Rejects with PathError if something is not as it should be. */
export interface PathTest {
  readonly way: Way
  readonly name: string
  readonly run: () => Promise<void>
}

/** What a test lacks, though all of its paths pass. */
export interface Shortfall {
  readonly missing: readonly string[]
  readonly crashes: number
}

/** The tests of an agent. */
export interface AgentTests {
  readonly tests: readonly PathTest[]
  /** How many configurations its chart has. */
  readonly configurations: number
  /** What the tests of the chart have been through by now. */
  readonly coverage: () => Coverage
  /** The parts of the work's chart that they have been through by now; undefined if it has none, or not all of it was walked alone. */
  readonly reached: () => Reached | undefined
  /**
   * What the tests have not reached of the work's chart by now, each with the reason, and how many paths end where it throws;
   * undefined where `reached` is.
   */
  readonly shortfall: () => Shortfall | undefined
  /** What there is to be said of it, as lines: which ways lack something here, where the chart itself throws, and what was not reached, if the chart was walked alone. */
  readonly notes: () => string[]
}

/**
 * The tests of an agent, for any test runner: each has a name, which is a sentence, and a function. Throws TypeError if the
 * agent does no tasks or an opening message opens none, RangeError when its chart has too many configurations or no path has
 * `only` in its name.
 */
export async function agentTests(agent: Agent, given: AgentTestOptions = {}): Promise<AgentTests> {
  checkAgent(agent, 'agentTests')
  checkOptions(given, OPTIONS, 'agentTests', 'agentTests(agent, { cases })')
  const { ways: chosenWays, only = '', ...options } = given
  const { machine, isChart, paths, bargains, configurations, crashes } = await planFor(agent, options)
  const log = new CoverageLog(machine)
  const chosen = paths.filter(({ name }) => name.includes(only))
  const chosenBargains = bargains.filter(({ name }) => name.includes(only))
  if (chosen.length + chosenBargains.length === 0) throw new RangeError(`No path has ${JSON.stringify(only)} in its name.`)
  const { ways, lacks } = chosenWays ? { ways: chosenWays, lacks: [] } : await waysHere()
  const run = async (path: Path, way: Way): Promise<void> => {
    const manner = WAYS[way]
    if (typeof manner === 'string') walkChart(path, manner, log)
    else await walk(agent, isChart ? new Stage(machine) : new Puppet(), path, manner)
  }
  const tests = ways.flatMap(way => [
    ...chosen.map(path => ({ way, name: path.name, run: () => run(path, way) })),
    ...bargainTests(agent, chosenBargains, way)
  ])
  const isWalked = chosen.length > 0 && ways.some(way => typeof WAYS[way] === 'string')
  const notes = () => [...lacks, ...crashLines(crashes), ...(isWalked ? coverageLines(log.coverage) : [])]
  const isWhole = isChart && isWalked && only === ''
  const reached = () => (isWhole ? log.reached : undefined)
  const shortfall = () => (isWhole ? { missing: missingIn(log.coverage), crashes: crashes.length } : undefined)
  return { tests, configurations, coverage: () => log.coverage, reached, shortfall, notes }
}

/** The tests of a negotiation: through a runtime, in memory. Its chart is ours, and tested as such. */
function bargainTests(agent: Agent, paths: readonly BargainPath[], way: Way): PathTest[] {
  const { negotiate } = agent
  const manner: Liveness | Manner = WAYS[way]
  if (!isNegotiation(negotiate) || typeof manner === 'string' || manner.disk) return []
  return paths.map(path => ({ way, name: path.name, run: () => walkBargain(agent, negotiate, path, manner) }))
}
