import type { Actor, AnyActorLogic, AnyActorRef, AnyMachineSnapshot, AnyStateMachine, EventObject } from 'xstate'
import { OWN_EVENT } from '../../../machines/xstate-names.ts'
import {
  directedActor,
  type Director,
  type ChartEffect,
  mayAskTwice,
  openQuestion
} from '../../../runtime/work-port.ts'
import { isMachine } from '../../../runtime/xstate/persisted-snapshot.ts'
import { writtenChart } from '../../../runtime/xstate/written-chart.ts'
import { endActor, showSnapshot } from '../run/stub-actors.ts'
import { actorAt, actorsIn, endedIn, pathTo, shownIn } from './actors-in.ts'
import type { AllCases } from './cases.ts'
import { changedInPlace, modelOf, MOST_TURNS, QUIET, Schedule, withoutChange, type Model } from './model.ts'
import {
  eventOf,
  receivedEvent,
  type ChartMove,
  type OutsideMove,
  type Timer,
  type WorkTurn,
  type Ahead
} from './moves.ts'
import { replacedActor, StandIns, Unmodelled } from './unmodelled.ts'

/** The model of an agent's work. Charts among its actors are walked too, and snapshots of actors are events. */
export function modelWith(machine: AnyStateMachine, { events }: Pick<AllCases, 'events'>): Model {
  const readings = new Set(Object.values(events).flatMap(event => shownIn(event) ?? []))
  const hasCharts = Object.values(machine.implementations.actors as Readonly<Record<string, AnyActorLogic>>).some(
    isMachine
  )
  const isActed =
    hasCharts ||
    readings.size > 0 ||
    writtenChart(machine).states.some(({ invoke }) => invoke.some(({ onSnapshot }) => onSnapshot.length > 0))
  return isActed ? actedModelOf(machine, new StandIns(readings)) : modelOf(machine)
}

/**
 * The model of a work with charts among its actors, which are walked as what they are: each step is one of XState's own
 * actors, restored from the turn before. All other actors only end, or have a snapshot, by moves. Custom actions do not
 * run.
 */
function actedModelOf(machine: AnyStateMachine, standIns: StandIns): Model {
  return {
    begin: input =>
      withoutChange(
        writtenChart(machine).context,
        () =>
          standIns.follow(() =>
            new Act(machine, standIns, undefined, { input }).play(true, ({ root }) => void root.start())
          ),
        ({ chart }) => changedInPlace(chart, { type: OWN_EVENT.start })
      ),
    take: (turn, move) => {
      if (move.type === 'own') return stepped(turn)
      const { chart } = turn
      return withoutChange(
        chart.context,
        () =>
          standIns.follow(() => new Act(machine, standIns, turn, { snapshot: persisted(machine, chart) }).take(move)),
        () => changedInPlace(chart, move.type === 'timer' ? move.timer.event : eventOf(move))
      )
    }
  }
}

/** The first of the turns ahead. */
function stepped({ ahead: [next, ...ahead] = [], nowMs }: WorkTurn): WorkTurn {
  return { ...(next as Ahead).turn, nowMs, ahead, inbox: inboxOf(ahead) }
}

/**
 * An event that the chart received, and its reaction. Only the chart's last turn in an act has the live actors, the
 * others a copy.
 */
interface Frame extends Pick<WorkTurn, 'words' | 'sent' | 'timers' | 'cancelable' | 'hasMoved' | 'births' | 'asks'> {
  readonly snapshot: { readonly status: string }
}

/** One step of the actors of a chart. */
class Act implements Director {
  readonly root: Actor<AnyStateMachine>
  readonly #machine: AnyStateMachine
  readonly #standIns: StandIns
  readonly #before: WorkTurn | undefined
  readonly #schedule: Schedule
  readonly #born = new Map<AnyActorRef, number>()
  readonly #running = new Set<AnyActorRef>()
  /** The sender and the receiver of each timer that was set in this step. */
  readonly #set = new Map<Timer, readonly AnyActorRef[]>()
  readonly #paths = new Map<AnyActorRef, string>()
  readonly #received: Omit<Ahead, 'turn'>[] = []
  readonly #frames: Frame[] = []
  /** The keys of its open questions; the last one is open now. */
  readonly #questions: (string | undefined)[]
  #words: unknown[] = []
  #sent: EventObject[] = []
  #births = 0
  #delivered = 0
  #endless: string | undefined
  #isDirect = true
  /** Whether the actors of the turn before are being made again: then nothing that they do is new. */
  #isBack = false

  constructor(
    machine: AnyStateMachine,
    standIns: StandIns,
    before: WorkTurn | undefined,
    options: { readonly input?: unknown; readonly snapshot?: unknown }
  ) {
    this.#machine = machine
    this.#standIns = standIns
    this.#before = before
    this.#schedule = new Schedule(before?.timers ?? [], before?.cancelable ?? {})
    this.#questions = [before?.asks]
    this.#isBack = before !== undefined
    this.root = directedActor(machine, options, this)
    this.root.subscribe({ error: () => {} })
    if (!before) return
    this.root.start()
    this.#isBack = false
    const { births = {} } = before
    this.#births = Math.max(0, ...Object.values(births))
    for (const { path, actor } of actorsIn(this.root.getSnapshot())) this.#born.set(actor, Number(births[path]))
  }

