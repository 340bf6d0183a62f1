import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { jsonLoss } from '../../runtime/work-port.ts'
import { transitionsOf, writtenGuard } from '../../runtime/xstate/written-chart.ts'
import { actionName, guardName, isAuthorName, isRoute } from './chart-parts.ts'

type Config = Readonly<Record<string, unknown>>

/** The first line of the text that {@link chartSource} writes. */
export const SOURCE_BEGINS = '// Drawn by taskchart graph.'

/**
 * A JavaScript module that exports the chart as `machine`, for tools that read the source of charts, such as Stately's
 * editor.
 */
export function chartSource(machine: AnyStateMachine): string {
  return `${SOURCE_BEGINS}\nimport { createMachine } from 'xstate'\n\nexport const machine = createMachine(${JSON.stringify(configOf(machine), null, 2)})\n`
}

/**
 * A chart as one literal for XState's `createMachine`, so that a tool needs to run no code. Actions, guards and actors
 * are names, guards with their static params; context, inputs and implementations are omitted.
 */
function configOf({ root }: AnyStateMachine): Config {
  return { id: root.id, ...stateConfig(root) }
}

function stateConfig(node: AnyStateNode): Config {
  const { config, type, tags, description, history, states } = node
  const children = Object.entries(states).map(([key, child]): [string, Config] => [
    key,
    { ...(child.config.id !== undefined && { id: child.config.id }), ...stateConfig(child) }
  ])
  return {
    ...(type !== 'atomic' && type !== 'compound' && { type }),
    ...(history && { history, ...('target' in config && { target: config.target }) }),
    ...(description !== undefined && { description }),
    ...(tags.length > 0 && { tags }),
    ...('route' in config && { route: transitionConfig(config.route as RouteDefinition) }),
    ...(type === 'compound' && { initial: node.initial.target[0]?.key }),
    ...actionsAs('entry', config.entry),
    ...actionsAs('exit', config.exit),
    ...transitionsConfig(node),
    ...(children.length > 0 && { states: Object.fromEntries(children) })
  }
}

/** The transitions and invoked actors of a state, under the members of the config that hold them. */
function transitionsConfig(node: AnyStateNode): Config {
  const held: Record<'on' | 'after' | 'state', Record<string, Config[]>> = { on: {}, after: {}, state: {} }
  const actors = node.invoke.map(({ id, src }) => ({
    ofActor: id,
    config: { ...(isAuthorName(id) && { id }), ...(isAuthorName(src) && { src }) } as Record<string, unknown>
  }))
  const hold = (member: keyof typeof held, key: string, transition: AnyTransitionDefinition) =>
    (held[member][key] ??= []).push(transitionConfig(transition))
  for (const transition of transitionsOf(node).filter(one => !isRoute(one))) {
    const { eventType, delay } = transition as AnyTransitionDefinition & { delay?: number | string }
    const [, kind = '', of] = /^xstate\.(done|error|snapshot)\.(?:actor\.)?(.*)$/s.exec(eventType) ?? []
    const actor = actors.find(({ ofActor }) => ofActor === of)
    if (delay !== undefined) hold('after', String(delay), transition)
    else if (eventType === '') hold('state', 'always', transition)
    else if (eventType === `xstate.done.state.${node.id}`) hold('state', 'onDone', transition)
    else if (actor)
      ((actor.config[HANDLERS[kind as keyof typeof HANDLERS]] ??= []) as Config[]).push(transitionConfig(transition))
    else hold('on', eventType, transition)
  }
  const { on, after, state } = held
  return {
    ...(actors.length > 0 && { invoke: actors.map(({ config }) => config) }),
    ...(Object.keys(on).length > 0 && { on }),
    ...(Object.keys(after).length > 0 && { after }),
    ...state
  }
}

/** The members of an invoked actor's config with its transitions. */
const HANDLERS = { done: 'onDone', error: 'onError', snapshot: 'onSnapshot' } as const

type RouteDefinition = Pick<AnyTransitionDefinition, 'guard' | 'actions' | 'reenter'>

function transitionConfig({
  target,
  guard: given,
  actions,
  reenter,
  description
}: RouteDefinition & { target?: AnyTransitionDefinition['target']; description?: string }): Config {
  const guard = writtenGuard(given)
  return {
    ...(target && { target: target.map(({ id }) => `#${id}`) }),
    ...(guard !== undefined && { guard: guardConfig(guard) }),
    ...actionsAs('actions', actions),
    ...(reenter && { reenter }),
    ...(description !== undefined && { description })
  }
}

/** A guard by its name, with its params if they are JSON. */
function guardConfig(guard: unknown): unknown {
  const { type, params } = Object(guard) as { type?: unknown; params?: unknown }
  if (typeof type !== 'string') return guardName(guard)
  return params === undefined || jsonLoss(params, 'params', 'kept') !== undefined ? type : { type, params }
}

function actionsAs(member: string, actions: unknown): Config {
  const names = actions === undefined ? [] : [actions].flat().map(actionName)
  return names.length > 0 ? { [member]: names } : {}
}
