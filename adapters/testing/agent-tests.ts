import { inspect } from 'node:util'
import type { Agent } from '../../runtime/index.ts'
import { isNegotiation } from '../../runtime/negotiation/negotiation.ts'
import { checkOptions, type OptionKinds, textSuchAs, TRUE_OR_FALSE } from '../../runtime/primitives/options.ts'
import { checkAgent } from '../../runtime/runtime-options.ts'
import { checkMcpInstalled } from '../mcp/mcp-handler.ts'
import { type Coverage, type CoverageCount, CoverageLog, type ReachedParts } from './coverage.ts'
import { differenceText, failsTest, historyFiles, replayFile } from './histories/replay-histories.ts'
import { describeBargainMove } from './negotiation/model.ts'
import type { BargainPath } from './negotiation/plan.ts'
import { walkBargain } from './negotiation/run.ts'
import { locatedErrorText, PathError } from './path-error.ts'
import { PLAN_OPTIONS, type PlanOptions } from './plan/cases.ts'
import { DrawError } from './plan/made-cases.ts'
import type { Path, Plan } from './plan/plan.ts'
import { propertyName } from './plan/unmodelled.ts'
import { type AtStep, type Liveness, walkChart, type WalkedStep, walkedSteps } from './run/chart-run.ts'
import { allDrivers, availableDrivers, type Driver, DRIVERS, SOME_DRIVERS, type Manner } from './run/drivers.ts'
import { walk } from './run/path-run.ts'
import { ScriptedWork } from './run/scripted-work.ts'
import { StubActors } from './run/stub-actors.ts'

/** The options for tests of an agent. */
export interface AgentTestOptions extends PlanOptions {
  /** The drivers that walk the paths. Default: all whose dependencies are installed. */
  readonly drivers?: readonly Driver[]
  /** Only paths whose name contains this text. */
  readonly only?: string
  /**
   * Whether every driver walks every path. Default false: on SQLite, which is slow, the paths are those that visit each
   * configuration, unless `only` chooses some.
   */
  readonly complete?: boolean
  /**
   * A folder of histories, which `taskchart tasks export --history` has written: open tasks that this agent has to
   * continue. Each is one test. Relative to the folder of the process.
   */
  readonly histories?: string
}

const OPTIONS: OptionKinds<AgentTestOptions> = {
  ...PLAN_OPTIONS,
  drivers: SOME_DRIVERS,
  only: textSuchAs("'is canceled'"),
  complete: TRUE_OR_FALSE,
  histories: textSuchAs("'test/histories'")
}

/** The driver of histories, which have no paths. */
const HISTORIES = 'histories'

/** One test: a path with one driver, or a history. Rejects with PathError at an unexpected result. */
export interface PathTest {
  readonly driver: Driver | typeof HISTORIES
  readonly name: string
  /** Takes no argument: test runners give their own. */
  readonly run: () => Promise<void>
  /** Like `run`; `at` gets the number of each of `steps` before its walk. */
  readonly walk: (at: AtStep) => Promise<void>
  /** Its steps. For paths through the work's chart, the opening first, with states and transitions. */
  readonly steps: () => readonly WalkedStep[]
}

/** Gaps in the coverage although all paths pass. */
export interface CoverageGap {
  readonly missing: readonly string[]
  readonly crashes: number
}

/** The tests of an agent. */
export interface AgentTests {
  readonly tests: readonly PathTest[]
  /** The number of configurations of its chart. */
  readonly configurations: number
  /** The coverage of the chart so far. */
  readonly coverage: () => Coverage
  /**
   * The covered parts of the work's chart so far; `undefined` without a chart, or if some paths were not walked with
   * the chart alone.
   */
  readonly reached: () => ReachedParts | undefined
  /**
   * The uncovered parts of the work's chart with reasons, and the number of paths on which it throws. `undefined` like
   * `reached`.
   */
  readonly shortfall: () => CoverageGap | undefined
  /** Lines to print: paths on which the chart throws, and uncovered parts if the chart was walked alone. */
  readonly notes: () => string[]
  /** Lines to print after the results: what was not tested, and how to test it, such as packages to install. */
  readonly lacks: readonly string[]
}

/**
 * Makes the tests of an agent for any test runner: each has a name, which is a sentence, and a function. Throws
 * TypeError if the agent has no tasks or an opening message opens none, RangeError if its chart has too many
 * configurations or no path's name contains `only`.
 */
