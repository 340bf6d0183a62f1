import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from 'xstate'
import type { ErrorCode } from '../../../machines/protocol/errors.ts'
import type { Agent, WorkInput } from '../../../runtime/index.ts'
import { isNegotiation } from '../../../runtime/negotiation/negotiation.ts'
import { checkOptions } from '../../../runtime/primitives/options.ts'
import { checkAgent } from '../../../runtime/runtime-options.ts'
import { type MessagePolicy, withStepLimit } from '../../../runtime/work-port.ts'
import { BoundError, ExplorationBounds } from '../bounds.ts'
import { type BargainPath, bargainPlan } from '../negotiation/plan.ts'
import { scriptedCases, scriptedChart } from '../run/scripted-work.ts'
import { withResults } from '../run/stub-actors.ts'
import { inputFor } from '../run/world.ts'
import { modelWith } from './acted-model.ts'
import {
  type AllCases,
  type Cases,
  type OpeningCase,
  type MadeCases,
  type PathKind,
  type PlanOptions,
  PLAN_OPTIONS
} from './cases.ts'
import { type ReachedConfiguration, placesFrom, shortestWays, simpleWays, type MoveResult } from './graph.ts'
import { legalMovesIn, type Refused } from './legal-moves.ts'
import { DrawError, DrawWatch, INSTALL_GENERATOR, type LoadPayloads, madeCases, casesWith } from './made-cases.ts'
import { clockedModelOf, configurationKey } from './model.ts'
import { describeMove, type InnerMove, type Move, sentenceOf, type WorkTurn } from './moves.ts'
import { sendersIn, activeStateText, Unmodelled, unsentIn } from './unmodelled.ts'
import { CANCELED, type ComparedEvent, faultOf, OPENED, updatesAfter } from './updates.ts'

/**
 * One move of a path, with the events that the task must send, or the error with which it must refuse it without a
 * change.
 */
export interface PathStep {
  readonly move: Move
  readonly told: readonly ComparedEvent[]
  readonly refusal?: ErrorCode
  /** The chart after the move; absent if the task is canceled, or refuses. */
  readonly turn?: WorkTurn
}

/** A test: an opened task, and its moves. */
export interface Path {
  /** A sentence, unique in its plan. */
  readonly name: string
  readonly opening: OpeningCase
  /** The input of its work. */
  readonly input: WorkInput
  /** The events before the first step, and the chart then. */
  readonly begins: readonly ComparedEvent[]
  readonly start: WorkTurn
  readonly steps: readonly PathStep[]
  /** Whether it goes further than all shortest ways on which it is. Together these paths visit every configuration. */
  readonly isDeepest: boolean
}

/** A path on which the chart throws. `guessed`: the actors on it whose result no case gives, by `src`. */
interface Crash {
  readonly way: string
  readonly error: unknown
  readonly guessed: readonly string[]
}

/** All tests of an agent. */
export interface Plan {
  /** The chart of its work; for work without a chart, a model of such work. */
  readonly machine: AnyStateMachine
  readonly isChart: boolean
  readonly paths: readonly Path[]
  /** The paths of a `negotiation(…)`, before a task exists. */
  readonly bargains: readonly BargainPath[]
  /** The number of configurations. */
  readonly configurations: number
  /** The paths on which the chart throws, or has an invalid output, because of an error in it or in the cases. */
  readonly crashes: readonly Crash[]
  /**
   * What was not walked, since no case gives something of an actor: lines with the state, the actor and what to add.
   */
  readonly unmodelled: readonly string[]
  /** Whether its chart draws random numbers, so that an actor may go another way than a path. */
  readonly draws: boolean
  /** Lines about missing packages without which there are fewer paths. */
  readonly lacks: readonly string[]
}

/** The default of `limit`. */
const MOST_CONFIGURATIONS = 1000

/**
 * Plans the tests of an agent: each move that its work accepts in each reachable configuration, a cancel there, and
 * each move that it must refuse there. Work without a chart is replaced by scripted work, so that the life of its task
 * is tested, not the work. Throws TypeError if the agent has no tasks, or an opening message opens none; BoundError, a
 * RangeError, if a bound is met (1,000 configurations, unless `limit` is another), or for too many simple paths;
 * DrawError, a TypeError, instead of that if its chart draws random numbers.
 */
export async function planFor(agent: Agent, options: PlanOptions = {}): Promise<Plan> {
  return planWith(agent, options)
}