  take(move: ChartMove): WorkTurn {
    if (move.type === 'timer') return this.#fire(move)
    const chart = this.root.getSnapshot() as AnyMachineSnapshot
    const received = receivedEvent(chart, move as OutsideMove, this.#before?.asks)
    /* c8 ignore next -- only legal moves are made */
    if ('violations' in received) return this.play(true, () => {})
    const { event, question: { actor } = {} } = received
    if (actor) return this.play(false, () => actor.send(event))
    const [ended, shown] = [move.type === 'end' ? move.actor : endedIn(event), shownIn(event)]
    const isOwn = (path: string) => !path.includes('/')
    if (ended !== undefined) return this.play(isOwn(ended), () => endActor(actorAt(chart, ended) as AnyActorRef, event))
    if (shown !== undefined) return this.play(isOwn(shown), () => showSnapshot(actorAt(chart, shown), event))
    return this.play(true, () => this.root.send(event))
  }

  #fire({ timer }: Extract<ChartMove, { type: 'timer' }>): WorkTurn {
    const { event, route } = timer
    const chart = this.root.getSnapshot() as AnyMachineSnapshot
    const target = route?.to ? actorAt(chart, route.to) : this.root
    this.#schedule.fire(timer)
    if (route?.from === '' && route.to !== '') this.#sent.push(event)
    return this.play(route?.to === '', () => target?.send(event))
  }

