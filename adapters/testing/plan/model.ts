import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine, EventObject } from 'xstate'
import { OWN_EVENT } from '../../../machines/xstate-names.ts'
import { type ChartEffect, openQuestion, pureStart, pureStep, sendsSnapshots } from '../../../runtime/work-port.ts'
import { activeStates } from '../../../runtime/xstate/persisted-snapshot.ts'
import { writtenChart } from '../../../runtime/xstate/written-chart.ts'
import { withActors } from '../run/stub-actors.ts'
import { actorAt, actorsIn, endedIn, withoutCounts, type PlacedActor } from './actors-in.ts'
import { receivedEvent, type ChartMove, type InnerMove, type OwnMove, type Timer, type WorkTurn } from './moves.ts'
import { replacedActor, StandIns, Unmodelled, unread } from './unmodelled.ts'

/** A chart as a pure function of moves. */
export interface Model<Move = ChartMove> {
  readonly begin: (input: unknown) => WorkTurn
  readonly take: (turn: WorkTurn, move: Move) => WorkTurn
}

/**
 * The model of a work: the author's chart with actors that never end by themselves, so that only moves end them. Custom
 * actions do not run. An error in the chart is a turn with the status `error`, in the previous state.
 */
export function modelOf(machine: AnyStateMachine): Model {
  const standIns = new StandIns()
  const model = withActors(machine, logic => standIns.for(logic))
  const follow = (step: () => WorkTurn) =>
    standIns.follow(() => {
      const turn = step()
      const actors = actorsIn(turn.chart)
      if (actors.some(({ isChart }) => isChart))
        throw new Unmodelled('it spawns a chart without a name, which is not walked. Name it: setup({ actors: { … } })')
      const sending = actors.find(({ actor }) => sendsSnapshots(actor))
      if (sending) throw unread(sending.id)
      return turn
    })
  const turnAfter = (
    turn: WorkTurn,
    event: EventObject,
    schedule: Schedule,
    { inbox = turn.inbox, ended = turn.ended }: Partial<WorkTurn> = {}
  ): WorkTurn => {
    try {
      const { snapshot: chart, effects } = pureStep(model, turn.chart, event, actor => ended.includes(actor))
      checkReplaced(
        chart,
        effects,
        Object.values(livingIn({ chart: turn.chart, ended })).map(({ actor }) => actor)
      )
      return turnOf(chart, effects, schedule, { nowMs: turn.nowMs, inbox, ended, asks: turn.asks })
    } catch (error) {
      if (error instanceof Unmodelled) throw error
      return { ...turn, ...QUIET, status: 'error', output: undefined, error, passed: [] }
    }
  }
  const take = (turn: WorkTurn, event: EventObject, schedule: Schedule, more?: Partial<WorkTurn>): WorkTurn => {
    const { chart } = turn
    return withoutChange(
      chart.context,
      () => turnAfter(turn, event, schedule, more),
      () => changedInPlace(chart, event)
    )
  }
  return {
    begin: input =>
      follow(() => {
        const { snapshot: chart, effects } = withoutChange(
          writtenChart(machine).context,
          () => pureStart(model, input),
          ({ snapshot }) => changedInPlace(snapshot, { type: OWN_EVENT.start })
        )
        checkReplaced(chart, effects, [])
        return turnOf(chart, effects, new Schedule([], {}), { nowMs: 0, inbox: [], ended: [], asks: undefined })
      }),
    take: (turn, move) =>
      follow(() => {
        const schedule = new Schedule(turn.timers, turn.cancelable)
        if (move.type === 'own') return take(turn, move.event, schedule, { inbox: turn.inbox.slice(1) })
        if (move.type === 'timer') {
          const { event, isSent } = move.timer
          schedule.fire(move.timer)
          if (!isSent) return take(turn, event, schedule)
          return {
            ...turn,
            ...QUIET,
            hasMoved: false,
            sent: [event],
            timers: schedule.timers,
            cancelable: schedule.cancelable,
            passed: []
          }
        }
        const received = receivedEvent(turn.chart, move, turn.asks)
        /* c8 ignore next -- only legal moves are made */
        if ('violations' in received) return turn
        const actor = actorAt(turn.chart, endedIn(received.event) ?? '')
        return take(turn, received.event, schedule, actor && { ended: [...turn.ended, actor] })
      })
  }
}

/** Throws Unmodelled if an actor runs that the chart does not have any more, and has not stopped. */
function checkReplaced(
  chart: AnyMachineSnapshot,
  effects: readonly ChartEffect[],
  before: readonly AnyActorRef[]
): void {
  if (chart.status !== 'active') return
  const of = (kind: 'spawn' | 'stop') => effects.flatMap(effect => (effect.kind === kind ? (effect.actor ?? []) : []))
  const known = [...actorsIn(chart).map(({ actor }) => actor), ...of('stop')]
  const gone = [...before, ...of('spawn')].find(actor => !known.includes(actor))
  if (gone) throw replacedActor(gone.id)
}

