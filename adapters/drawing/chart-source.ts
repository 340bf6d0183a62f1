import type { AnyStateMachine } from 'xstate'
import { jsonLoss } from '../../runtime/work-port.ts'
import {
  type WrittenAction,
  type WrittenActor,
  writtenChart,
  type WrittenGuard,
  type WrittenState,
  type WrittenTransition
} from '../../runtime/xstate/written-chart.ts'
import { actionName, guardName } from '../../runtime/xstate/written-chart.ts'

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
function configOf(machine: AnyStateMachine): Config {
  const { root } = writtenChart(machine)
  return { id: root.id, ...stateConfig(root) }
}

function stateConfig(state: WrittenState): Config {
  const { type, tags, description, history, historyTarget, initial, entry, exit, states, route } = state
  const children = states.map((child): [string, Config] => [
    child.key,
    { ...(child.hasOwnId && { id: child.id }), ...stateConfig(child) }
  ])
  return {
    ...(type !== 'atomic' && type !== 'compound' && { type }),
    ...(history && { history, ...(historyTarget !== undefined && { target: historyTarget }) }),
    ...(description !== undefined && { description }),
    ...(tags.length > 0 && { tags }),
    ...(route && { route: transitionConfig({ ...route, targets: [] }) }),
    ...(type === 'compound' && { initial: initial[0]?.key }),
    ...actionsAs('entry', entry),
    ...actionsAs('exit', exit),
    ...transitionsConfig(state),
    ...(children.length > 0 && { states: Object.fromEntries(children) })
  }
}

/** The transitions and invoked actors of a state, under the members of the config that hold them. */
function transitionsConfig({ invoke, transitions }: WrittenState): Config {
  const of = (member: WrittenTransition['member']) => transitions.filter(one => one.member === member)
  const on = byKey(of('on'), ({ event }) => event)
  const after = byKey(of('after'), ({ delay }) => String(delay))
  return {
    ...(invoke.length > 0 && { invoke: invoke.map(actorConfig) }),
    ...(Object.keys(on).length > 0 && { on }),
    ...(Object.keys(after).length > 0 && { after }),
    ...transitionsAs('onDone', of('onDone')),
    ...transitionsAs('always', of('always'))
  }
}

function actorConfig({ id, hasOwnId, src, onDone, onError, onSnapshot }: WrittenActor): Config {
  return {
    ...(hasOwnId && { id }),
    ...(src !== undefined && { src }),
    ...transitionsAs('onDone', onDone),
    ...transitionsAs('onError', onError),
    ...transitionsAs('onSnapshot', onSnapshot)
  }
}

function transitionsAs(member: string, transitions: readonly WrittenTransition[]): Config {
  return transitions.length > 0 ? { [member]: transitions.map(transitionConfig) } : {}
}

function byKey(transitions: readonly WrittenTransition[], keyOf: (one: WrittenTransition) => string): Config {
  const keys = new Set(transitions.map(keyOf))
  return Object.fromEntries(
    Array.from(keys, key => [key, transitions.filter(one => keyOf(one) === key).map(transitionConfig)])
  )
}

function transitionConfig({
  targets,
  guard,
  actions,
  reenter,
  description
}: Pick<WrittenTransition, 'targets' | 'guard' | 'actions' | 'reenter' | 'description'>): Config {
  return {
    ...(targets.length > 0 && { target: targets.map(({ id }) => `#${id}`) }),
    ...(guard && { guard: guardConfig(guard) }),
    ...actionsAs('actions', actions),
    ...(reenter && { reenter }),
    ...(description !== undefined && { description })
  }
}

/** A guard by its name, with its params if they are JSON. */
function guardConfig(guard: WrittenGuard): unknown {
  if (guard.kind !== 'named') return guardName(guard)
  const { name: type, params } = guard
  return params === undefined || jsonLoss(params, 'params', 'kept') !== undefined ? type : { type, params }
}

function actionsAs(member: string, actions: readonly WrittenAction[]): Config {
  return actions.length > 0 ? { [member]: actions.map(actionName) } : {}
}
