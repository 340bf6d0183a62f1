import { isTerminal, type TaskState } from '../../../machines/protocol/states.ts'
import type { TaskEvent } from '../../../runtime/store/store.ts'
import type { ChartParts } from '../../../runtime/work-port.ts'
import type { LitStep } from '../../inspector/story/moments.ts'
import { ChartWalk, type WalkEdge, type WalkNode } from '../../testing/diff/walk.ts'

/** The most configurations of a chart that are followed, and the most of them at all statuses of a task. */
const MOST_CONFIGURATIONS = 2000
const MOST_PLACES = 1_000_000

/** A time of a task during which its status stays the same. */
interface Phase {
  readonly state: TaskState
  /** The generations of its events. */
  readonly generations: readonly number[]
}

/** A way into a phase: by a step of the chart, or without one. */
interface Entry {
  readonly from?: WalkNode
  readonly edge?: WalkEdge
  readonly to: WalkNode
}

/**
 * The steps of a task in the chart of its work, rebuilt from its stored events: the states of the chart that are active
 * on each walk by which the status of the task changes as it did. The author's code does not run, so every guard may
 * hold. A task may fail, or be canceled or rejected, anywhere. What is not certain is not lit. A chart or a task that
 * is too large to follow gives no steps.
 */
export function workSteps(work: ChartParts, events: readonly TaskEvent[]): LitStep[] {
  const walk = new ChartWalk(work, () => true, MOST_CONFIGURATIONS)
  const starts = walk.begin()
  const phases = phasesOf(events)
  if (walk.nodes.some(({ isCut }) => isCut) || walk.nodes.length * phases.length > MOST_PLACES) return []
  const places = new Places(walk, phases, starts)
  return phases.flatMap(({ generations }, i) => {
    const entries = places.entriesOf(i)
    return generations.map((generation, k) => ({
      generation,
      states: statesInEach(k === 0 ? entries.map(({ to }) => to) : places.of(i)),
      transitions: k === 0 ? certainTransition(walk, entries) : []
    }))
  })
}

function phasesOf(events: readonly TaskEvent[]): Phase[] {
  const phases: { state: TaskState; generations: number[] }[] = []
  for (const { generation, update } of events) {
    const last = phases.at(-1)
    const state = 'statusUpdate' in update ? update.statusUpdate.status.state : last?.state
    if (state === undefined || state === 'TASK_STATE_SUBMITTED') continue
    if (last?.state === state) last.generations.push(generation)
    else phases.push({ state, generations: [generation] })
  }
  return phases
}

/** Where a chart may be in each phase of a task, on a walk through all of them. */
class Places {
  readonly #walk: ChartWalk
  readonly #phases: readonly Phase[]
  readonly #starts: readonly WalkNode[]
  readonly #places: ReadonlySet<WalkNode>[] = []

  constructor(walk: ChartWalk, phases: readonly Phase[], starts: readonly WalkNode[]) {
    this.#walk = walk
    this.#phases = phases
    this.#starts = starts
    for (const i of phases.keys()) this.#places[i] = this.#followed(i)
    for (const i of [...phases.keys()].toReversed().slice(1)) this.#places[i] = this.#leadingOn(i)
  }

  of(phase: number): WalkNode[] {
    return this.#places.slice(phase, phase + 1).flatMap(places => [...places])
  }

