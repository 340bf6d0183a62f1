import { initialTransition, transition, type AnyMachineSnapshot, type AnyStateMachine, type EventObject, type ExecutableActionsFrom, type Snapshot } from 'xstate'
import { endless, withActors } from '../run/stub-actors.ts'
import { heardBy, type ChartMove, type InnerMove } from './moves.ts'

/** A pending delayed event. */
export interface Timer {
  /** Unique among pending timers: the author's id, or the type of the event, with a number if that is taken. */
  readonly id: string
  /** The id of `cancel`, if it has one. */
  readonly sendId?: string | undefined
  readonly event: EventObject
  /** Milliseconds since the start of the path. */
  readonly dueMs: number
}

/** The state of a work's chart after one move, from XState's pure functions, with the effects of the move. */
export type Turn = Snapshot<unknown> & {
  readonly chart: AnyMachineSnapshot
  /** The events that it emitted. */
  readonly words: readonly unknown[]
  /** The events that it sent to actors. */
  readonly sent: readonly EventObject[]
  readonly timers: readonly Timer[]
  /**
   * The timers that `cancel` finds, by `sendId`. As in XState a second timer with an id takes the id from the first, which then fires in any
   * case. After either has fired the id finds none.
   */
  readonly cancelable: Readonly<Record<string, Timer>>
  readonly nowMs: number
  /** The turns before this one that the same move led to: of timers that are due with it. */
  readonly passed: readonly Turn[]
}

/** A chart as a pure function of moves. */
export interface Model<Move = ChartMove> {
  readonly begin: (input: unknown) => Turn
  readonly take: (turn: Turn, move: Move) => Turn
}

type Actions = readonly ExecutableActionsFrom<AnyStateMachine>[]

/**
 * The model of a work: the author's chart with actors that never end by themselves, so that only moves end them. Custom actions do not
 * run. An error in the chart is a turn with the status `error`, in the previous state.
 */
export function modelOf(machine: AnyStateMachine): Model {
  const model = withActors(machine, endless)
  const take = (turn: Turn, event: EventObject, schedule: Schedule): Turn => {
    try {
      const [chart, actions] = transition(model, turn.chart, event)
      return turnOf(chart, actions, schedule, turn.nowMs)
    } catch (error) {
      return { ...turn, status: 'error', output: undefined, error, words: [], sent: [], timers: [], cancelable: {}, passed: [] }
    }
  }
  return {
    begin: input => {
      const [chart, actions] = initialTransition(model, input as never)
      return turnOf(chart, actions, new Schedule([], {}), 0)
    },
    take: (turn, move) => {
      const schedule = new Schedule(turn.timers, turn.cancelable)
      if (move.type === 'timer') {
        schedule.fire(move.timer)
        return take(turn, move.timer.event, schedule)
      }
      const heard = heardBy(turn.chart, move)
      /* c8 ignore next -- only legal moves are made */
      if ('violations' in heard) return turn
      return take(turn, heard.event, schedule)
    }
  }
}

/** The model of a work on a clock: a move lasts until nothing is due any more. Throws RangeError if that never happens. */
export function clockedModelOf(machine: AnyStateMachine): Model<InnerMove> {
  const { begin, take } = modelOf(machine)
  const settled = (turns: readonly Turn[], start: Turn, endMs: number): Turn => {
    const all = [...turns]
    let turn = start
    for (let timer = nextTimer(turn); timer && timer.dueMs <= endMs; timer = nextTimer(turn)) {
      turn = take({ ...turn, nowMs: timer.dueMs }, { type: 'timer', timer })
      if (all.push(turn) > MOST_TURNS) throw new RangeError(`the chart goes on for ever by itself, without time passing: it receives ${timer.event.type} again and again.`)
    }
    return { ...turn, passed: all.slice(0, -1) }
  }
  return {
    begin: input => {
      const turn = begin(input)
      return settled([turn], turn, turn.nowMs)
    },
    take: (before, move) => {
      if (move.type === 'time') return settled([], before, before.nowMs + move.delayMs)
      const turn = take(before, move)
      return settled([turn], turn, turn.nowMs)
    }
  }
}

/** The maximum number of turns that a move leads to. */
const MOST_TURNS = 1000

/** The timer that fires next: of several at the same time the one that was set first. */
export function nextTimer({ timers }: Turn): Timer | undefined {
  return timers.toSorted((one, other) => one.dueMs - other.dueMs)[0]
}

/** The pending timers of a turn, as they tell configurations apart, without their times. */
export function pendingIn({ timers, cancelable }: Turn): unknown {
  return [byName(timers.map(({ id, event }) => [id, event])), byName(Object.entries(cancelable).map(([sendId, { id }]) => [sendId, id]))]
}

function byName(rows: readonly (readonly [name: string, value: unknown])[]): unknown {
  return rows.toSorted(([one], [other]) => (one < other ? -1 : 1))
}

function turnOf(chart: AnyMachineSnapshot, actions: Actions, schedule: Schedule, nowMs: number): Turn {
  const words: unknown[] = []
  const sent: EventObject[] = []
  for (const { type, params } of actions as readonly { type: string; params: Record<string, unknown> }[]) {
    if (type === 'xstate.emit') words.push(params['event'])
    if (type === 'xstate.sendTo') sent.push(params['event'] as EventObject)
    if (type === 'xstate.cancel') schedule.cancel(String(params['sendId']))
    if (type === 'xstate.raise' && typeof params['delay'] === 'number') schedule.set(params['event'] as EventObject, nowMs + (params['delay'] > 0 ? params['delay'] : 0), params['id'] as string | undefined)
  }
  const { status, output, error } = chart
  const { timers, cancelable } = status === 'active' ? schedule : new Schedule([], {})
  return { status, output, error, chart, words, sent, timers, cancelable, nowMs, passed: [] } as Turn
}

/** The delayed events of a chart, as XState's scheduler has them. */
class Schedule {
  timers: readonly Timer[]
  cancelable: Readonly<Record<string, Timer>>

  constructor(timers: Turn['timers'], cancelable: Turn['cancelable']) {
    this.timers = timers
    this.cancelable = cancelable
  }

  set(event: EventObject, dueMs: number, sendId: string | undefined): void {
    const name = sendId ?? event.type
    const isTaken = (id: string) => this.timers.some(timer => timer.id === id)
    let id = name
    for (let number = 2; isTaken(id); number += 1) id = `${name} ${number}`
    const timer: Timer = { id, event, dueMs, sendId }
    this.timers = [...this.timers, timer]
    if (sendId !== undefined) this.cancelable = { ...this.cancelable, [sendId]: timer }
  }

  cancel(sendId: string): void {
    const timer = this.cancelable[sendId]
    this.#drop(timer)
    this.#forget(sendId)
  }

  fire(timer: Timer): void {
    this.#drop(timer)
    this.#forget(timer.sendId)
  }

  #drop(dropped: Timer | undefined): void {
    this.timers = this.timers.filter(timer => timer !== dropped)
  }

  #forget(sendId: string | undefined): void {
    this.cancelable = Object.fromEntries(Object.entries(this.cancelable).filter(([id]) => id !== sendId))
  }
}