export async function agentTests(agent: Agent, given: AgentTestOptions = {}): Promise<AgentTests> {
  checkAgent(agent, 'agentTests')
  checkDriverNames(given)
  checkOptions(given, OPTIONS, 'agentTests', 'agentTests(agent, { cases })')
  const { drivers: chosenDrivers, only = '', complete = false, histories, ...options } = given
  const {
    machine,
    isChart,
    paths,
    bargains,
    configurations,
    crashes,
    unmodelled,
    draws,
    lacks: ungenerated
  } = await (await import('./plan/plan.ts')).planFor(agent, options)
  const log = new CoverageLog(machine)
  const chosen = paths.filter(({ name }) => name.includes(only))
  const chosenBargains = bargains.filter(({ name }) => name.includes(only))
  if (chosen.length + chosenBargains.length === 0)
    throw new RangeError(
      `No path's name contains ${JSON.stringify(only)}. ${nearestNames(
        only,
        [...paths, ...bargains].map(({ name }) => name)
      )}`
    )
  const { drivers, lacks: unwalked } = chosenDrivers ? { drivers: chosenDrivers, lacks: [] } : await availableDrivers()
  const hasMcp = drivers.some(driver => driver.startsWith('over MCP'))
  if (hasMcp) checkMcpInstalled('The driver over MCP')
  const fewer = chosen.filter(({ isDeepest }) => isDeepest)
  const walkedBy = (driver: Driver) => {
    const { disk }: Partial<Manner> = Object(DRIVERS[driver])
    return disk === 'SQLite' && !complete && only === '' ? fewer : chosen
  }
  const shortened = drivers.filter(driver => walkedBy(driver).length < chosen.length)
  const left = shortened.map(
    driver =>
      `${driver}: ${fewer.length} of ${chosen.length} paths, which visit each configuration. To walk all of them: --complete, or complete: true`
  )
  const unbargained = drivers
    .filter(driver => chosenBargains.length > 0 && isUnsure(DRIVERS[driver]))
    .map(
      driver =>
        `not walked ${driver}: the ${chosenBargains.length} paths of the negotiation. A host cannot send a message again as the same one`
    )
  const lacks = [...unwalked, ...ungenerated, ...left, ...unbargained]
  const walkPath = async (path: Path, driver: Driver, at: AtStep): Promise<void> => {
    const manner = DRIVERS[driver]
    try {
      if (typeof manner === 'string') walkChart(path, manner, log, at)
      else await walk(agent, isChart ? new StubActors(machine) : new ScriptedWork(), path, manner, at)
    } catch (error) {
      throw draws ? new DrawError(error) : error
    }
  }
  const tests = drivers.flatMap(driver => [
    ...walkedBy(driver).map(path =>
      pathTest(
        driver,
        path.name,
        at => walkPath(path, driver, at),
        () => walkedSteps(path, machine)
      )
    ),
    ...bargainTests(agent, chosenBargains, driver)
  ])
  const historyNotes: string[] = []
  const files = histories === undefined ? [] : await historyFiles(histories)
  tests.push(...files.map(file => historyTest(agent, file, note => void historyNotes.push(note))))
  const isWalked = chosen.length > 0 && drivers.some(driver => typeof DRIVERS[driver] === 'string')
  const notes = () => [
    ...unmodelled.map(line => `not walked: ${line}`),
    ...crashLines(crashes),
    ...(isWalked ? coverageLines(log.coverage) : []),
    ...historyNotes
  ]
  const isWhole = isChart && isWalked && only === ''
  const reached = () => (isWhole ? log.reached : undefined)
  const shortfall = () => (isWhole ? { missing: missingIn(log.coverage), crashes: crashes.length } : undefined)
  return { tests, configurations, coverage: () => log.coverage, reached, shortfall, notes, lacks }
}

/** Throws TypeError for an unknown driver, with those that are probably meant. */
function checkDriverNames({ drivers }: AgentTestOptions): void {
  const wrong = Array.isArray(drivers)
    ? drivers.find(driver => typeof driver === 'string' && !Object.hasOwn(DRIVERS, driver))
    : undefined
  if (wrong !== undefined)
    throw new TypeError(`There is no driver ${JSON.stringify(wrong)}. ${nearestNames(wrong, allDrivers)}`)
}

/** The most names in an error. */
const MOST_NAMES = 3

/** Asks whether the names are meant that have most words of a wrong one; without any, gives the first names. */
function nearestNames(wrong: string, names: readonly string[]): string {
  const words = wordsIn(wrong)
  const ranked = names.map(name => ({
    name,
    shared: wordsIn(name).filter(word => words.some(given => word.startsWith(given) || given.startsWith(word))).length
  }))
  const near = ranked.filter(({ shared }) => shared > 0).toSorted((one, other) => other.shared - one.shared)
  const shown = (near.length > 0 ? near : ranked)
    .slice(0, MOST_NAMES)
    .map(({ name }) => `'${name}'`)
    .join(' or ')
  return near.length > 0 ? `Did you mean ${shown}?` : `There are ${names.length}, such as ${shown}.`
}

