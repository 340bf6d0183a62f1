import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from 'xstate'
import type { NamedValue } from '../../../machines/properties/terms.ts'
import type { TaskState } from '../../../machines/protocol/states.ts'
import type { Agent } from '../../../runtime/index.ts'
import { modelWith } from '../plan/acted-model.ts'
import { endedIn } from '../plan/actors-in.ts'
import type { AllCases, Cases } from '../plan/cases.ts'
import { legalMovesIn } from '../plan/legal-moves.ts'
import { madeCases, casesWith } from '../plan/made-cases.ts'
import { livingIn, modelOf } from '../plan/model.ts'
import { type ChartMove, describeMove, type OutsideMove, type WorkTurn } from '../plan/moves.ts'
import { chartOf } from '../plan/plan.ts'
import { sendersIn, Unmodelled, unsentIn } from '../plan/unmodelled.ts'
import { type ComparedEvent, OPENED, updatesAfter } from '../plan/updates.ts'
import { withResults } from '../run/stub-actors.ts'
import { inputFor } from '../run/world.ts'
import {
  endedBy,
  type InitialState,
  type CandidateMove,
  type Configuration,
  type Transition,
  Explorer
} from './initial-state.ts'
import { OpenGuards } from './open-guards.ts'
import { actorSource } from './state-space.ts'

/** The initial states of the work of an agent, one for each message that opens a task. */
interface AgentInitialStates {
  readonly initialStates: readonly InitialState[]
  /** The data that no case gives, as clauses. */
  readonly guesses: readonly string[]
  /** The chart, without those among its actors whose results cases give. */
  readonly machine: AnyStateMachine
  /** Walks that could not be followed, once they are explored. */
  readonly lost: ReadonlySet<string>
  /** The lines on what the model does not know, once it is explored. */
  readonly unmodelled: ReadonlySet<string>
}

/**
 * Opens the work of an agent with each case. A client may cancel everywhere; a deadline may pass everywhere, if the
 * agent has one.
 */
export async function agentInitialStates(agent: Agent, given: Cases): Promise<AgentInitialStates> {
  const machine = withResults(chartOf(agent).machine, given.results ?? {})
  const cases = casesWith(given, await madeCases(agent, machine), agent)
  const guards = new OpenGuards(machine)
  const explorer = new Explorer(modelWith(guards.machine, cases), guards, namedUpdates)
  const senders = sendersIn(machine, given.results)
  const guesses = new Set<string>()
  const isGuess = (move: OutsideMove) => {
    const guess = guessIn(move, given)
    if (guess !== undefined) guesses.add(guess)
    return guess !== undefined
  }
  const initialStates: InitialState[] = []
  for (const [name, opening] of Object.entries(cases.openings)) {
    const input = await inputFor(agent, opening).catch((error: unknown) => {
      if (cases.isOpeningGiven) throw error
      return undefined
    })
    if (!input) continue
    const start = startOf(explorer, input, `opened by "${name}"`)
    if (start)
      initialStates.push({
        name: `opened by "${name}"`,
        input,
        start,
        memory: cases.memory,
        isCut: configuration => explorer.cut.has(configuration),
        transitionsFrom: configuration => {
          for (const line of unsentIn(configuration, senders, given.events)) explorer.miss(configuration, line)
          return transitionsFrom(configuration, { agent, cases, explorer, isGuess })
        }
      })
  }
  if (initialStates.length === 0 && explorer.unmodelled.size === 0)
    throw new TypeError(
      `no message opens a task. Give one that does, in the agent's module:\nexport const cases = {\n  opening: { 'a request': 'words that open a task' }\n}`
    )
  return {
    initialStates,
    machine,
    lost: explorer.lost,
    unmodelled: explorer.unmodelled,
    get guesses() {
      return [...guesses]
    }
  }
}

/** The start; `undefined` if the model cannot follow it. */
function startOf(explorer: Explorer, input: unknown, opening: string): Configuration | undefined {
  try {
    return explorer.begin(input, false)
  } catch (error) {
    if (!(error instanceof Unmodelled)) throw error
    explorer.unmodelled.add(`${opening}: ${error.message}`)
    return undefined
  }
}

interface Surroundings {
  readonly agent: Agent
  readonly cases: AllCases
  readonly explorer: Explorer
  readonly isGuess: (move: OutsideMove) => boolean
}

function transitionsFrom(
  configuration: Configuration,
  { agent: { messages, deadlineMs }, cases, explorer, isGuess }: Surroundings
): Transition[] {
  const own = explorer.ownIn(configuration)
  if (own) return explorer.take(configuration, own)
  const { legal } = legalMovesIn(configuration, cases, messages, (chart, event, move) =>
    explorer.can({ chart, isOpen: configuration.isOpen }, event, isGuess(move))
  )
  const offered = legal
    .filter(move => move.type !== 'time')
    .map((move): CandidateMove => ({ move, says: describeMove(move), ...sideOf(move), isGuess: isGuess(move) }))
  const cancel: Transition = {
    type: 'cancel',
    says: 'the client cancels',
    from: 'client',
    choices: [],
    to: endedBy(configuration, 'canceled', 'CANCELED')
  }
  const late: Transition = {
    type: 'deadline',
    says: 'the deadline passes',
    from: 'time',
    choices: [],
    source: 'the deadline',
    to: endedBy(configuration, 'late', 'FAILED')
  }
  return [
    ...[...offered, ...explorer.timersIn(configuration)].flatMap(one => explorer.take(configuration, one)),
    cancel,
    ...(deadlineMs === undefined ? [] : [late])
  ]
}

