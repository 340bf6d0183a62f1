import type { AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { PrivateProperty } from '../primitives/collections.ts'

/** A state and all its descendants. */
export function statesOf(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(statesOf)]
}

/** The transitions of a state: those on events, then the eventless ones. */
export function transitionsOf({ transitions, always = [] }: AnyStateNode): AnyTransitionDefinition[] {
  return [...[...transitions.values()].flat(), ...always]
}

/**
 * The name of a transition: its state, its event and its targets, and its number among several on the same event.
 * Unique in its chart.
 */
export function transitionName(transition: AnyTransitionDefinition): string {
  const { source, eventType, target = [] } = transition
  const alike = transitionsOf(source).filter(other => other.eventType === eventType)
  const branch = alike.length > 1 ? ` (branch ${alike.indexOf(transition) + 1})` : ''
  const leads = target.length === 0 ? 'stays' : `to ${target.map(({ key }) => key).join(' and ')}`
  return `${source.id} on ${eventType || 'its own'}${branch} ${leads}`
}

/** By the configuration of a chart, the one that its author wrote. */
const configs = new PrivateProperty<object, object>(Symbol.for('taskchart.config.1'))

/** By the guard of a transition, the one that its author wrote. */
const guards = new PrivateProperty<object, { readonly guard: unknown }>(Symbol.for('taskchart.guard.1'))

/** A chart's configuration as its author wrote it, without guards that were added to it. */
export function writtenConfig<Config extends object>(config: Config): Config {
  return (configs.get(config) ?? config) as Config
}

/** Notes what the author wrote in place of this configuration. */
export function noteWrittenConfig(config: object, written: object): void {
  configs.set(config, written)
}

/** The guard of a transition as its author wrote it; `undefined` if the author wrote none. */
export function writtenGuard(guard: unknown): unknown {
  const noted = typeof guard === 'function' ? guards.get(guard) : undefined
  return noted ? noted.guard : guard
}

/** Notes what the author wrote in place of this guard. */
export function noteWrittenGuard(guard: object, written: unknown): void {
  guards.set(guard, { guard: written })
}

/** By the logic of an actor, what the author gave to the function that made it. */
const logics = new PrivateProperty<object, readonly unknown[]>(Symbol.for('taskchart.logic.1'))

/** The arguments of the function of taskchart that made this logic or work; `undefined` if none made it. */
export function writtenLogic(logic: object): readonly unknown[] | undefined {
  return logics.get(logic)
}

/** Notes what the author gave to the function that makes this logic, whose closure hides it. */
export function noteWrittenLogic<Logic extends object>(logic: Logic, ...given: readonly unknown[]): Logic {
  logics.set(logic, given)
  return logic
}
