import type { AnyStateMachine } from 'xstate'
import { leadsTo, never, type Fairness, type Property } from '../../../machines/properties/properties.ts'
import { notTerm, TERMINAL, THROWN } from '../../../machines/properties/terms.ts'
import type { Agent } from '../../../runtime/index.ts'
import {
  checkArgument,
  checkOptions,
  objectSuchAs,
  textSuchAs,
  withMembers,
  type OptionKinds
} from '../../../runtime/primitives/options.ts'
import { checkAgent } from '../../../runtime/runtime-options.ts'
import { withStepLimit } from '../../../runtime/work-port.ts'
import { activeStates } from '../../../runtime/xstate/persisted-snapshot.ts'
import { BOUND_OPTIONS, ExplorationBounds, type BoundOptions } from '../bounds.ts'
import type { Cases } from '../plan/cases.ts'
import { idsOf, recordedRun, takeMoves } from '../run/chart-run.ts'
import type { ChartCases } from './agent-states.ts'
import { counterexampleIn, type Counterexample } from './counterexample.ts'
import { guardsText, OpenGuards, type Choice } from './open-guards.ts'
import { promelaModel } from './promela.ts'
import type { Edge, StateSpace } from './state-space.ts'

/**
 * The options of a proof. If a bound is met (20,000 configurations, unless `limit` is another), nothing is proved, but
 * counterexamples are found.
 */
export interface ProofOptions extends BoundOptions {
  /** Only properties whose name contains this text. */
  readonly only?: string
}

/** One step of a counterexample. */
export interface WalkStep {
  /** A clause: `the client says "large"`. */
  readonly says: string
  /** The sender: `client`, `time`, or the logic of an actor. */
  readonly from: string
  /** The chart after it, as XState's state value. */
  readonly state: unknown
  /** The ids of the active state nodes after it, outermost first. */
  readonly states: readonly string[]
  /** The names of the transitions that it took. */
  readonly transitions: readonly string[]
  /** The names of updates: `WORKING`, `artifact`, or the type of an emitted event. */
  readonly told: readonly string[]
  /** The types of events that the chart sends to actors. */
  readonly sent: readonly string[]
}

/** A counterexample: a walk from the start, and for an endless one the steps that repeat for ever. */
export interface Walk {
  /** The start, as a clause: `opened by "a coffee"`. */
  readonly opening: string
  readonly begins: Omit<WalkStep, 'says' | 'from'>
  readonly steps: readonly WalkStep[]
  readonly again: readonly WalkStep[]
  /** `moment`: its last step violates the property. `end`: nothing goes on after it. `loop`: `again` repeats. */
  readonly kind: 'moment' | 'end' | 'loop'
}

/**
 * The verdict on a property. `proved`: it holds on every walk. `confirmed`: the real chart walks a counterexample with
 * the cases. `possible`: there is a counterexample if some guards decide so about data that no case gives. `unknown`:
 * none was found, but not everything could be seen.
 */
export type Verdict = {
  readonly property: string
  /** The fairness of its endless walks; absent if it is not about any. */
  readonly fairness?: Fairness
} & (
  | { readonly outcome: 'proved' }
  | { readonly outcome: 'confirmed'; readonly walk: Walk }
  | { readonly outcome: 'possible'; readonly walk: Walk; readonly guards: readonly Choice[] }
  | { readonly outcome: 'unknown'; readonly why: string }
)

/** The result of a proof. */
export interface Proof {
  readonly verdicts: readonly Verdict[]
  /** The number of configurations, of all openings together. */
  readonly configurations: number
  /** Whether these are all. */
  readonly isWhole: boolean
  /** The bound that was met, as a clause, if they are not all. */
  readonly met?: string
  /** The openings, as clauses. */
  readonly openings: readonly string[]
  /** The data that no case gives, as clauses. Guards hold both ways from there. */
  readonly guesses: readonly string[]
  /** Walks that could not be followed, since the chart throws with data that no case gives. */
  readonly lost: readonly string[]
  /** What the model does not know of actors, as lines with the state, the actor and what to add to the cases. */
  readonly unmodelled: readonly string[]
}

const OPTIONS: OptionKinds<ProofOptions & { readonly cases: Cases }> = {
  cases: objectSuchAs("{ opening: { start: 'start' } }"),
  ...BOUND_OPTIONS,
  only: textSuchAs("'is paid'")
}

/** Properties of every chart of work, also without any of its author's. */
export const OWN_PROPERTIES: Readonly<Record<string, Property>> = {
  'the chart never throws': never(THROWN),
  'every task can end': leadsTo(notTerm(TERMINAL), TERMINAL, 'choice')
}