  /** Lets the actors act. `isDirect`: whether the chart itself receives the event first. */
  play(isDirect: boolean, act: (self: Act) => void): WorkTurn {
    this.#isDirect = isDirect
    act(this)
    if (this.#endless !== undefined)
      throw new Unmodelled(`the chart and its actors send each other "${this.#endless}" for ever without time passing`)
    this.#checkRunning()
    this.#checkQuestions()
    const { status, error } = this.root.getSnapshot() as AnyMachineSnapshot
    const isThrown = status === 'error' && this.#frames.at(-1)?.snapshot.status !== 'error'
    if (this.#frames.length === 0 && !isThrown) this.#frames.push(this.#frame(false))
    const turns = this.#frames.map((frame, i) => this.#turnOf(frame, i === this.#frames.length - 1 && !isThrown))
    const all = isThrown ? [...turns, this.#thrown(error, turns.at(-1))] : turns
    const [first] = all as [WorkTurn]
    const ahead = all.slice(1).map((turn, i): Ahead => ({ turn, ...this.#receivedIn(i + 1) }))
    return {
      ...first,
      ahead,
      inbox: inboxOf(ahead),
      ...(!first.hasMoved &&
        this.#before &&
        !mayAskTwice(this.#machine) && { lastReceived: this.#before.lastReceived ?? this.#before })
    }
  }

  /**
   * Throws Unmodelled if an actor runs that no chart has any more. A chart that fails leaves its actors running, and
   * nothing receives their events.
   */
  #checkRunning(): void {
    const known = new Set(actorsIn(this.root.getSnapshot() as AnyMachineSnapshot).map(({ actor }) => actor))
    for (const actor of this.#running) {
      const { _parent: parent } = actor
      if (parent && !known.has(actor) && isActive(actor) && isActive(parent)) throw replacedActor(actor.id)
    }
  }

  /**
   * Throws Unmodelled if a question of charts among the actors is open after no turn: the client gets it all the same.
   */
  #checkQuestions(): void {
    const shown = [this.#before?.asks, ...this.#frames.map(({ asks }) => asks), this.#questions.at(-1)]
    if (this.#questions.some(key => !shown.includes(key)))
      throw new Unmodelled('charts among its actors ask several questions, one after the other, without time passing')
  }

  cast(_: AnyActorRef, logic: AnyActorLogic): AnyActorLogic {
    return isMachine(logic) ? logic : this.#standIns.for(logic)
  }

  acts(actor: AnyActorRef, effect: ChartEffect): boolean {
    if (actor === this.root && effect.kind === 'emit') this.#words.push(effect.event)
    if (actor === this.root && effect.kind === 'send' && effect.to !== actor && effect.delayMs === undefined)
      this.#sent.push(effect.event)
    return effect.kind !== 'custom' && effect.kind !== 'log'
  }

  delivers(source: AnyActorRef | undefined, target: AnyActorRef, event: EventObject): boolean {
    if (this.#isBack || target.getSnapshot().status !== 'active') return false
    if ((this.#delivered += 1) > MOST_TURNS) {
      this.#endless ??= event.type
      return false
    }
    if (target === this.root) {
      if (!this.#isDirect && this.#frames.length === 0) this.#frames.push(this.#frame(false))
      this.#received.push({ event, by: source && source !== target ? source.id : undefined })
    }
    return true
  }

  took(actor: AnyActorRef): void {
    this.#running.add(actor)
    if (!this.#isBack) this.#questions.push(openQuestion(this.root.getSnapshot(), this.#questions.at(-1))?.key)
    if (actor === this.root && !this.#isBack) this.#frames.push(this.#frame(true))
  }

  schedule(source: AnyActorRef, target: AnyActorRef, event: EventObject, delayMs: number, sendId?: string): void {
    const route = { from: this.#pathOf(source), to: this.#pathOf(target) }
    this.#schedule.set({
      event,
      dueMs: (this.#before?.nowMs ?? 0) + (delayMs > 0 ? delayMs : 0),
      sendId,
      isSent: target !== this.root,
      route
    })
    const timer = this.#schedule.timers.at(-1)
    if (timer) this.#set.set(timer, [source, target])
  }

  cancel(source: AnyActorRef, sendId: string): void {
    this.#schedule.cancel(sendId, this.#pathOf(source))
  }

  cancelAll(source: AnyActorRef): void {
    this.#running.delete(source)
    this.#schedule.stop(this.#pathOf(source), timer => this.#set.get(timer)?.includes(source) ?? true)
  }

  /** The path of an actor. One that has just been stopped is no child any more. */
  #pathOf(actor: AnyActorRef): string {
    const known = this.#paths.get(actor)
    if (known !== undefined || actor === this.root || !actor._parent) return known ?? ''
    const siblings = (actor._parent.getSnapshot() as AnyMachineSnapshot).children as Readonly<
      Record<string, AnyActorRef>
    >
    const id = Object.keys(siblings).find(id => siblings[id] === actor) ?? actor.id
    const path = pathTo(this.#pathOf(actor._parent), id)
    this.#paths.set(actor, path)
    return path
  }

  /**
   * The event that the chart received before a frame. It begins without one, and the first frame may have none either.
   */
  #receivedIn(frame: number): Omit<Ahead, 'turn'> {
    return this.#received[this.#before && this.#isDirect ? frame : frame - 1] as Omit<Ahead, 'turn'>
  }

  #frame(hasMoved: boolean): Frame {
    const chart = this.root.getSnapshot() as AnyMachineSnapshot
    const births = Object.fromEntries(actorsIn(chart).map(({ path, actor }) => [path, this.#birthOf(actor)]))
    const { timers, cancelable } = this.#schedule
    return {
      snapshot: persisted(this.#machine, chart),
      asks: this.#questions.at(-1),
      births,
      timers,
      cancelable,
      words: this.#words.splice(0),
      sent: this.#sent.splice(0),
      hasMoved
    }
  }

  #birthOf(actor: AnyActorRef): number {
    const known = this.#born.get(actor) ?? (this.#births += 1)
    this.#born.set(actor, known)
    return known
  }

  #turnOf({ snapshot, asks, words, sent, timers, cancelable, hasMoved, births }: Frame, isLast: boolean): WorkTurn {
    const chart = (isLast ? this.root.getSnapshot() : this.#copyOf(snapshot)) as AnyMachineSnapshot
    const { status, output, error } = chart
    const scheduled = isLast ? this.#schedule : { timers, cancelable }
    const pending =
      status === 'active'
        ? { timers: scheduled.timers, cancelable: scheduled.cancelable }
        : { timers: [], cancelable: {} }
    return {
      status,
      output,
      error,
      chart,
      asks: isLast ? this.#questions.at(-1) : asks,
      words,
      sent,
      hasMoved,
      births,
      ...pending,
      inbox: [],
      ended: [],
      nowMs: this.#before?.nowMs ?? 0,
      passed: []
    } as unknown as WorkTurn
  }

  #thrown(error: unknown, last: WorkTurn | undefined): WorkTurn {
    const chart = (last ?? this.#before)?.chart ?? this.root.getSnapshot()
    return {
      ...QUIET,
      chart,
      status: 'error',
      output: undefined,
      error,
      ended: [],
      nowMs: this.#before?.nowMs ?? 0,
      passed: []
    } as unknown as WorkTurn
  }

  #copyOf(snapshot: unknown): AnyMachineSnapshot {
    this.#isBack = true
    return directedActor(this.#machine, { snapshot }, this).getSnapshot() as AnyMachineSnapshot
  }
}

function isActive(actor: AnyActorRef): boolean {
  return actor.getSnapshot().status === 'active'
}

function inboxOf(ahead: readonly Ahead[]): EventObject[] {
  return ahead.map(({ event }) => event)
}

/** A snapshot to restore, in this process. */
function persisted(machine: AnyStateMachine, chart: AnyMachineSnapshot): Frame['snapshot'] {
  return machine.getPersistedSnapshot(chart, { __unsafeAllowInlineActors: true })
}
