import type { EventObject } from 'xstate'
import type { Ending, StepSeen, NamedValue } from '../../../machines/properties/terms.ts'
import { isEndless } from '../../../runtime/work-port.ts'
import type { MoveResult } from '../plan/graph.ts'
import { configurationKey, type Model, ownMove, QUIET } from '../plan/model.ts'
import { type ChartMove, describeMove, receivedEvent, type WorkTurn } from '../plan/moves.ts'
import { activeStateText, Unmodelled } from '../plan/unmodelled.ts'
import { type Choice, guardsText, type OpenGuards } from './open-guards.ts'

/**
 * A configuration of a proof: a turn, and the times at which its timers may fire. `isOpen`: data that no case gives led
 * here, so the context is unknown and guards hold both ways. `played`: the turn of the chart alone, also if the words
 * of a question throw then.
 */
export type Configuration = WorkTurn & {
  readonly zone: Zone
  readonly isOpen: boolean
  readonly over?: Ending | undefined
  readonly updates: readonly NamedValue[]
  readonly played: WorkTurn
}

/** A move of a proof, with its result. */
export interface Transition extends EventObject {
  readonly type: ChartMove['type'] | 'cancel' | 'deadline'
  /** A clause: `brew ends with "a coffee" (if isLarge)`. Unique where it starts. */
  readonly says: string
  readonly from: string
  /** The move for the chart; none for a cancel and a deadline, which concern its task only. */
  readonly move?: ChartMove
  readonly choices: readonly Choice[]
  /**
   * Something that goes on by itself, so that it cannot be possible for ever without happening: an actor, a timer, the
   * client.
   */
  readonly source?: string
  readonly to: Configuration
}

/** A chart to explore: its start, and its moves. */
export interface InitialState {
  /** A sentence for the start: `opened by "a coffee"`. */
  readonly name: string
  readonly input: unknown
  readonly start: Configuration
  readonly transitionsFrom: (configuration: Configuration) => Transition[]
  /** Whether steps from a configuration are unknown, once its transitions are known. */
  readonly isCut: (configuration: Configuration) => boolean
  readonly memory: (context: unknown) => unknown
}

/** A move before it is made. `isGuess`: no case gives its data. */
export interface CandidateMove {
  readonly move: ChartMove
  readonly says: string
  readonly from: string
  readonly source?: string
  readonly isGuess: boolean
}

/** The updates that a chart sends in a turn. */
type UpdatesOf = (turn: WorkTurn, before?: WorkTurn, move?: ChartMove) => NamedValue[]

/** Makes moves of a chart, with guards that are evaluated, or hold both ways. */
export class Explorer {
  /** Walks on which the chart throws with data that no case gives, as lines to print. */
  readonly lost = new Set<string>()
  /** What the model does not know, as lines with the state, the actor and what to add. */
  readonly unmodelled = new Set<string>()
  /** Configurations from which steps are unknown. */
  readonly cut = new WeakSet<Configuration>()
  readonly #model: Model
  readonly #guards: OpenGuards
  readonly #updatesOf: UpdatesOf

  constructor(model: Model, guards: OpenGuards, updatesOf: UpdatesOf) {
    this.#model = model
    this.#guards = guards
    this.#updatesOf = updatesOf
  }

  begin(input: unknown, isOpen: boolean): Configuration {
    const turn = this.#model.begin(input)
    return {
      ...turn,
      played: turn,
      zone: zoneAfter(turn, undefined, undefined),
      isOpen,
      over: endingOf(turn),
      updates: this.#updatesOf(turn)
    }
  }