/** The result of a step. Throws this error if the step changed the context in place. */
export function withoutChange<T>(context: unknown, step: () => T, error: (result: T) => TypeError): T {
  const was = contextText(context)
  const result = step()
  if (contextText(context) !== was) throw error(result)
  return result
}

/** A context as text, to see whether it was changed in place; empty if JSON cannot express it. */
function contextText(context: unknown): string {
  try {
    return JSON.stringify(context)
  } catch {
    return ''
  }
}

/**
 * The error of a chart that changes its context in place: the walks that share it would see the change. Names the
 * actions that may do it.
 */
export function changedInPlace(chart: AnyMachineSnapshot, { type }: EventObject): TypeError {
  const active = activeStates(chart).map(({ id }) => id)
  const { states } = writtenChart(chart.machine as AnyStateMachine)
  const here = states.filter(({ id }) => active.includes(id))
  const transitions = here.flatMap(state => state.transitions.filter(({ event }) => event === type || event === ''))
  const around = type === OWN_EVENT.start ? here : transitions.flatMap(({ targets }) => targets)
  const actions = [...transitions.flatMap(({ actions }) => actions), ...around.flatMap(({ entry }) => entry)]
  const names = new Set(actions.flatMap(({ kind, name }) => (kind === 'inline' ? [] : [name])))
  return new TypeError(
    `The chart ${chart.machine.id} changes its context in place, in the state ${JSON.stringify(chart.value)} on ${type}, by ${[...names].join(' or ') || 'a guard'}. Give new values instead: assign({ list: ({ context }) => [...context.list, item] }).`
  )
}

/** No words, no events, no timers. */
export const QUIET = {
  hasMoved: true,
  words: [],
  sent: [],
  timers: [],
  cancelable: {},
  inbox: []
} satisfies Partial<WorkTurn>

/**
 * The model of a work on a clock: a move lasts until nothing is due any more. Throws RangeError if that never happens.
 */
