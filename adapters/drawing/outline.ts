import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { statesOf, transitionName, transitionsOf } from './chart-parts.ts'
import { actionName, guardName, isGiven } from './chart-words.ts'

/** An actor that a state invokes: its id, and the name of its logic, if it has one. */
export interface OutlineActor {
  readonly id: string
  readonly src?: string
}

/** A state of a chart, with what it does. */
export interface OutlineState {
  /** As XState gives it: `task.active.working`. */
  readonly id: string
  readonly key: string
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
  /** The id of the state that it is in; none for the chart itself. */
  readonly parent?: string
  /** Ids of the states that it begins in; of a history state those for when there is no history yet. */
  readonly initial: readonly string[]
  readonly history?: 'shallow' | 'deep'
  readonly tags: readonly string[]
  readonly description?: string
  /** Names of its actions. */
  readonly entry: readonly string[]
  readonly exit: readonly string[]
  readonly invoke: readonly OutlineActor[]
}

/** A transition of a chart. */
export interface OutlineTransition {
  /** Unique in its chart; the name by which tests tell whether they reached it. */
  readonly name: string
  /** The id of the state that it leaves. */
  readonly source: string
  /** The type of its event as XState has it; empty for one that needs none. */
  readonly event: string
  readonly guard?: string
  readonly actions: readonly string[]
  /** Ids of the states that it enters; none when it stays. */
  readonly targets: readonly string[]
  readonly description?: string
}

/** Everything of a chart that a drawing shows, as JSON. States stand after those that they are in. */
export interface ChartOutline {
  readonly id: string
  readonly states: readonly OutlineState[]
  readonly transitions: readonly OutlineTransition[]
}

/** What a chart is made of. */
export function outlineOf({ root }: AnyStateMachine): ChartOutline {
  const states = statesOf(root)
  return { id: root.id, states: states.map(stateOf), transitions: states.flatMap(transitionsOf).map(transitionOf) }
}

function stateOf(node: AnyStateNode): OutlineState {
  const { id, key, type, parent, tags, description, history, config, invoke } = node
  return {
    id, key, type, ...(parent && { parent: parent.id }),
    initial: beginningOf(node).map(({ id }) => id),
    ...(type === 'history' && { history: history === 'deep' ? 'deep' : 'shallow' }),
    tags: [...tags], ...(typeof description === 'string' && { description }),
    // Not `node.entry` and `node.exit`, in which XState has the timers of `after` too.
    entry: namesOf(config.entry), exit: namesOf(config.exit),
    invoke: invoke.map(({ id, src }) => ({ id, ...(isGiven(src) && { src }) }))
  }
}

function beginningOf(node: AnyStateNode): readonly AnyStateNode[] {
  if (node.type === 'compound') return node.initial.target
  if (node.type !== 'history' || !node.parent) return []
  const { target } = node.config as { target?: string }
  return target === undefined ? beginningOf(node.parent) : [stateAt(node.parent, target)]
}

/** The state at a path below another, or with an id. */
function stateAt(node: AnyStateNode, path: string): AnyStateNode {
  if (path.startsWith('#')) return node.machine.getStateNodeById(path)
  return path.split('.').filter(key => key !== '').reduce((at, key) => at.states[key] as AnyStateNode, node)
}

function transitionOf(transition: AnyTransitionDefinition): OutlineTransition {
  const { source, eventType, guard, actions, target = [], description } = transition as AnyTransitionDefinition & { description?: string }
  return {
    name: transitionName(transition), source: source.id, event: eventType, ...(guard && { guard: guardName(guard) }),
    actions: namesOf(actions), targets: target.map(({ id }) => id), ...(typeof description === 'string' && { description })
  }
}

function namesOf(actions: unknown): string[] {
  return actions === undefined ? [] : [actions].flat().map(actionName)
}