  /** The transitions of a move: one, or one for each combination of guards if data is unknown. */
  take(configuration: Configuration, { move, says, from, source, isGuess }: CandidateMove): Transition[] {
    const isOpen = configuration.isOpen || isGuess
    try {
      return this.#transitionsOf(
        configuration,
        { move, says, from, isGuess, ...(source !== undefined && { source }) },
        isOpen
      )
    } catch (error) {
      /* c8 ignore next -- a turn contains the chart's own errors */
      if (!(error instanceof Unmodelled)) throw error
      this.miss(configuration, `in ${activeStateText(configuration.chart)}, if ${says}: ${error.message}`)
      return []
    }
  }

  /** Notes that steps from a configuration are unknown. */
  miss(configuration: Configuration, line: string): void {
    this.unmodelled.add(line)
    this.cut.add(configuration)
  }

  #transitionsOf(
    configuration: Configuration,
    { move, says, from, source }: CandidateMove,
    isOpen: boolean
  ): Transition[] {
    const transitionTo = (to: Configuration, choices: readonly Choice[]): Transition => ({
      type: move.type,
      says: `${says}${choicesText(choices)}`,
      from,
      move,
      choices,
      to,
      ...(source !== undefined && { source })
    })
    if (!isOpen) return [transitionTo(this.#configurationAfter(configuration, move, false), [])]
    return this.#guards
      .bothWays(() => this.#configurationAfter(configuration, move, true))
      .flatMap(({ result, choices }) => {
        // An endless cycle is one whatever the data is.
        if (result.status !== 'error' || isEndless(result.error) || choices.some(({ throws }) => throws))
          return [transitionTo(result, choices)]
        this.lost.add(`${says}, with data that no case gives: ${String(result.error)}`)
        this.cut.add(configuration)
        return []
      })
  }

  /**
   * Whether a move is accepted, for some outcome of the guards if data is unknown. Also if a guard throws, since the
   * chart throws then.
   */
  can({ chart, isOpen }: Pick<Configuration, 'chart' | 'isOpen'>, event: EventObject, isGuess: boolean): boolean {
    const can = () => {
      try {
        return chart.can(event)
      } catch {
        return true
      }
    }
    return isOpen || isGuess ? this.#guards.bothWays(can).some(({ result }) => result) : can()
  }

  /** The event that the chart sent to itself and receives before any other. */
  ownIn(configuration: Configuration): CandidateMove | undefined {
    const move = ownMove(configuration)
    return move && { move, says: describeMove(move), from: 'itself', source: 'the chart itself', isGuess: false }
  }

  /** The timers that may fire next. */
  timersIn({ timers, zone }: Configuration): CandidateMove[] {
    return timers
      .filter(({ id }) => fired(zone, id))
      .map(timer => {
        const move: ChartMove = { type: 'timer', timer }
        return { move, says: describeMove(move), from: 'time', source: `the timer ${timer.id}`, isGuess: false }
      })
  }

  #configurationAfter(configuration: Configuration, move: ChartMove, isOpen: boolean): Configuration {
    const turn = this.#model.take(configuration, move)
    const after = { ...turn, played: turn, zone: zoneAfter(turn, configuration, move), isOpen }
    try {
      return { ...after, over: endingOf(turn), updates: this.#updatesOf(turn, configuration, move) }
    } catch (error) {
      if (error instanceof Unmodelled) throw error
      return {
        ...after,
        status: 'error',
        output: undefined,
        error,
        over: 'error',
        updates: [{ name: 'FAILED', value: { state: 'TASK_STATE_FAILED' } }]
      }
    }
  }
}

/** A task that ends whatever its chart does. */
export function endedBy(configuration: Configuration, over: 'canceled' | 'late', name: string): Configuration {
  return {
    ...configuration,
    status: 'stopped',
    ...QUIET,
    output: undefined,
    error: undefined,
    over,
    updates: [{ name, value: { state: `TASK_STATE_${name}` } }]
  }
}

/** Identifies a configuration. Unknown data does not distinguish two. */
export function configurationKeyOf(configuration: Configuration, memory: InitialState['memory']): string {
  const { chart, zone, isOpen, over } = configuration
  return configurationKey(configuration, isOpen || memory(chart.context), [over, zoneKey(zone)])
}

/** All that properties see of a start, or of a step. */
export function toStepSeen(
  step: MoveResult<Configuration, Transition> | undefined,
  before: Configuration | undefined,
  start: Configuration
): StepSeen {
  const after = step ? step.turn : start
  const { move } = step?.move ?? {}
  const received = move && before && after.hasMoved ? chartEventOf(before, move) : undefined
  const event = received ?? (step && !move ? { type: `task.${step.move.type}` } : undefined)
  return {
    event,
    ...(before && { before: before.chart }),
    after: after.chart,
    updates: after.updates,
    sent: after.sent,
    over: after.over
  }
}

/** The event that a move brings to the chart. */
function chartEventOf({ chart, asks }: Configuration, move: ChartMove): EventObject | undefined {
  if (move.type === 'own') return move.event
  if (move.type === 'timer') return move.timer.event
  const received = receivedEvent(chart, move, asks)
  /* c8 ignore next -- only legal moves are made */
  return 'event' in received ? received.event : undefined
}

function endingOf({ status }: WorkTurn): Ending | undefined {
  return status === 'done' || status === 'error' ? status : undefined
}

/** The timers of a turn that were set in it are other objects than those before. */
function zoneAfter({ timers }: WorkTurn, before: Configuration | undefined, move: ChartMove | undefined): Zone {
  const had = new Map(before?.timers.map(timer => [timer.id, timer]))
  const has = new Map(timers.map(timer => [timer.id, timer]))
  const passed = before && move?.type === 'timer' ? fired(before.zone, move.timer.id) : undefined
  let zone = passed ?? before?.zone ?? NO_TIMERS
  for (const id of zone.ids) if (!has.has(id)) zone = clear(zone, id)
  for (const [id, timer] of has) if (had.get(id) !== timer || !zone.ids.includes(id)) zone = set(zone, id, timer.dueMs)
  return elapsed(zone)
}

function choicesText(choices: readonly Choice[]): string {
  return choices.length === 0 ? '' : ` (if ${guardsText(choices)})`
}

/**
 * The orders in which pending timers can fire, exactly: a zone of timed automata (a difference bound matrix). Row and
 * column 0 are the present, the others for the timers' remaining times. An entry bounds the remaining time of its row
 * minus that of its column. Any time may pass between two steps. Timers that are due at the same moment fire in either
 * order.
 */
interface Zone {
  readonly ids: readonly string[]
  /** (ids + 1)² bounds in milliseconds. */
  readonly bounds: readonly (readonly number[])[]
}

/** No timer is pending. */
const NO_TIMERS: Zone = { ids: [], bounds: [[0]] }

/** The zone after a timer is set, in place of an earlier one with its id. */
function set(zone: Zone, id: string, delayMs: number): Zone {
  const { ids, bounds } = clear(zone, id)
  const wider = [...bounds.map(row => [...row, Infinity]), Array<number>(ids.length + 2).fill(Infinity)]
  const last = ids.length + 1
  bound(wider, last, last, 0)
  bound(wider, last, 0, delayMs)
  bound(wider, 0, last, -delayMs)
  return { ids: [...ids, id], bounds: tightened(wider) }
}

/** The zone without a timer. */
function clear({ ids, bounds }: Zone, id: string): Zone {
  const at = ids.indexOf(id) + 1
  if (at === 0) return { ids, bounds }
  const without = <T>(list: readonly T[]) => list.filter((_, i) => i !== at)
  return { ids: ids.filter(other => other !== id), bounds: without(bounds).map(without) }
}

/** The zone after any time that lets no timer fire. */
function elapsed({ ids, bounds }: Zone): Zone {
  const later = bounds.map((row, i) => row.map((limit, j) => (i === 0 && j > 0 ? 0 : limit)))
  return { ids, bounds: tightened(later) }
}

/** The zone at which a timer fires, without it; `undefined` if another always fires before. */
function fired({ ids, bounds }: Zone, id: string): Zone | undefined {
  const at = ids.indexOf(id) + 1
  const due = bounds.map(row => [...row])
  bound(due, at, 0, Math.min(0, Number(due[at]?.[0])))
  const tight = tightened(due)
  return tight.some((row, i) => Number(row[i]) < 0) ? undefined : clear({ ids, bounds: tight }, id)
}

/** The zone as text that is equal for equal zones. */
function zoneKey({ ids, bounds }: Zone): string {
  const order = ids.map((id, i) => ({ id, at: i + 1 })).toSorted((one, other) => (one.id < other.id ? -1 : 1))
  const places = [0, ...order.map(({ at }) => at)]
  return JSON.stringify([order.map(({ id }) => id), places.map(i => places.map(j => bounds[i]?.[j]))])
}

function bound(bounds: number[][], row: number, column: number, limit: number): void {
  const limits = bounds[row]
  if (limits) limits[column] = limit
}

/** The tightest equivalent bounds (Floyd and Warshall). */
function tightened(bounds: readonly (readonly number[])[]): number[][] {
  const tight = bounds.map(row => [...row])
  for (const [k, through] of tight.entries()) {
    for (const row of tight) {
      for (const [j, rest] of through.entries()) row[j] = Math.min(Number(row[j]), Number(row[k]) + rest)
    }
  }
  return tight
}