  /** The ways into a phase from the one before. */
  entriesOf(phase: number): Entry[] {
    if (phase > 0) return this.of(phase - 1).flatMap(from => this.#entriesFrom(from, phase))
    return this.#starts.filter(to => this.#isAt(to, 0) || this.#isBetween(to, 0)).map(to => ({ to }))
  }

  #entriesFrom(from: WalkNode, phase: number): Entry[] {
    const state = this.#phases[phase]?.state
    const mayBreak = state !== undefined && isTerminal(state) && state !== 'TASK_STATE_COMPLETED'
    const steps = from.edges
      .filter(
        edge =>
          this.#isAt(edge.to, phase) ||
          (this.#isBetween(edge.to, phase) && (edge.to.configuration.isDone || this.#asks(edge))) ||
          (mayBreak && edge.to.configuration.isDone)
      )
      .map(edge => ({ from, edge, to: edge.to }))
    const entries: Entry[] = this.#isAt(from, phase) || mayBreak ? [{ to: from }, ...steps] : steps
    return entries.filter(({ to }) => this.#places[phase]?.has(to) ?? true)
  }

  /** Where it may be in a phase, from all ways into it. */
  #followed(phase: number): Set<WalkNode> {
    const reached = new Set(this.entriesOf(phase).map(({ to }) => to))
    for (const node of reached) for (const to of this.#within(node, phase)) reached.add(to)
    return reached
  }

  /** The places in a phase from which a way leads into the next one. */
  #leadingOn(phase: number): Set<WalkNode> {
    const leading = new Set(this.of(phase).filter(node => this.#entriesFrom(node, phase + 1).length > 0))
    const before = new Map<WalkNode, WalkNode[]>()
    for (const node of this.of(phase))
      for (const to of this.#within(node, phase)) before.set(to, [...(before.get(to) ?? []), node])
    for (const node of leading) for (const from of before.get(node) ?? []) leading.add(from)
    return leading
  }

  /** The steps that leave the status of the task as it is: a chart that asks again changes it. */
  #within(node: WalkNode, phase: number): WalkNode[] {
    if (!this.#isAt(node, phase)) return []
    return node.edges.filter(edge => this.#isAt(edge.to, phase) && !this.#asks(edge)).map(({ to }) => to)
  }

  /** Whether a step enters a question. */
  #asks({ to, entered }: WalkEdge): boolean {
    return this.#walk.statesIn(to.configuration).some(({ id, tags }) => entered.has(id) && tags.some(isQuestion))
  }

  /** Whether a chart that stands there gives the task the status of a phase. */
  #isAt(node: WalkNode, phase: number): boolean {
    return this.#stateOf(node) === this.#phases[phase]?.state
  }

  /** Whether the phase is the moment in which a task works before it is where the chart stands already. */
  #isBetween(node: WalkNode, phase: number): boolean {
    return this.#phases[phase]?.state === 'TASK_STATE_WORKING' && this.#isAt(node, phase + 1)
  }

  #stateOf({ configuration }: WalkNode): TaskState {
    const states = this.#walk.statesIn(configuration)
    const has = (tag: string) => states.some(({ tags }) => tags.includes(tag))
    if (configuration.isDone)
      return has('failed') ? 'TASK_STATE_FAILED' : has('rejected') ? 'TASK_STATE_REJECTED' : 'TASK_STATE_COMPLETED'
    if (has('auth-required')) return 'TASK_STATE_AUTH_REQUIRED'
    return has('input-required') ? 'TASK_STATE_INPUT_REQUIRED' : 'TASK_STATE_WORKING'
  }
}

function isQuestion(tag: string): boolean {
  return tag === 'input-required' || tag === 'auth-required'
}

/** The states that are active in each of these places. */
function statesInEach([first, ...others]: readonly WalkNode[]): string[] {
  const active = first?.configuration.active ?? []
  return active.filter(id => others.every(({ configuration }) => configuration.active.includes(id)))
}

/** The one transition by which a phase begins; none if several could. */
function certainTransition(walk: ChartWalk, entries: readonly Entry[]): string[] {
  const possible = entries.map(({ from, edge, to }) => {
    if (!from || !edge) return undefined
    const names = walk
      .statesIn(from.configuration)
      .flatMap(({ transitions }) => transitions)
      .filter(
        ({ targets }) =>
          targets.some(({ id }) => edge.entered.has(id)) &&
          targets.every(({ id }) => to.configuration.active.includes(id))
      )
      .map(({ name }) => name)
    return names.length === 1 ? names[0] : undefined
  })
  const [name] = possible
  return name !== undefined && possible.every(other => other === name) ? [name] : []
}
