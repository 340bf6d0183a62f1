import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { statesOf, transitionName, transitionsOf } from '../../runtime/xstate/written-chart.ts'
import { actionName, authorsGuard, guardName, isAuthorName } from './chart-parts.ts'

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
export function outlineOf({ root }: AnyStateMachine): ChartOutline {
  const states = statesOf(root)
  return { id: root.id, states: states.map(stateOf), transitions: states.flatMap(transitionsOf).map(transitionOf) }
}

function stateOf(node: AnyStateNode): OutlineState {
  const { id, key, type, parent, tags, description, history, config, invoke } = node
  return {
    id,
    key,
    type,
    ...(parent && { parent: parent.id }),
    initial: beginningOf(node).map(({ id }) => id),
    ...(type === 'history' && { history: history === 'deep' ? 'deep' : 'shallow' }),
    tags: [...tags],
    ...(typeof description === 'string' && { description }),
    // `node.entry` and `node.exit` also contain XState's timers of `after`.
    entry: namesOf(config.entry),
    exit: namesOf(config.exit),
    invoke: invoke.map(({ id, src }) => ({ id, ...(isAuthorName(src) && { src }) }))
  }
}

function beginningOf(node: AnyStateNode): readonly AnyStateNode[] {
  if (node.type === 'compound') return node.initial.target
  if (node.type !== 'history' || !node.parent) return []
  const { target } = node.config as { target?: string }
  return target === undefined ? beginningOf(node.parent) : [stateAt(node.parent, target)]
}

/** The state at a path below a state, or with an id. */
function stateAt(node: AnyStateNode, path: string): AnyStateNode {
  if (path.startsWith('#')) return node.machine.getStateNodeById(path)
  return path
    .split('.')
    .filter(key => key !== '')
    .reduce((at, key) => at.states[key] as AnyStateNode, node)
}

function transitionOf(transition: AnyTransitionDefinition): OutlineTransition {
  const {
    source,
    eventType,
    actions,
    target = [],
    description
  } = transition as AnyTransitionDefinition & { description?: string }
  const guard = authorsGuard(transition)
  return {
    name: transitionName(transition),
    source: source.id,
    event: eventType,
    ...(guard !== undefined && { guard: guardName(guard) }),
    actions: namesOf(actions),
    targets: target.map(({ id }) => id),
    ...(typeof description === 'string' && { description })
  }
}

function namesOf(actions: unknown): string[] {
  return actions === undefined ? [] : [actions].flat().map(actionName)
}
