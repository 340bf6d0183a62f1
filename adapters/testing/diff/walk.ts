import { errorType } from '../../../machines/xstate-names.ts'
import {
  type ChartConfiguration,
  type ChartParts,
  nameOf,
  pathOf,
  SkeletonChart,
  UNNAMED
} from '../../../runtime/work-port.ts'
import type { WrittenActor, WrittenState, WrittenTransition } from '../../../runtime/xstate/written-chart.ts'

/** A configuration, and since when its states are active. */
interface Place {
  readonly configuration: ChartConfiguration
  /** The ids of states that were entered before the restore. */
  readonly stale: ReadonlySet<string>
}

export interface WalkNode extends Place {
  readonly edges: WalkEdge[]
  /** Whether more follows than is known. */
  isCut: boolean
}

export interface WalkEdge {
  readonly to: WalkNode
  /** The guarded transitions that held or failed in it. */
  readonly held: ReadonlySet<string>
  readonly failed: ReadonlySet<string>
  /** The ids of the states that it enters. */
  readonly entered: ReadonlySet<string>
}

/** The configurations of a chart without its code. */
export class ChartWalk {
  readonly nodes: WalkNode[] = []
  readonly skeleton: SkeletonChart
  readonly #byId: ReadonlyMap<string, WrittenState>
  readonly #known = new Map<string, WalkNode>()
  readonly #mayHappen: (transition: WrittenTransition, place: Place) => boolean
  readonly #most: number
  #followed = 0

  /** `most`: the maximum number of configurations that are followed. */
  constructor(
    { chart }: ChartParts,
    mayHappen: (transition: WrittenTransition, place: Place) => boolean,
    most: number
  ) {
    this.#most = most
    this.skeleton = new SkeletonChart(chart)
    this.#byId = new Map(chart.states.map(state => [state.id, state]))
    this.#mayHappen = mayHappen
  }

