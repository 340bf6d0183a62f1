import type { AnyStateNode, AnyTransitionDefinition } from 'xstate'

/** A state and all its descendants. */
export function statesOf(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(statesOf)]
}

/** The transitions of a state: those on events, then the eventless ones. */
export function transitionsOf({ transitions, always = [] }: AnyStateNode): AnyTransitionDefinition[] {
  return [...[...transitions.values()].flat(), ...always]
}

/** The name of a transition: its state, its event and its targets, and its number among several on the same event. Unique in its chart. */
export function transitionName(transition: AnyTransitionDefinition): string {
  const { source, eventType, target = [] } = transition
  const alike = transitionsOf(source).filter(other => other.eventType === eventType)
  const branch = alike.length > 1 ? ` (branch ${alike.indexOf(transition) + 1})` : ''
  const leads = target.length === 0 ? 'stays' : `to ${target.map(({ key }) => key).join(' and ')}`
  return `${source.id} on ${eventType || 'its own'}${branch} ${leads}`
}