/**
 * Proves the properties of an agent on the chart of its work, in every configuration that its cases lead to. A client
 * may cancel anywhere, the deadline may pass anywhere, actors end and timers fire in any order that time allows. Guards
 * are evaluated with the cases' data; where no case gives the data they hold both ways. Also checks that the chart
 * never throws and that every task can end. Throws TypeError if the work is no chart, no message opens a task, or no
 * property has the text `only`.
 */
export async function proveAgent(agent: Agent, options: AgentProofOptions = {}): Promise<Proof> {
  const { stateSpaces, properties, unseen } = await exploredAgent(agent, options, 'proveAgent')
  return proofOf(unseen.machine, stateSpaces, properties, unseen)
}

/**
 * Writes the explored chart of an agent and its properties as a model for SPIN, another prover. SPIN decides by it
 * whether the properties hold on every walk; it takes the configurations and their steps as they are. Takes the options
 * of `proveAgent` and throws its errors, and BoundError if a bound is met.
 */
export async function promelaOf(agent: Agent, options: AgentProofOptions = {}): Promise<string> {
  const {
    stateSpaces,
    properties,
    unseen: { guesses, lost, unmodelled }
  } = await exploredAgent(agent, options, 'promelaOf')
  const bounds = [
    ...(guesses.length === 0 ? [] : [`No case gives ${guesses.join(' or ')}, so guards hold both ways from there.`]),
    ...[...lost].map(walk => `Not followed: ${walk}`),
    ...[...unmodelled].map(line => `Not modelled: ${line}`)
  ]
  return promelaModel({ name: agent.card.name, stateSpaces, properties, bounds })
}

/** The options of a proof of an agent. */
type AgentProofOptions = ProofOptions & { readonly cases?: Cases }

async function exploredAgent(agent: Agent, { cases = {}, ...options }: AgentProofOptions, caller: string) {
  checkAgent(agent, caller)
  checkOptions({ cases, ...options }, OPTIONS, caller, `${caller}(agent, { cases })`)
  const { work, properties = {} } = agent
  if (typeof work !== 'object')
    throw new TypeError('its work is no statechart, so there is nothing to prove. Write it with setupWork.')
  const bounds = new ExplorationBounds({ ...options, limit: options.limit ?? MOST_CONFIGURATIONS })
  const { agentInitialStates, stateSpaceOf } = await loadExplorer()
  const unseen = await agentInitialStates(agent, cases)
  const stateSpaces = unseen.initialStates.map(initialState => stateSpaceOf(initialState, bounds))
  return { stateSpaces, properties: chosenOf({ ...properties, ...OWN_PROPERTIES }, options), unseen }
}

/**
 * Proves properties of any chart, with the events of `cases`, in every configuration that they lead to. Throws
 * RangeError if no property has the text `only`.
 */
export async function proveChart(
  chart: AnyStateMachine,
  properties: Readonly<Record<string, Property>>,
  cases: ChartCases = {},
  options: ProofOptions = {}
): Promise<Proof> {
  checkArgument(chart, withMembers(['root', 'config'], 'a statechart'), 'proveChart(machine, { … })')
  const machine = withStepLimit(chart)
  const { chartInitialState, stateSpaceOf } = await loadExplorer()
  const { initialState, lost, unmodelled } = chartInitialState(machine, cases)
  const guesses = cases.events ? [] : ['data of events']
  const bounds = new ExplorationBounds({ ...options, limit: options.limit ?? MOST_CONFIGURATIONS })
  return proofOf(machine, [stateSpaceOf(initialState, bounds)], chosenOf(properties, options), {
    guesses,
    lost,
    unmodelled
  })
}

const MOST_CONFIGURATIONS = 20_000

/** Loads the explorer of charts, which needs @xstate/graph, an optional peer. */
async function loadExplorer() {
  const { agentInitialStates, chartInitialState } = await import('./agent-states.ts')
  const { stateSpaceOf } = await import('./state-space.ts')
  return { agentInitialStates, chartInitialState, stateSpaceOf }
}

interface Unseen {
  readonly guesses: readonly string[]
  readonly lost: ReadonlySet<string>
  readonly unmodelled: ReadonlySet<string>
}

type Named = readonly (readonly [name: string, property: Property])[]

function chosenOf(properties: Readonly<Record<string, Property>>, { only = '' }: ProofOptions): Named {
  const chosen = Object.entries(properties).filter(([name]) => name.includes(only))
  if (chosen.length === 0)
    throw new RangeError(
      `no property's name contains ${JSON.stringify(only)}. There are: ${Object.keys(properties).join('; ')}.`
    )
  return chosen
}

