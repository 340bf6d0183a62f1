import type { AnyStateNode, AnyTransitionDefinition } from 'xstate'

/** A state with all that are in it. */
export function statesOf(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(statesOf)]
}

/** The transitions that leave a state: those on events, then those of its own. */
export function transitionsOf({ transitions, always = [] }: AnyStateNode): AnyTransitionDefinition[] {
  return [...[...transitions.values()].flat(), ...always]
}

/** A transition by its state, its event and where it leads; of several alike, the how-manieth. Unique in its chart. */
export function transitionName(transition: AnyTransitionDefinition): string {
  const { source, eventType, target = [] } = transition
  const alike = transitionsOf(source).filter(other => other.eventType === eventType)
  const branch = alike.length > 1 ? ` (branch ${alike.indexOf(transition) + 1})` : ''
  const leads = target.length === 0 ? 'stays' : `to ${target.map(({ key }) => key).join(' and ')}`
  return `${source.id} on ${eventType || 'its own'}${branch} ${leads}`
}