  /** Follows the chart from its start; gives the nodes of its start. */
  begin(): WalkNode[] {
    const starts = (this.skeleton.begin() ?? []).map(({ to }) => this.#nodeAt({ configuration: to, stale: new Set() }))
    this.#follow()
    return starts
  }

  /** Follows the chart from a configuration. */
  from(configuration: ChartConfiguration): WalkNode {
    const node = this.#nodeAt({ configuration, stale: new Set(configuration.active) })
    this.#follow()
    return node
  }

  /** The active states of a configuration. */
  statesIn({ active }: ChartConfiguration): WrittenState[] {
    return active.map(id => this.#byId.get(id) as WrittenState)
  }

  /** The path of the state with an id. */
  pathAt(id: string): string {
    return pathOf(this.#byId.get(id) as WrittenState)
  }

  #nodeAt(place: Place): WalkNode {
    const { configuration, stale } = place
    const key = JSON.stringify([
      configuration.value,
      configuration.history,
      [...stale].toSorted(),
      configuration.isDone,
      configuration.failedBy
    ])
    const known = this.#known.get(key)
    if (known) return known
    const node: WalkNode = { ...place, edges: [], isCut: false }
    this.#known.set(key, node)
    this.nodes.push(node)
    return node
  }

  #follow(): void {
    for (; this.#followed < this.nodes.length; this.#followed += 1) {
      const node = this.nodes[this.#followed] as WalkNode
      if (node.configuration.isDone) continue
      if (this.nodes.length > this.#most) node.isCut = true
      else for (const event of this.#eventsAt(node)) this.#take(node, event)
    }
  }

  #take(node: WalkNode, event: string): void {
    const steps = this.skeleton.take(node.configuration, event)
    if (!steps) {
      node.isCut = true
      return
    }
    for (const { to, entered, outcomes } of steps) {
      const stale = new Set(to.active.filter(id => node.stale.has(id) && !entered.has(id)))
      const named = (isHeld: boolean) =>
        new Set(outcomes.flatMap(({ transition, holds }) => (holds === isHeld ? [transition] : [])))
      node.edges.push({
        to: this.#nodeAt({ configuration: to, stale }),
        held: named(true),
        failed: named(false),
        entered
      })
    }
  }

  /** The events that may arrive in a configuration, each once. */
  #eventsAt(place: Place): Set<string> {
    const transitions = this.statesIn(place.configuration).flatMap(({ transitions }) => transitions)
    const events = transitions.flatMap(transition => {
      const { event, member } = transition
      if (event === '' || member === 'onDone' || !this.#mayHappen(transition, place)) return []
      return event === '*' ? [] : [event.endsWith('.*') ? `${event.slice(0, -1)}${UNNAMED}` : event]
    })
    return new Set([...events, UNNAMED])
  }
}

/** The timers of states that were active before a restore. */
export class StaleTimers {
  readonly #timers: ReadonlySet<string>
  readonly #isSameVersion: boolean

  constructor({ chart }: ChartParts, isSameVersion: boolean) {
    this.#timers = new Set(chart.transitions.flatMap(({ member, event }) => (member === 'after' ? [event] : [])))
    this.#isSameVersion = isSameVersion
  }

  /** With the same version, a state that was active has the timers that were stored. */
  mayHappen({ member, source, event }: WrittenTransition, stale: ReadonlySet<string>): boolean {
    return member !== 'after' || !this.#isSameVersion || !stale.has(source.id) || this.#timers.has(event)
  }
}
/** The result of a walk. */
export interface Reach {
  /** The paths of the states that are active in it, and of those that it enters. */
  readonly states: ReadonlySet<string>
  readonly entered: ReadonlySet<string>
  readonly endings: ReadonlySet<string>
  readonly isCut: boolean
}
/** Walks from these nodes along the edges that `follows` accepts. */
export function reachOf(
  from: readonly WalkNode[],
  walk: ChartWalk,
  follows: (edge: WalkEdge) => boolean = () => true
): Reach {
  const nodes = new Set(from)
  const states = new Set<string>()
  const endings = new Set<string>()
  const enteredIds = new Set<string>()
  let isCut = false
  for (const { configuration, edges, isCut: isOwn } of nodes) {
    isCut ||= isOwn
    const active = walk.statesIn(configuration)
    for (const state of active) states.add(pathOf(state))
    for (const ending of endingsIn(configuration, active)) endings.add(ending)
    for (const edge of edges.filter(follows)) {
      nodes.add(edge.to)
      for (const id of edge.entered) enteredIds.add(id)
    }
  }
  const entered = new Set(Array.from(enteredIds, id => walk.pathAt(id)))
  // A state may be left in the step in which it is entered.
  for (const path of entered) states.add(path)
  return { states, entered, endings, isCut }
}
/** The endings of a task in a configuration: a final state, or an actor whose failure nothing handles. */
function endingsIn({ isDone, failedBy }: ChartConfiguration, active: readonly WrittenState[]): string[] {
  const invoked = active.flatMap(({ invoke }) => invoke)
  const failures = (of: readonly WrittenActor[]) => of.map(({ id, src = id }) => `the failure of ${src}`)
  if (failedBy !== undefined) return failures(invoked.filter(({ id }) => errorType(id) === failedBy))
  if (isDone) {
    const last = active.filter(({ type, parent }) => type === 'final' && parent && !parent.parent)
    if (last.length === 0) return ['all regions are done']
    return last.map(
      state =>
        `${nameOf(state)}${state.tags
          .filter(tag => ENDS.includes(tag))
          .map(tag => ` (${tag})`)
          .join('')}`
    )
  }
  const handled = new Set(active.flatMap(({ transitions }) => transitions.map(({ event }) => event)))
  return failures(invoked.filter(({ id }) => !handled.has(errorType(id))))
}

const ENDS = ['failed', 'rejected']