function proofOf(
  machine: AnyStateMachine,
  stateSpaces: readonly StateSpace[],
  chosen: Named,
  { guesses, lost, unmodelled }: Unseen
): Proof {
  const isWhole = stateSpaces.length > 0 && stateSpaces.every(stateSpace => stateSpace.isWhole)
  const [met] = stateSpaces.flatMap(stateSpace => stateSpace.met ?? [])
  const verdicts = chosen.map(([name, property]): Verdict => {
    const [shortest] = stateSpaces
      .flatMap(stateSpace => {
        const found = counterexampleIn(stateSpace, property)
        return found
          ? [{ stateSpace, found, isReal: choicesOf(found).length === 0 && isWalked(machine, stateSpace, found) }]
          : []
      })
      .toSorted(
        (one, other) => Number(other.isReal) - Number(one.isReal) || lengthOf(one.found) - lengthOf(other.found)
      )
    const named = { property: name, ...(property.fairness && { fairness: property.fairness }) }
    if (!shortest) return { ...named, ...unseen(property, stateSpaces, met, { lost, unmodelled }) }
    const { stateSpace, found, isReal } = shortest
    const walk = walkOf(machine, stateSpace, found, property)
    return isReal
      ? { ...named, outcome: 'confirmed', walk }
      : { ...named, outcome: 'possible', walk, guards: choicesOf(found) }
  })
  return {
    verdicts,
    configurations: stateSpaces.reduce((sum, { nodes }) => sum + nodes.length, 0),
    isWhole,
    ...(met !== undefined && { met }),
    openings: stateSpaces.map(({ initialState }) => initialState.name),
    guesses,
    lost: [...lost],
    unmodelled: [...unmodelled]
  }
}

/** The verdict without a counterexample. */
function unseen(
  { readsContext }: Property,
  stateSpaces: readonly StateSpace[],
  met: string | undefined,
  { lost, unmodelled }: Pick<Unseen, 'lost' | 'unmodelled'>
): { readonly outcome: 'proved' } | { readonly outcome: 'unknown'; readonly why: string } {
  const [first] = unmodelled
  if (first !== undefined) return { outcome: 'unknown', why: first }
  if (met !== undefined) return { outcome: 'unknown', why: met }
  if (lost.size > 0) return { outcome: 'unknown', why: 'the chart throws with data that no case gives' }
  if (readsContext && stateSpaces.some(({ isOpen }) => isOpen))
    return { outcome: 'unknown', why: 'it reads the context, which depends on data that no case gives' }
  return { outcome: 'proved' }
}

/** The outcomes of guards that a counterexample needs, each once. */
function choicesOf({ steps, loop }: Counterexample): Choice[] {
  const all = [...steps, ...loop].flatMap(({ transition }) => transition.choices)
  return [...new Map(all.map(choice => [guardsText([choice]), choice])).values()]
}

/** Whether an actor of the real chart takes these steps. */
function isWalked(machine: AnyStateMachine, { initialState }: StateSpace, { steps, loop }: Counterexample): boolean {
  const moves = [...steps, ...loop].flatMap(({ transition: { move, to } }) => (move ? [{ move, turn: to.played }] : []))
  try {
    takeMoves(machine, initialState.input, initialState.start, moves)
    return true
  } catch {
    return false
  }
}

function lengthOf({ steps, loop }: Counterexample): number {
  return steps.length + loop.length
}

function walkOf(
  machine: AnyStateMachine,
  { initialState, moments }: StateSpace,
  { steps, loop }: Counterexample,
  { fairness }: Property
): Walk {
  const [opening = [], ...transitions] = transitionsOn(machine, initialState.input, [...steps, ...loop])
  const { chart, updates } = initialState.start
  const begins = {
    state: chart.value,
    states: idsOf(activeStates(chart)),
    transitions: opening,
    told: updates.map(({ name }) => name),
    sent: moments.filter(({ kind }) => kind === 'sent').map(({ name }) => name)
  }
  return {
    opening: initialState.name,
    begins,
    steps: steps.map((edge, i) => stepOf(edge, transitions[i])),
    again: loop.map((edge, i) => stepOf(edge, transitions[steps.length + i])),
    kind: loop.length > 0 ? 'loop' : fairness ? 'end' : 'moment'
  }
}

/**
 * The transitions that the real chart takes at its start, then on each step, if guards that unknown data decides have
 * the outcomes of the walk.
 */
function transitionsOn(machine: AnyStateMachine, input: unknown, edges: readonly Edge[]): string[][] {
  const guards = new OpenGuards(machine)
  const { run, transitionsSince } = recordedRun(guards.machine, input)
  const all = [transitionsSince()]
  for (const {
    transition: { move, choices, to }
  } of edges) {
    if (move && to.isOpen) guards.decided(choices, () => run.take(move))
    else if (move) run.take(move)
    all.push(transitionsSince())
  }
  run.stop()
  return all
}

function stepOf({ transition: { says, from, to } }: Edge, transitions: readonly string[] = []): WalkStep {
  return {
    says,
    from,
    state: to.chart.value,
    states: idsOf(activeStates(to.chart)),
    transitions,
    told: to.updates.map(({ name }) => name),
    sent: to.sent.map(({ type }) => type)
  }
}
