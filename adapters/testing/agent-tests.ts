import type { Agent } from '../../runtime/agent/define-agent.ts'
import { isNegotiation } from '../../runtime/negotiation/negotiation.ts'
import { checkOptions, textSuchAs, type OptionKinds } from '../../runtime/primitives/options.ts'
import { checkAgent } from '../../runtime/runtime-options.ts'
import { CoverageLog, type Coverage, type ReachedParts } from './coverage.ts'
import type { BargainPath } from './negotiation/plan.ts'
import { walkBargain } from './negotiation/run.ts'
import { coverageLines, crashLines, missingIn } from './notes.ts'
import { PLAN_OPTIONS, planFor, type Path, type PlanOptions } from './plan/plan.ts'
import { walkChart, type Liveness } from './run/chart-run.ts'
import { SOME_DRIVERS, availableDrivers, DRIVERS, type Driver } from './run/drivers.ts'
import { walk, type Manner } from './run/path-run.ts'
import { ScriptedWork } from './run/scripted-work.ts'
import { StubActors } from './run/stub-actors.ts'

/** How an agent is tested. */
export interface AgentTestOptions extends PlanOptions {
  /** Which drivers take the paths. Default: all whose dependencies are installed. */
  readonly drivers?: readonly Driver[]
  /** Only the paths whose name has this text in it. */
  readonly only?: string
}

const OPTIONS: OptionKinds<AgentTestOptions> = { ...PLAN_OPTIONS, drivers: SOME_DRIVERS, only: textSuchAs("'is canceled'") }

/** One test: a path, taken with one driver. Rejects with PathError if something is not as it should be. */
export interface PathTest {
  readonly driver: Driver
  readonly name: string
  readonly run: () => Promise<void>
}

/** What a test lacks, though all of its paths pass. */
export interface CoverageGap {
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
  readonly reached: () => ReachedParts | undefined
  /**
   * What the tests have not reached of the work's chart by now, each with the reason, and how many paths end where it throws;
   * undefined where `reached` is.
   */
  readonly shortfall: () => CoverageGap | undefined
  /** What there is to be said of it, as lines: which drivers lack something here, where the chart itself throws, and what was not reached, if the chart was walked alone. */
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
  const { drivers: chosenDrivers, only = '', ...options } = given
  const { machine, isChart, paths, bargains, configurations, crashes } = await planFor(agent, options)
  const log = new CoverageLog(machine)
  const chosen = paths.filter(({ name }) => name.includes(only))
  const chosenBargains = bargains.filter(({ name }) => name.includes(only))
  if (chosen.length + chosenBargains.length === 0) throw new RangeError(`No path has ${JSON.stringify(only)} in its name.`)
  const { drivers, lacks } = chosenDrivers ? { drivers: chosenDrivers, lacks: [] } : await availableDrivers()
  const run = async (path: Path, driver: Driver): Promise<void> => {
    const manner = DRIVERS[driver]
    if (typeof manner === 'string') walkChart(path, manner, log)
    else await walk(agent, isChart ? new StubActors(machine) : new ScriptedWork(), path, manner)
  }
  const tests = drivers.flatMap(driver => [
    ...chosen.map(path => ({ driver, name: path.name, run: () => run(path, driver) })),
    ...bargainTests(agent, chosenBargains, driver)
  ])
  const isWalked = chosen.length > 0 && drivers.some(driver => typeof DRIVERS[driver] === 'string')
  const notes = () => [...lacks, ...crashLines(crashes), ...(isWalked ? coverageLines(log.coverage) : [])]
  const isWhole = isChart && isWalked && only === ''
  const reached = () => (isWhole ? log.reached : undefined)
  const shortfall = () => (isWhole ? { missing: missingIn(log.coverage), crashes: crashes.length } : undefined)
  return { tests, configurations, coverage: () => log.coverage, reached, shortfall, notes }
}

/** The tests of a negotiation: through a runtime, in memory. Its chart is ours, and tested as such. */
function bargainTests(agent: Agent, paths: readonly BargainPath[], driver: Driver): PathTest[] {
  const { negotiate } = agent
  const manner: Liveness | Manner = DRIVERS[driver]
  if (!isNegotiation(negotiate) || typeof manner === 'string' || manner.disk) return []
  return paths.map(path => ({ driver, name: path.name, run: () => walkBargain(agent, negotiate, path, manner) }))
}
