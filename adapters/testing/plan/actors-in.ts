import type { AnyActorRef, AnyMachineSnapshot, EventObject } from 'xstate'
import { endedActor, parseType } from '../../../machines/xstate-names.ts'
import { isChart } from '../../../runtime/xstate/persisted-snapshot.ts'

/** An actor of a chart, or of a chart among its actors. */
export interface PlacedActor {
  /**
   * The ids from the chart's own actor down, as in a JSON pointer. XState counts the ids of actors that are spawned
   * without one, differently in each process: here they are numbered from 0 within their chart.
   */
  readonly path: string
  /** Its id below its owner. */
  readonly id: string
  readonly actor: AnyActorRef
  readonly src: string
  /** The chart that has it, and that chart's path. */
  readonly owner: AnyMachineSnapshot
  readonly ownerPath: string
  /** Whether it is a chart itself. */
  readonly isChart: boolean
}

const COUNTED = /^x:\d+$/

/** The actors of a chart and of the charts among them, each after its owner. */
export function actorsIn(owner: AnyMachineSnapshot, ownerPath = ''): PlacedActor[] {
  const children = Object.entries(
    owner.children as Readonly<Record<string, AnyActorRef & { readonly src: unknown }>>
  ).filter(([, actor]) => actor !== undefined)
  const counted = children
    .flatMap(([id]) => (COUNTED.test(id) ? [id] : []))
    .toSorted((one, other) => numberOf(one) - numberOf(other))
  return children.flatMap(([id, actor]) => {
    const path = pathTo(ownerPath, COUNTED.test(id) ? `x ${counted.indexOf(id)}` : id)
    const snapshot: object = actor.getSnapshot()
    const below = isChart(snapshot) ? actorsIn(snapshot, path) : []
    return [
      {
        path,
        id,
        actor,
        src: typeof actor.src === 'string' ? actor.src : id,
        owner,
        ownerPath,
        isChart: isChart(snapshot)
      },
      ...below
    ]
  })
}

/** The actor at a path of a chart, or with this id in it. */
export function actorAt(chart: AnyMachineSnapshot, path: string): AnyActorRef | undefined {
  const actors = actorsIn(chart)
  return (actors.find(one => one.path === path) ?? actors.find(({ id, ownerPath }) => id === path && ownerPath === ''))
    ?.actor
}

/** The path of an actor from its owner's. */
export function pathTo(ownerPath: string, id: string): string {
  const segment = id.replaceAll('~', '~0').replaceAll('/', '~1')
  return ownerPath === '' ? segment : `${ownerPath}/${segment}`
}

/** A text about a chart that is equal if its actors have other counted ids, in the same order. */
export function withoutCounts(text: string, chart: AnyMachineSnapshot): string {
  const ids = actorsIn(chart)
    .flatMap(({ id }) => (COUNTED.test(id) ? [id] : []))
    .toSorted((one, other) => numberOf(one) - numberOf(other))
  return ids.reduce((text, id, i) => text.replaceAll(new RegExp(`\\b${id}\\b`, 'g'), `x ${i}`), text)
}

/** The id of the actor whose end an event is. */
export function endedIn({ type }: EventObject): string | undefined {
  return endedActor(type)
}

/** The id of the actor whose snapshot an event brings. */
export function shownIn({ type }: EventObject): string | undefined {
  const { kind, id } = parseType(type) ?? {}
  return kind === 'snapshot' ? id : undefined
}

function numberOf(id: string): number {
  return Number(id.slice(2))
}
