import type { AnyStateMachine } from 'xstate'
import {
  writtenChart,
  type WrittenChart,
  type WrittenState,
  type WrittenTransition
} from '../../runtime/xstate/written-chart.ts'
import { actionName, guardName } from '../../runtime/xstate/written-chart.ts'

/** An actor that a state invokes: its id, and the name of its logic, if any. */
export interface OutlineActor {
  readonly id: string
  readonly src?: string
}

/** A state of a chart. */
export interface OutlineState {
  /** XState's id: `task.active.working`. */
  readonly id: string
  readonly key: string
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
  /** The id of its parent; none for the root. */
  readonly parent?: string
  /** Ids of its initial states; for a history state, those to enter without history. */
  readonly initial: readonly string[]
  readonly history?: 'shallow' | 'deep'
  readonly tags: readonly string[]
  readonly description?: string
  /** Names of actions. */
  readonly entry: readonly string[]
  readonly exit: readonly string[]
  readonly invoke: readonly OutlineActor[]
  /** The number of states in it, if it is collapsed. */
  readonly hidden?: number
}

/** A transition of a chart. */
export interface OutlineTransition {
  /** Unique in its chart. Tests report coverage of transitions by this name. */
  readonly name: string
  /** The id of its state. */
  readonly source: string
  /** The type of its event in XState; empty for an eventless one. */
  readonly event: string
  readonly guard?: string
  readonly actions: readonly string[]
  /** Ids of its targets; empty if it has none. */
  readonly targets: readonly string[]
  readonly description?: string
}

/** All that a drawing shows of a chart, as JSON. Parents come before their children. */
export interface ChartOutline {
  readonly id: string
  readonly states: readonly OutlineState[]
  readonly transitions: readonly OutlineTransition[]
}

/** The outline of a chart. */
export function outlineOf(machine: AnyStateMachine): ChartOutline {
  return outlineOfChart(writtenChart(machine))
}

/** The outline of a chart that has been read. */
export function outlineOfChart({ root, states, transitions }: WrittenChart): ChartOutline {
  return { id: root.id, states: states.map(stateOf), transitions: transitions.map(transitionOf) }
}

/**
 * The outline with some of its states collapsed, by their ids: each is drawn without the states in it. What leads into
 * or out of those leads to or from the collapsed state; what stays within it is left out. The chart itself and states
 * without states in them cannot be collapsed.
 */
export function collapsedOutline(outline: ChartOutline, ids: ReadonlySet<string>): ChartOutline {
  const [root] = outline.states
  const parents = new Map(outline.states.map(({ id, parent }) => [id, parent]))
  const pathTo = (id: string): string[] => {
    const parent = parents.get(id)
    return parent === undefined ? [id] : [...pathTo(parent), id]
  }
  /** The outermost collapsed state around a state, or the state itself. */
  const shown = new Map(
    outline.states.map(({ id }) => [id, pathTo(id).find(one => ids.has(one) && one !== root?.id) ?? id])
  )
  const at = (id: string) => shown.get(id) as string
  const hidden = (id: string) => outline.states.filter(one => one.id !== id && at(one.id) === id).length
  const states = outline.states
    .filter(({ id }) => at(id) === id)
    .map(state => {
      const count = hidden(state.id)
      if (count === 0) return { ...state, initial: [...new Set(state.initial.map(at))] }
      return { ...state, type: 'atomic' as const, initial: [], hidden: count }
    })
  const transitions = outline.transitions.flatMap(transition => {
    const [source, targets] = [at(transition.source), [...new Set(transition.targets.map(at))]]
    const isOwn = transition.source === source && transition.targets.every(id => id === source)
    const isWithin = targets.every(id => id === source)
    return isWithin && !isOwn ? [] : [{ ...transition, source, targets }]
  })
  return { ...outline, states, transitions }
}

function stateOf(state: WrittenState): OutlineState {
  const { id, key, type, parent, initial, history, tags, description, entry, exit, invoke } = state
  return {
    id,
    key,
    type,
    ...(parent && { parent: parent.id }),
    initial: initial.map(({ id }) => id),
    ...(history && { history }),
    tags: [...tags],
    ...(description !== undefined && { description }),
    entry: entry.map(actionName),
    exit: exit.map(actionName),
    invoke: invoke.map(({ id, src }) => ({ id, ...(src !== undefined && { src }) }))
  }
}

function transitionOf(transition: WrittenTransition): OutlineTransition {
  const { name, source, event, guard, actions, targets, description } = transition
  return {
    name,
    source: source.id,
    event,
    ...(guard && { guard: guardName(guard) }),
    actions: actions.map(actionName),
    targets: targets.map(({ id }) => id),
    ...(description !== undefined && { description })
  }
}