/** Like `planFor`; `load` loads what generates values. */
export async function planWith(agent: Agent, options: PlanOptions, load?: LoadPayloads): Promise<Plan> {
  checkAgent(agent, 'planFor')
  checkOptions(options, PLAN_OPTIONS, 'planFor', 'planFor(agent, { cases })')
  const { cases: given = {}, kind = 'cover', limit = MOST_CONFIGURATIONS } = options
  const bounds = new ExplorationBounds({ ...options, limit })
  const { messages: policy, negotiate } = agent
  const { machine: work, isChart } = chartOf(agent)
  const machine = withResults(work, given.results ?? {})
  const senders = sendersIn(machine, given.results)
  const made = await madeCases(agent, machine, load)
  const lacks = made.lacksGenerator
    ? [`no values of the schemas were tried. To generate them: ${INSTALL_GENERATOR}`]
    : []
  const cases = casesWith(isChart ? given : { ...given, ...scriptedCases }, made, agent)
  if (isNegotiation(negotiate) && Object.keys(cases.bargains.terms).length === 0) throw noTerms(made)
  const bargains = isNegotiation(negotiate) ? bargainPlan(negotiate, cases.bargains, kind, bounds) : []
  const unmodelled = new Set<string>()
  const lose = ({ chart }: WorkTurn, move: InnerMove, { message }: Error) =>
    void unmodelled.add(`in ${activeStateText(chart)}, if ${describeMove(move)}: ${message}`)
  const plan = {
    machine,
    isChart,
    paths: [] as Path[],
    bargains,
    configurations: 0,
    crashes: [] as Crash[],
    draws: false,
    lacks,
    get unmodelled() {
      return [...unmodelled]
    }
  }
  const watch = new DrawWatch()
  for (const [name, opening] of Object.entries(cases.openings)) {
    const input = await inputFor(agent, opening).catch((error: unknown) => {
      if (cases.isOpeningGiven) throw error
      return undefined
    })
    if (!input && cases.isOpeningGiven) throw noTask(name)
    if (!input) continue
    const found = followed(
      () => exploredWith(watch, () => explore({ machine, input, cases, policy, bounds, watch, lose })),
      line => unmodelled.add(`opened by "${name}": ${line}`)
    )
    plan.configurations += found.length
    plan.paths.push(...pathsOf(kind, found, { name, opening, input }))
    for (const { turn, way } of found) {
      if (isChart) for (const line of unsentIn(turn, senders, given.events)) unmodelled.add(line)
      const fault = faultOf(turn)
      const moves = way.map(({ move }) => move)
      if (fault)
        plan.crashes.push({ way: sentenceOf(name, moves), error: fault.error, guessed: guessedIn(moves, given) })
    }
  }
  plan.draws = watch.isDrawn
  if (plan.paths.length === 0 && unmodelled.size > 0)
    throw new TypeError(`nothing can be walked. ${[...unmodelled].join('\n')}`)
  if (plan.paths.length === 0) throw noTask(Object.keys(cases.openings).join('", "'))
  return plan
}

/** The explored configurations; none, if the model cannot follow the start. */
function followed(explored: () => Configuration[], note: (line: string) => void): Configuration[] {
  try {
    return explored()
  } catch (error) {
    if (!(error instanceof Unmodelled)) throw error
    note(error.message)
    return []
  }
}

/** The explored configurations. A chart that draws random numbers may have no end of them. */
function exploredWith(watch: DrawWatch, explored: () => Configuration[]): Configuration[] {
  try {
    return explored()
  } catch (error) {
    throw watch.isDrawn && error instanceof BoundError ? new DrawError(error) : error
  }
}

/** The chart of an agent's work, or the model for work without one. Throws TypeError if the agent has no tasks. */
export function chartOf(agent: Agent): Pick<Plan, 'machine' | 'isChart'> {
  checkAgent(agent, 'chartOf')
  const { work } = agent
  if (!work) throw new TypeError('it has no work to test.')
  return typeof work === 'function'
    ? { machine: scriptedChart, isChart: false }
    : { machine: withStepLimit(work), isChart: true }
}

function noTerms({ lacksGenerator }: MadeCases): TypeError {
  const why = lacksGenerator
    ? `fast-check, which generates terms from their schema, is not installed: ${INSTALL_GENERATOR}. Or give terms`
    : 'the terms cannot be generated from their schema. Give them'
  return new TypeError(
    `${why}, in the agent's module or as the option cases:\nexport const cases = {\n  terms: { 'a price': { euros: 40 } }\n}`
  )
}

function noTask(name: string): TypeError {
  return new TypeError(
    `the message "${name}" opens no task. Give one that does, in the agent's module or as the option cases:\nexport const cases = {\n  opening: { 'a request': 'words that open a task' }\n}`
  )
}

function guessedIn(moves: readonly InnerMove[], { results = {} }: Cases): string[] {
  return moves.flatMap(move =>
    move.type === 'end' && !(move.result instanceof Error) && !results[move.src] ? [move.src] : []
  )
}

type Opened = Pick<Path, 'name' | 'opening' | 'input'>

function pathsOf(kind: PathKind, configurations: readonly Configuration[], opened: Opened): Path[] {
  if (kind === 'cover') return configurations.flatMap(one => pathsAt(one, opened))
  const ways = kind === 'shortest' ? shortestWays(configurations) : simpleWays(configurations)
  return configurations.slice(0, 1).flatMap(({ start }) =>
    ways.map(way =>
      pathOf(
        opened,
        start,
        stepsOf(way, start),
        sentenceOf(
          opened.name,
          way.map(({ move }) => move)
        )
      )
    )
  )
}