/** The words that distinguish a name. */
function wordsIn(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[^\p{L}\d]+/u)
    .filter(word => word.length > 3)
}

/** The test of a history. `note` gets a line about one that passes and is not the same. */
function historyTest(agent: Agent, file: string, note: (line: string) => void): PathTest {
  const walk = async () => {
    const replay = await replayFile(agent, file)
    const { outcome, difference } = replay
    const text = `${outcome}: ${differenceText(replay)}`
    if (failsTest(replay)) throw new PathError(file, text, difference?.was, difference?.is)
    if (outcome !== 'same') note(`${file}: ${text}`)
  }
  return { driver: HISTORIES, name: file, run: walk, walk, steps: () => [] }
}

function pathTest(driver: Driver, name: string, walk: PathTest['walk'], steps: PathTest['steps']): PathTest {
  return { driver, name, run: () => walk(() => {}), walk, steps }
}

/** Whether a client cannot know if a message arrived before its agent was killed: a call of a tool has no id. */
function isUnsure(manner: Liveness | Manner): boolean {
  return typeof manner !== 'string' && manner.reach === 'MCP' && manner.interlude !== 'none'
}

/** The tests of a negotiation: through a runtime, in memory. Its chart belongs to taskchart and has its own tests. */
function bargainTests(agent: Agent, paths: readonly BargainPath[], driver: Driver): PathTest[] {
  const { negotiate } = agent
  const manner: Liveness | Manner = DRIVERS[driver]
  if (!isNegotiation(negotiate) || typeof manner === 'string' || manner.disk || isUnsure(manner)) return []
  return paths.map(path =>
    pathTest(
      driver,
      path.name,
      at => walkBargain(agent, negotiate, path, manner, at),
      () => path.steps.map(({ move }) => ({ move: describeBargainMove(move), states: [], transitions: [] }))
    )
  )
}

/** Paths on which the chart throws, as lines to print, with advice if an actor's missing result may be the cause. */
export function crashLines(crashes: Plan['crashes']): string[] {
  const lines = crashes.map(({ way, error }) => `the chart throws, ${way}: ${locatedErrorText(error)}`)
  const guessed = new Set(crashes.flatMap(({ guessed }) => guessed))
  return [
    ...lines,
    ...Array.from(
      guessed,
      src =>
        `${src} ended without an output, as no case says what it gives. Add to the module: export const cases = { results: { ${propertyName(src)}: { 'a result': … } } }`
    )
  ]
}

/** Coverage as lines to print. */
function coverageLines({ states, transitions, tags, guards }: Coverage): string[] {
  const line = (what: string, { total, reached }: CoverageCount) => `${what}: ${reached} of ${total}`
  return [
    line('states', states),
    line('transitions', transitions),
    line('tags', tags),
    line('guard outcomes', guards),
    ...missingIn({ states, transitions, tags, guards }).map(one => `not reached: ${one}`)
  ]
}

/** The uncovered parts of a chart, with reasons. */
function missingIn({ states, transitions, tags, guards }: Coverage): string[] {
  return [
    ...states.missing.map(state => `${state} is never entered`),
    ...transitions.missing,
    ...tags.missing,
    ...guards.missing
  ]
}

/** The required part of a test runner: tap's `t`, or a compatible one with nested tests. */
export interface TestContext {
  test(name: string, run: (t: TestContext) => Promise<void>): Promise<unknown>
  comment?(text: string): void
}

/**
 * Tests every path of an agent: one test per driver, one subtest per path. A failure shows the step, and both values.
 */
export async function testAgent(t: TestContext, agent: Agent, options: AgentTestOptions = {}): Promise<Coverage> {
  const { tests, coverage, notes } = await agentTests(agent, options)
  for (const driver of new Set(tests.map(({ driver }) => driver))) {
    await t.test(driver, async t => {
      for (const { name, run } of tests.filter(test => test.driver === driver))
        await t.test(name, () => run().catch(explainFailure))
    })
  }
  for (const line of notes()) t.comment?.(line)
  return coverage()
}

/** Throws the error with expected and actual values in its message. */
export function explainFailure(error: unknown): never {
  if (error instanceof PathError) throw new Error(`${error.message}\n${wantedAndFound(error)}`, { cause: error })
  throw error
}

function wantedAndFound({ wanted, found, cause }: PathError): string {
  const shown = (value: unknown) => inspect(value, { depth: 8, breakLength: 120, compact: 4 })
  return `  wanted: ${shown(wanted)}\n  found:  ${shown(found)}${cause === undefined ? '' : `\n  error:  ${locatedErrorText(cause)}`}`
}