/** The sender of a move, and the source that goes on with it. Events that an actor may send are none. */
function sideOf(move: OutsideMove): { readonly from: string; readonly source?: string } {
  if (move.type === 'end') return { from: move.src, source: actorSource(move.actor) }
  return move.type === 'event' ? { from: 'actor' } : { from: 'client', source: 'the client' }
}

/** The data of a move that no case gives, as a clause. */
function guessIn(move: OutsideMove, { messages, authorizations, results = {} }: Cases): string | undefined {
  if (move.type === 'message' && !messages) return 'answers of the client'
  if (move.type === 'authorization' && !authorizations) return 'authorizations'
  return move.type === 'end' && !results[move.src] ? `results of ${move.src}` : undefined
}

/** The updates of a task: statuses by the last word of their names, and artifacts. */
function namedUpdates(turn: WorkTurn, before?: WorkTurn, move?: ChartMove): NamedValue[] {
  const updates: readonly ComparedEvent[] = before
    ? updatesAfter(turn, before, move)
    : [...OPENED, ...updatesAfter(turn)]
  return updates.map(value => ({ name: 'state' in value ? shortState(value.state) : 'artifact', value }))
}

/** A state without `TASK_STATE_`. */
function shortState(state: TaskState): string {
  return state.replace('TASK_STATE_', '')
}

/** The events that a chart may receive, if it is no work. */
export interface ChartCases {
  readonly input?: unknown
  /**
   * Events that may arrive in any state, with the ends of its actors (`xstate.done.actor.<id>`, with `actorId`). A
   * state that ignores one has no step for it. Default: all events of the chart without data, whose guards hold both
   * ways.
   */
  readonly events?: readonly EventObject[] | ((chart: AnyMachineSnapshot) => readonly EventObject[])
  /**
   * Types of events that come in the end, wherever they are accepted. Actors end and timers fire in any case. Default:
   * none.
   */
  readonly awaited?: readonly string[]
  /** The part of the context that decides where a walk may lead. Default: all of it. */
  readonly memory?: (context: never) => unknown
  /** The name of an emitted event. Default: its type. */
  readonly toldAs?: (emitted: never) => string
}

/** The initial state of a bare chart. */
export function chartInitialState(
  machine: AnyStateMachine,
  { input, events, awaited = [], memory = context => context, toldAs: nameOf }: ChartCases
): {
  readonly initialState: InitialState
  readonly lost: ReadonlySet<string>
  readonly unmodelled: ReadonlySet<string>
} {
  const guards = new OpenGuards(machine)
  const updatesOf = ({ words }: WorkTurn): NamedValue[] =>
    words.map(value => ({ name: nameOf?.(value as never) ?? (value as EventObject).type, value }))
  const explorer = new Explorer(modelOf(guards.machine), guards, updatesOf)
  const offeredIn = (configuration: Configuration): CandidateMove[] => {
    const arriving = typeof events === 'function' ? events(configuration.chart) : (events ?? bareEvents(configuration))
    const possible = arriving.filter(
      event => mayCome(event, configuration) && explorer.can(configuration, event, !events)
    )
    return possible.map((event, i): CandidateMove => {
      const move: ChartMove = { type: 'event', name: `${event.type} ${i}`, event }
      return { move, says: saysOf(event, possible), from: 'outside', isGuess: !events, ...sourceOf(event, awaited) }
    })
  }
  const transitionsFrom = (configuration: Configuration) => {
    const own = explorer.ownIn(configuration)
    return (own ? [own] : [...offeredIn(configuration), ...explorer.timersIn(configuration)]).flatMap(one =>
      explorer.take(configuration, one)
    )
  }
  return {
    initialState: {
      name: 'started',
      input,
      start: explorer.begin(input, false),
      transitionsFrom,
      isCut: configuration => explorer.cut.has(configuration),
      memory: memory as InitialState['memory']
    },
    lost: explorer.lost,
    unmodelled: explorer.unmodelled
  }
}

/** The events that the active states name, without data. */
function bareEvents(configuration: Configuration): EventObject[] {
  const ends = Object.keys(livingIn(configuration)).flatMap(actorId =>
    ['done', 'error'].map(how => ({ type: `xstate.${how}.actor.${actorId}`, actorId }))
  )
  return [
    ...(configuration.chart.machine.events as string[])
      .filter(type => !type.startsWith('xstate.') && !type.includes('*'))
      .map(type => ({ type })),
    ...ends
  ]
}

/** Whether an event is no end of an actor, or of one that has not ended. */
function mayCome(event: EventObject, configuration: Configuration): boolean {
  const actor = endedIn(event)
  return actor === undefined || actor in livingIn(configuration)
}

function sourceOf(event: EventObject, awaited: readonly string[]): { readonly source?: string } {
  const actor = endedIn(event)
  if (actor !== undefined) return { source: actorSource(actor) }
  return awaited.includes(event.type) ? { source: `the event ${event.type}` } : {}
}

/** An event in words, with its data where others have its type. */
function saysOf(event: EventObject, all: readonly EventObject[]): string {
  const { type, ...data } = event
  return all.filter(other => other.type === type).length === 1 ? type : `${type} ${JSON.stringify(data)}`
}
