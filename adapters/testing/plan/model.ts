import { initialTransition, type AnyActorRef, type AnyMachineSnapshot, type AnyStateMachine, type EventObject, type ExecutableActionsFrom, type Snapshot } from 'xstate'
import { activeStates } from '../../../runtime/xstate/persisted-snapshot.ts'
import { pureStep } from '../../../runtime/xstate/pure-step.ts'
import { endless, withActors } from '../run/stub-actors.ts'
import { endedIn, heardBy, type ChartMove, type InnerMove, type OwnMove } from './moves.ts'

/** A pending delayed event. */
export interface Timer {
  /** Unique among pending timers: the author's id, or the type of the event, with a number if that is taken. */
  readonly id: string
  /** The id of `cancel`, if it has one. */
  readonly sendId?: string | undefined
  readonly event: EventObject
  /** Milliseconds since the start of the path. */
  readonly dueMs: number
  /** Whether it goes to another actor. */
  readonly isSent: boolean
}

/** The state of a work's chart after one move, from XState's pure functions, with the effects of the move. */
export type Turn = Snapshot<unknown> & {
  readonly chart: AnyMachineSnapshot
  /** The events that it emitted. */
  readonly words: readonly unknown[]
  /** Whether the chart received an event, or has begun; else a delayed event of its own went to an actor. */
  readonly hasMoved: boolean
  /** The events that it sent to actors. */
  readonly sent: readonly EventObject[]
  readonly timers: readonly Timer[]
  /**
   * The timers that `cancel` finds, by `sendId`. As in XState a second timer with an id takes the id from the first, which then fires in any
   * case. After either has fired the id finds none.
   */
  readonly cancelable: Readonly<Record<string, Timer>>
  /** The events that it sent to itself without a delay, which it receives before any other. */
  readonly inbox: readonly EventObject[]
  /** The actors of the chart that have ended. It keeps them until it leaves the state that invoked them. */
  readonly ended: readonly AnyActorRef[]
  readonly nowMs: number
  /** The turns before this one that the same move led to: of events that it sent to itself, and of timers that are due with it. */
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
  const taken = (turn: Turn, event: EventObject, schedule: Schedule, { inbox = turn.inbox, ended = turn.ended }: Partial<Turn> = {}): Turn => {
    try {
      const [chart, actions] = pureStep(model, turn.chart, event, actor => ended.includes(actor))
      return turnOf(chart, actions, schedule, { nowMs: turn.nowMs, inbox, ended })
    } catch (error) {
      return { ...turn, ...QUIET, status: 'error', output: undefined, error, passed: [] }
    }
  }
  const take = (turn: Turn, event: EventObject, schedule: Schedule, more?: Partial<Turn>): Turn => {
    const { context } = turn.chart
    const was = contextText(context)
    const after = taken(turn, event, schedule, more)
    if (contextText(context) !== was) throw changedInPlace(turn.chart, event)
    return after
  }
  return {
    begin: input => {
      const { context } = machine.config
      const was = contextText(context)
      const [chart, actions] = initialTransition(model, input as never)
      if (contextText(context) !== was) throw changedInPlace(chart, { type: BEGINS })
      return turnOf(chart, actions, new Schedule([], {}), { nowMs: 0, inbox: [], ended: [] })
    },
    take: (turn, move) => {
      const schedule = new Schedule(turn.timers, turn.cancelable)
      if (move.type === 'own') return take(turn, move.event, schedule, { inbox: turn.inbox.slice(1) })
      if (move.type === 'timer') {
        const { event, isSent } = move.timer
        schedule.fire(move.timer)
        if (!isSent) return take(turn, event, schedule)
        return { ...turn, ...QUIET, hasMoved: false, sent: [event], timers: schedule.timers, cancelable: schedule.cancelable, passed: [] }
      }
      const heard = heardBy(turn.chart, move)
      /* c8 ignore next -- only legal moves are made */
      if ('violations' in heard) return turn
      const actor = actorEndedBy(heard.event, turn.chart)
      return take(turn, heard.event, schedule, actor && { ended: [...turn.ended, actor] })
    }
  }
}

/** A context as text, to see whether it was changed in place; empty if JSON cannot express it. */
function contextText(context: unknown): string {
  try {
    return JSON.stringify(context)
  } catch {
    return ''
  }
}

/** The error of a chart that changes its context in place: the walks that share it would see the change. Names the actions that may do it. */
function changedInPlace(chart: AnyMachineSnapshot, { type }: EventObject): TypeError {
  const active = activeStates(chart)
  const transitions = active.flatMap(node => [...(node.transitions.get(type) ?? []), ...(node.always ?? [])])
  const around = type === BEGINS ? active : transitions.flatMap(({ target = [] }) => target)
  const actions = [...transitions.flatMap(({ actions }) => actions), ...around.flatMap(({ entry }) => entry)]
  const names = new Set(actions.flatMap(action => (typeof action === 'string' ? action : 'type' in action ? action.type : [])))
  return new TypeError(`The chart ${chart.machine.id} changes its context in place, in the state ${JSON.stringify(chart.value)} on ${type}, by ${[...names].join(' or ') || 'a guard'}. Give new values instead: assign({ list: ({ context }) => [...context.list, item] }).`)
}

const BEGINS = 'xstate.init'

/** Nothing is told, sent, or waits. */
export const QUIET = { hasMoved: true, words: [], sent: [], timers: [], cancelable: {}, inbox: [] } satisfies Partial<Turn>

