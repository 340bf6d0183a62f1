import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from 'xstate'
import type { Told } from '../../../machines/properties/terms.ts'
import { endedIn } from '../plan/actors-in.ts'
import { livingIn, modelOf, type Turn } from '../plan/model.ts'
import type { ChartMove } from '../plan/moves.ts'
import { Strider, type Ground, type Offered, type Spot } from './ground.ts'
import { OpenGuards } from './open-guards.ts'
import { actorSource } from './space.ts'

/** The events that a chart may receive, if it is no work. */
export interface ChartCases {
  readonly input?: unknown
  /**
   * Events that may arrive in any state, with the ends of its actors (`xstate.done.actor.<id>`, with `actorId`). A state that ignores one has
   * no step for it. Default: all events of the chart without data, whose guards are taken both ways.
   */
  readonly events?: readonly EventObject[] | ((chart: AnyMachineSnapshot) => readonly EventObject[])
  /** Types of events that come in the end, wherever they are accepted. Actors end and timers fire in any case. Default: none. */
  readonly awaited?: readonly string[]
  /** The part of the context that decides where a walk may lead. Default: all of it. */
  readonly memory?: (context: never) => unknown
  /** The name of something emitted, for `told`. Default: its type. */
  readonly toldAs?: (emitted: never) => string
}

/** A bare chart as a ground to explore. */
export function chartGround(
  machine: AnyStateMachine,
  { input, events, awaited = [], memory = context => context, toldAs }: ChartCases
): { readonly ground: Ground; readonly lost: ReadonlySet<string>; readonly unmodelled: ReadonlySet<string> } {
  const guards = new OpenGuards(machine)
  const nameOf = toldAs as ((emitted: unknown) => string) | undefined
  const toldIn = ({ words }: Turn): Told[] =>
    words.map(value => ({ name: nameOf?.(value) ?? (value as EventObject).type, value }))
  const strider = new Strider(modelOf(guards.machine), guards, toldIn)
  const offeredIn = (spot: Spot): Offered[] => {
    const arriving = typeof events === 'function' ? events(spot.chart) : (events ?? bareEvents(spot))
    const possible = arriving.filter(event => mayCome(event, spot) && strider.can(spot, event, !events))
    return possible.map((event, i): Offered => {
      const move: ChartMove = { type: 'event', name: `${event.type} ${i}`, event }
      return { move, says: saysOf(event, possible), from: 'outside', isGuess: !events, ...sourceOf(event, awaited) }
    })
  }
  const stridesFrom = (spot: Spot) => {
    const own = strider.ownIn(spot)
    return (own ? [own] : [...offeredIn(spot), ...strider.timersIn(spot)]).flatMap(one => strider.take(spot, one))
  }
  return {
    ground: {
      name: 'started',
      input,
      start: strider.begin(input, false),
      stridesFrom,
      isCut: spot => strider.cut.has(spot),
      memory: memory as Ground['memory']
    },
    lost: strider.lost,
    unmodelled: strider.unmodelled
  }
}

/** The events that the active states name, without data. */
function bareEvents(spot: Spot): EventObject[] {
  const ends = Object.keys(livingIn(spot)).flatMap(actorId =>
    ['done', 'error'].map(how => ({ type: `xstate.${how}.actor.${actorId}`, actorId }))
  )
  return [
    ...(spot.chart.machine.events as string[])
      .filter(type => !type.startsWith('xstate.') && !type.includes('*'))
      .map(type => ({ type })),
    ...ends
  ]
}

/** Whether an event is no end of an actor, or of one that has not ended. */
function mayCome(event: EventObject, spot: Spot): boolean {
  const actor = endedIn(event)
  return actor === undefined || actor in livingIn(spot)
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