export function clockedModelOf({ begin, take }: Model): Model<InnerMove> {
  const settled = (turns: readonly WorkTurn[], start: WorkTurn, endMs: number): WorkTurn => {
    const all = [...turns]
    let turn = start
    for (let next = nextOf(turn, endMs); next; next = nextOf(turn, endMs)) {
      const { event } = 'timer' in next ? next.timer : next
      turn = take('timer' in next ? { ...turn, nowMs: next.timer.dueMs } : turn, next)
      if (all.push(turn) > MOST_TURNS)
        throw new RangeError(
          `the chart goes on for ever without time passing. It sends itself ${JSON.stringify(event.type)} again and again.`
        )
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

/** The next event of the chart itself until then: one that it sent to itself, or a timer's. */
function nextOf(turn: WorkTurn, endMs: number): OwnMove | undefined {
  const own = ownMove(turn)
  if (own) return own
  const timer = nextTimer(turn)
  return timer && timer.dueMs <= endMs ? { type: 'timer', timer } : undefined
}

/** The event that the chart receives before any other: it or a chart among its actors has sent it. */
export function ownMove({ inbox: [event], ahead }: Pick<WorkTurn, 'inbox' | 'ahead'>): OwnMove | undefined {
  return event && { type: 'own', event, by: ahead?.[0]?.by }
}

/** The timer that fires next: of several at the same time the one that was set first. */
export function nextTimer({ timers }: WorkTurn): Timer | undefined {
  return timers.toSorted((one, other) => one.dueMs - other.dueMs)[0]
}

/** Identifies a configuration of a chart. `context`: the part of it that counts; `times`: those of its timers. */
export function configurationKey(
  { status, chart, ended, timers, cancelable, inbox, ahead = [], lastReceived, asks }: WorkTurn,
  context: unknown,
  times: unknown
): string {
  const actorsOf = (chart: AnyMachineSnapshot) =>
    byName(
      actorsIn(chart).map(
        ({ path, src, actor }) => [path, src, ended.includes(actor), shapeOf(actor.getSnapshot())] as const
      )
    )
  const pending = timers.map(({ id, event, isSent }) => [id, event, isSent] as const)
  const ids = Object.entries(cancelable).map(([sendId, { id }]) => [sendId, id] as const)
  const last = ahead.at(-1)?.turn
  return withoutCounts(
    JSON.stringify([
      status,
      chart.value,
      context,
      actorsOf(chart),
      lastReceived && actorsOf(lastReceived.chart),
      historyOf(chart),
      byName(pending),
      byName(ids),
      inbox,
      times,
      last && shapeOf(last.chart),
      asks
    ]),
    chart
  )
}

/** The parts in which two snapshots of an actor may differ. */
function shapeOf(snapshot: object): unknown {
  // Without the context that no case gives.
  const { status, value, context, output, error, historyValue }: Partial<AnyMachineSnapshot> = { ...snapshot }
  return [status, value, context, output, String(error), historyValue && historyOf({ historyValue })]
}

function historyOf({ historyValue }: Pick<AnyMachineSnapshot, 'historyValue'>): unknown {
  return byName(Object.entries(historyValue).map(([id, nodes]) => [id, nodes.map(node => node.id)] as const))
}

function byName(rows: readonly (readonly [name: string, ...unknown[]])[]): unknown {
  return rows.toSorted(([one], [other]) => (one < other ? -1 : 1))
}

function turnOf(
  chart: AnyMachineSnapshot,
  effects: readonly ChartEffect[],
  schedule: Schedule,
  { nowMs, inbox: before, ended: had, asks: open }: Pick<WorkTurn, 'nowMs' | 'inbox' | 'ended' | 'asks'>
): WorkTurn {
  const words: unknown[] = []
  const sent: EventObject[] = []
  const inbox = [...before]
  for (const effect of effects) {
    if (effect.kind === 'emit') words.push(effect.event)
    if (effect.kind === 'cancel') schedule.cancel(effect.id)
    if (effect.kind !== 'raise' && effect.kind !== 'send') continue
    const { event, delayMs, id } = effect
    const isSent = effect.kind === 'send' && !isRoot(effect.to)
    if (delayMs !== undefined) schedule.set({ event, dueMs: nowMs + (delayMs > 0 ? delayMs : 0), sendId: id, isSent })
    else if (effect.kind === 'send') (isSent ? sent : inbox).push(event)
  }
  const { status, output, error } = chart
  const asks = openQuestion(chart, open)?.key
  const ended = had.filter(actor => actorsIn(chart).some(one => one.actor === actor))
  const over = status === 'active' ? {} : { timers: [], cancelable: {}, inbox: [] }
  return {
    status,
    output,
    error,
    chart,
    hasMoved: true,
    asks,
    words,
    sent,
    timers: schedule.timers,
    cancelable: schedule.cancelable,
    inbox,
    ended,
    ...over,
    nowMs,
    passed: []
  } as unknown as WorkTurn
}

/** The actors that may still end or send, by path. Charts that are walked do so by themselves. */
export function livingIn({ chart, ended }: Pick<WorkTurn, 'chart' | 'ended'>): Readonly<Record<string, PlacedActor>> {
  const living = actorsIn(chart).filter(
    ({ actor, owner, isChart }) =>
      !isChart && !ended.includes(actor) && owner.status === 'active' && actor.getSnapshot().status === 'active'
  )
  return Object.fromEntries(living.map(one => [one.path, one]))
}

/** Values that differ for each start of an actor, by path. */
export function startsIn({ chart, births }: Pick<WorkTurn, 'chart' | 'births'>): Readonly<Record<string, unknown>> {
  return births ?? Object.fromEntries(actorsIn(chart).map(({ path, actor }) => [path, actor]))
}

/** Whether an actor is the chart's own: each step has another one, but only they have no parent. */
function isRoot({ _parent }: AnyActorRef): boolean {
  return _parent === undefined
}

/** The delayed events of a chart, as XState's scheduler has them. */
export class Schedule {
  timers: readonly Timer[]
  cancelable: Readonly<Record<string, Timer>>

  constructor(timers: WorkTurn['timers'], cancelable: WorkTurn['cancelable']) {
    this.timers = timers
    this.cancelable = cancelable
  }

  set(given: Omit<Timer, 'id'>): void {
    const { event, sendId, route } = given
    const name = keyOf(sendId ?? event.type, route?.from)
    const isUsed = (id: string) => this.timers.some(timer => timer.id === id)
    let id = name
    for (let number = 2; isUsed(id); number += 1) id = `${name} ${number}`
    const timer: Timer = { id, ...given }
    this.timers = [...this.timers, timer]
    if (sendId !== undefined) this.cancelable = { ...this.cancelable, [keyOf(sendId, route?.from)]: timer }
  }

  /** Cancels the timer of an actor; without a path, of the chart itself. */
  cancel(sendId: string, from?: string): void {
    const key = keyOf(sendId, from)
    this.#drop(this.cancelable[key])
    this.#forget(key)
  }

  fire(timer: Timer): void {
    this.#drop(timer)
    if (timer.sendId !== undefined) this.#forget(keyOf(timer.sendId, timer.route?.from))
  }

  /**
   * Drops the timers of an actor that stops. Of those that share an id XState cancels the last one only; the others
   * reach others. `isOf`: whether a timer with its path is its own, and not that of an actor that replaced it.
   */
  stop(path: string, isOf: (timer: Timer) => boolean): void {
    for (const timer of Object.values(this.cancelable))
      if (timer.route?.from === path && isOf(timer)) this.cancel(String(timer.sendId), path)
    this.timers = this.timers.filter(timer => {
      const { sendId, route } = timer
      return !isOf(timer) || (route?.to !== path && (route?.from !== path || sendId !== undefined))
    })
  }

  #drop(dropped: Timer | undefined): void {
    this.timers = this.timers.filter(timer => timer !== dropped)
  }

  #forget(key: string): void {
    this.cancelable = Object.fromEntries(Object.entries(this.cancelable).filter(([id]) => id !== key))
  }
}

/** The name of a timer. Those of actors have the actor's path before it. */
function keyOf(id: string, from = ''): string {
  return from === '' ? id : `${from}/${id}`
}
