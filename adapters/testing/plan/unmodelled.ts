import type { AnyActorLogic, AnyActorRef, AnyMachineSnapshot, AnyStateMachine, Snapshot } from 'xstate'
import { isOwnName, OWN_EVENT, snapshotType } from '../../../machines/xstate-names.ts'
import { ANSWERS, hears } from '../../../runtime/work-port.ts'
import { isMachine, activeStates } from '../../../runtime/xstate/persisted-snapshot.ts'
import { writtenChart } from '../../../runtime/xstate/written-chart.ts'
import { ending } from '../run/stub-actors.ts'
import { actorsIn } from './actors-in.ts'
import type { Cases } from './cases.ts'
import type { WorkTurn } from './moves.ts'

/**
 * The model cannot follow a step, since no case gives something. The message has what is missing, and the line to add.
 */
export class Unmodelled extends Error {
  override readonly name = 'Unmodelled'
}

/** Stands in for the actors of a chart, and notes whose snapshots the chart reads that no case gives. */
export class StandIns {
  readonly #readings: ReadonlySet<string>
  #read = new Set<string>()

  /** `readings`: the ids of the actors whose snapshots cases give. */
  constructor(readings: ReadonlySet<string> = new Set()) {
    this.#readings = readings
  }

  /**
   * The logic of an actor that only moves end. The snapshots of promises are those of XState, and the first one of an
   * observable has no value.
   */
  for(logic: AnyActorLogic): AnyActorLogic {
    if (isPromise(logic)) return ending
    const isEmpty = takes(logic, OWN_EVENT.next, ({ context }) => context === MARK)
    const first = (snapshot: Snapshot<unknown>, actor: AnyActorRef) =>
      isEmpty && this.#readings.has(actor.id) ? { ...snapshot, context: undefined } : this.#hidden(snapshot, actor)
    return {
      ...ending,
      getInitialSnapshot: (scope, input) => first(ending.getInitialSnapshot(scope, input), scope.self),
      restoreSnapshot: (snapshot, { self }) => this.#hidden(snapshot, self)
    }
  }

  /** Runs a step. Throws Unmodelled if it reads a snapshot that no case gives. */
  follow<T>(step: () => T): T {
    this.#read = new Set()
    const result = step()
    const [first] = this.#read
    if (first !== undefined) throw unread(first)
    return result
  }

  #hidden(snapshot: Snapshot<unknown>, { id }: AnyActorRef): Snapshot<unknown> {
    if ('context' in snapshot) return snapshot
    const read = (): never => {
      this.#read.add(id)
      throw unread(id)
    }
    return Object.defineProperty({ ...snapshot }, 'context', { get: read })
  }
}

/** The chart reads or receives a snapshot of an actor that no case gives. */
export function unread(id: string): Unmodelled {
  return new Unmodelled(
    `it reads the snapshot of ${id}, which no case gives. Add to the module: export const cases = { events: { 'a reading': { type: '${snapshotType(id)}', snapshot: { context: … } } } }`
  )
}

/** An actor that runs, but that its chart does not have any more. */
export function replacedActor(id: string): Unmodelled {
  return new Unmodelled(
    `two actors have the id ${id}, of which XState keeps the second, while the first runs on unseen. Give each an id of its own`
  )
}

const MARK = {}

const ACTIVE = { status: 'active', output: undefined, error: undefined } as const

/** Whether logic is that of a promise, which sends no events: the event of its promise ends it. */
export function isPromise(logic: AnyActorLogic): boolean {
  return takes(logic, OWN_EVENT.resolve, ({ status, output }) => status === 'done' && output === MARK)
}

/**
 * Whether logic is that of a callback, which is never done. Nothing else of XState's that starts has a snapshot of
 * these members.
 */
export function isCallback(logic: AnyActorLogic): boolean {
  return (
    !isMachine(logic) &&
    'start' in logic &&
    !isPromise(logic) &&
    Object.keys(logic.getInitialSnapshot({} as never, undefined) as object).join() === 'status,output,error,input'
  )
}

/**
 * Whether logic that starts something handles an event of XState's so. A reducer starts nothing; its function is the
 * author's.
 */
function takes(
  logic: AnyActorLogic,
  type: string,
  isSo: (after: { readonly status?: string; readonly output?: unknown; readonly context?: unknown }) => boolean
): boolean {
  if (isMachine(logic) || !('start' in logic)) return false
  try {
    return isSo(logic.transition(ACTIVE, { type, data: MARK }, {} as never) as object)
  } catch {
    return false
  }
}

/** The actors of a chart that may send it events, by `src`: no promises, and no charts, which are walked. */
export function sendersIn(
  { implementations }: WorkTurn['chart']['machine'],
  results: Cases['results'] = {}
): ReadonlySet<string> {
  const actors = Object.entries(implementations.actors as Readonly<Record<string, AnyActorLogic>>)
  return new Set(
    actors.flatMap(([src, logic]) => {
      if (isMachine(logic)) return [...sendersIn(logic, results)]
      return Object.hasOwn(results, src) || isPromise(logic) ? [] : [src]
    })
  )
}

/** The events that the actors of a turn may send and no case gives: lines with state, actor and the case to add. */
export function unsentIn(
  turn: Pick<WorkTurn, 'chart' | 'status' | 'ended'>,
  senders: ReadonlySet<string>,
  events: Cases['events'] = {}
): string[] {
  if (senders.size === 0 || turn.status !== 'active') return []
  const given = Object.values(events).map(({ type }) => type)
  return actorsIn(turn.chart).flatMap(({ actor, id, src, owner, ownerPath }) => {
    if (!senders.has(src) || turn.ended.includes(actor) || actor.getSnapshot().status !== 'active') return []
    const open = acceptedTypes(owner, id).filter(type => ownerPath !== '' || !given.some(one => hears(type, one)))
    const [first] = open
    if (first === undefined) return []
    const example = first.includes('*') ? 'an.event' : first
    const toAdd = ownerPath === '' ? `events: { 'an event': { type: '${example}' } } }, or ` : ''
    return [
      `in ${activeStateText(owner)} the actor ${src} may send "${open.join('" or "')}", which no case gives. Add to the module: export const cases = { ${toAdd}${toAdd && 'cases = { '}results: { ${propertyName(src)}: {} } } if it neither sends events nor ends`
    ]
  })
}

/** The ids of the innermost active states. */
export function activeStateText(chart: AnyMachineSnapshot): string {
  const states = activeStates(chart)
  return states
    .filter(state => !states.some(({ parent }) => parent === state))
    .map(({ id }) => id)
    .join(' and ')
}

/** A name as a member of an object literal. */
export function propertyName(src: string): string {
  return /^[\p{L}_$][\p{L}\d_$]*$/u.test(src) ? src : `'${src}'`
}

/** The types of events that the active states handle, of those that an actor may send. */
function acceptedTypes(chart: AnyMachineSnapshot, id: string): string[] {
  const active = new Set(activeStates(chart).map(({ id }) => id))
  const { transitions } = writtenChart(chart.machine as AnyStateMachine)
  const types = new Set(
    transitions
      .filter(({ source, targets, actions, reenter }) => {
        const changes = targets.length + actions.length + Number(reenter)
        return active.has(source.id) && changes > 0
      })
      .map(({ event }) => event)
  )
  types.delete('')
  return [...types].filter(type => !ANSWERS.includes(type) && (!isOwnName(type) || type === snapshotType(id)))
}