/** The model of a work on a clock: a move lasts until nothing is due any more. Throws RangeError if that never happens. */
export function clockedModelOf(machine: AnyStateMachine): Model<InnerMove> {
  const { begin, take } = modelOf(machine)
  const settled = (turns: readonly Turn[], start: Turn, endMs: number): Turn => {
    const all = [...turns]
    let turn = start
    for (let next = nextOf(turn, endMs); next; next = nextOf(turn, endMs)) {
      const { event } = 'timer' in next ? next.timer : next
      turn = take('timer' in next ? { ...turn, nowMs: next.timer.dueMs } : turn, next)
      if (all.push(turn) > MOST_TURNS) throw new RangeError(`the chart goes on for ever without time passing. It sends itself ${JSON.stringify(event.type)} again and again.`)
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
export const MOST_TURNS = 1000

/** What the chart receives next by itself until then: an event that it sent to itself, or a timer's. */
function nextOf(turn: Turn, endMs: number): OwnMove | undefined {
  const [event] = turn.inbox
  if (event) return { type: 'own', event }
  const timer = nextTimer(turn)
  return timer && timer.dueMs <= endMs ? { type: 'timer', timer } : undefined
}

/** The timer that fires next: of several at the same time the one that was set first. */
export function nextTimer({ timers }: Turn): Timer | undefined {
  return timers.toSorted((one, other) => one.dueMs - other.dueMs)[0]
}

/** Identifies a configuration of a chart. `context`: the part of it that counts; `times`: those of its timers. */
export function configurationKey({ status, chart, ended, timers, cancelable, inbox }: Turn, context: unknown, times: unknown): string {
  // Those with an id by it, then those that XState counts, in the order of their count.
  const children = actorsOf(chart).toSorted((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1))
  const actors = children.map(actor => [actor.id, actor.src, ended.includes(actor)] as const)
  const history = Object.entries(chart.historyValue).map(([id, nodes]) => [id, nodes.map(node => node.id)] as const)
  const pending = timers.map(({ id, event, isSent }) => [id, event, isSent] as const)
  const ids = Object.entries(cancelable).map(([sendId, { id }]) => [sendId, id] as const)
  const text = JSON.stringify([status, chart.value, context, actors, byName(history), byName(pending), byName(ids), inbox, times])
  const counted = children.filter(({ id }) => COUNTED.test(id))
  return counted.reduce((text, { id }, i) => text.replaceAll(`"${id}"`, `"x ${i}"`), text)
}

const COUNTED = /^x:\d+$/

function orderOf({ id }: AnyActorRef): string {
  return COUNTED.test(id) ? `x ${id.padStart(20)}` : `a ${id}`
}

function byName(rows: readonly (readonly [name: string, ...unknown[]])[]): unknown {
  return rows.toSorted(([one], [other]) => (one < other ? -1 : 1))
}

function turnOf(chart: AnyMachineSnapshot, actions: Actions, schedule: Schedule, { nowMs, inbox: before, ended: had }: Pick<Turn, 'nowMs' | 'inbox' | 'ended'>): Turn {
  const words: unknown[] = []
  const sent: EventObject[] = []
  const inbox = [...before]
  for (const { type, params } of actions as readonly { type: string; params?: Sent }[]) {
    if (!params) continue
    const { event, delay, id } = params
    const isToItself = type === 'xstate.raise' || (type === 'xstate.sendTo' && isRoot(params.to))
    if (type === 'xstate.emit') words.push(event)
    if (type === 'xstate.cancel') schedule.cancel(String(params.sendId))
    if ((isToItself || type === 'xstate.sendTo') && typeof delay === 'number') schedule.set({ event, dueMs: nowMs + (delay > 0 ? delay : 0), sendId: id, isSent: !isToItself })
    else if (type === 'xstate.sendTo') (isToItself ? inbox : sent).push(event)
  }
  const { status, output, error } = chart
  const ended = had.filter(actor => actorsOf(chart).includes(actor as Child))
  const over = status === 'active' ? {} : { timers: [], cancelable: {}, inbox: [] }
  return { status, output, error, chart, hasMoved: true, words, sent, timers: schedule.timers, cancelable: schedule.cancelable, inbox, ended, ...over, nowMs, passed: [] } as unknown as Turn
}

type Child = AnyActorRef & { readonly src: string }

/** The actors of a chart that may still end or send, by id. */
export function livingIn({ chart, ended }: Pick<Turn, 'chart' | 'ended'>): Readonly<Record<string, Child>> {
  return Object.fromEntries(actorsOf(chart).filter(actor => !ended.includes(actor)).map(actor => [actor.id, actor]))
}

/** The actor of a chart whose end this event is. */
export function actorEndedBy(event: EventObject, chart: AnyMachineSnapshot): AnyActorRef | undefined {
  const id = endedIn(event)
  return actorsOf(chart).find(actor => actor.id === id)
}

function actorsOf({ children }: AnyMachineSnapshot): Child[] {
  return Object.values(children as object)
}

/** The parameters of XState's actions that have an event. */
interface Sent {
  readonly event: EventObject
  readonly to: AnyActorRef
  readonly delay?: number
  readonly id?: string
  readonly sendId?: string
}

/** Whether an actor is the chart's own: each step has another one, but only they have no parent. */
function isRoot({ _parent }: AnyActorRef): boolean {
  return _parent === undefined
}

/** The delayed events of a chart, as XState's scheduler has them. */
class Schedule {
  timers: readonly Timer[]
  cancelable: Readonly<Record<string, Timer>>

  constructor(timers: Turn['timers'], cancelable: Turn['cancelable']) {
    this.timers = timers
    this.cancelable = cancelable
  }

  set(given: Omit<Timer, 'id'>): void {
    const { event, sendId } = given
    const name = sendId ?? event.type
    const isTaken = (id: string) => this.timers.some(timer => timer.id === id)
    let id = name
    for (let number = 2; isTaken(id); number += 1) id = `${name} ${number}`
    const timer: Timer = { id, ...given }
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