/** The paths to a configuration, each with one more move. A move to a new configuration is part of the paths there. */
function pathsAt({ way, start, turn, legal, illegal }: Configuration, opened: Opened): Path[] {
  const moves = way.map(({ move }) => move)
  const steps = stepsOf(way, start)
  const path = (more: readonly PathStep[], name: string, isDeepest = false) =>
    pathOf(opened, start, [...steps, ...more], name, isDeepest)
  const isDeepest = !legal.some(({ isWay }) => isWay)
  const further = legal
    .filter(({ isWay }) => !isWay)
    .map(one => path(stepsOf([one], turn), sentenceOf(opened.name, [...moves, one.move])))
  const refused = illegal.map(refusalOf)
  const here = sentenceOf(opened.name, moves)
  if (turn.status !== 'active')
    return [
      ...further,
      path(
        [...refused, refusalOf({ move: CANCEL, refusal: 'TaskNotCancelable' })],
        `${here}, which is its end`,
        isDeepest
      )
    ]
  const canceled: PathStep[] = [
    { move: CANCEL, told: CANCELED },
    ...illegal.map(({ move }) => refusalOf({ move, refusal: 'UnsupportedOperation' })),
    { move: CANCEL, told: [] }
  ]
  const refusing =
    refused.length === 0
      ? []
      : [path(refused, `${here}, but not ${illegal.map(({ move }) => describeMove(move)).join(' nor ')}`)]
  return [...further, ...refusing, path(canceled, sentenceOf(opened.name, [...moves, CANCEL]), isDeepest)]
}

function pathOf(
  { opening, input }: Opened,
  start: WorkTurn,
  steps: readonly PathStep[],
  name: string,
  isDeepest = true
): Path {
  return { name, opening, input, begins: [...OPENED, ...updatesAfter(start)], start, steps, isDeepest }
}

const CANCEL: Move = { type: 'cancel' }

function stepsOf(way: readonly MoveResult<WorkTurn, InnerMove>[], start: WorkTurn): PathStep[] {
  return way.map(({ move, turn }, i) => ({ move, told: updatesAfter(turn, way[i - 1]?.turn ?? start, move), turn }))
}

function refusalOf({ move, refusal }: Refused): PathStep {
  return { move, told: [], refusal }
}

/** A reachable configuration of a chart: the shortest path to it, and the moves that its task accepts and refuses. */
type Configuration = ReachedConfiguration<WorkTurn, InnerMove> & { readonly illegal: readonly Refused[] }

/** A chart to explore, with its input and cases. */
interface Territory {
  readonly machine: AnyStateMachine
  readonly input: unknown
  readonly cases: AllCases
  readonly policy: MessagePolicy
  readonly bounds: ExplorationBounds
  /** Sees whether the chart draws random numbers. */
  readonly watch: DrawWatch
  /** Gets each move that the model cannot follow. */
  readonly lose: (turn: WorkTurn, move: InnerMove, error: Unmodelled) => void
}

/**
 * Finds every configuration of a chart once, shortest paths first. Throws BoundError if a bound is met: if the context
 * counts or grows, `memory` has to reduce it. Throws Unmodelled if the model cannot follow its start.
 */
function explore({ machine, input, cases, policy, bounds, watch, lose }: Territory): Configuration[] {
  const { begin, take } = watch.over(clockedModelOf(modelWith(machine, cases)))
  const turnsAfter = new WeakMap<InnerMove, WorkTurn>()
  const isFollowed = (turn: WorkTurn, move: InnerMove) => {
    try {
      const after = take(turn, move)
      updatesAfter(after, turn, move)
      turnsAfter.set(move, after)
      return true
    } catch (error) {
      if (!(error instanceof Unmodelled)) throw error
      lose(turn, move, error)
      return false
    }
  }
  const start = begin(input)
  updatesAfter(start)
  const places = placesFrom<WorkTurn, InnerMove>(start, {
    take: (_, move) => turnsAfter.get(move) as WorkTurn,
    legalIn: turn => legalMovesIn(turn, cases, policy, can).legal.filter(move => isFollowed(turn, move)),
    keyOf: turn => keyOf(turn, cases),
    // Two actors of one logic end with the same words.
    describeMove: move => JSON.stringify([describeMove(move), 'actor' in move ? move.actor : '']),
    bounds
  })
  return places.map(place => Object.assign(place, { illegal: legalMovesIn(place.turn, cases, policy, can).illegal }))
}

/** Whether the chart accepts an event. If a guard throws, it throws at the event. */
function can(chart: AnyMachineSnapshot, event: EventObject): boolean {
  try {
    return chart.can(event)
  } catch {
    return true
  }
}

function keyOf(turn: WorkTurn, { memory }: AllCases): string {
  const waiting = turn.timers.map(({ id, dueMs }) => `${id} in ${dueMs - turn.nowMs}`).toSorted()
  return configurationKey(turn, memory(turn.chart.context), waiting)
}
