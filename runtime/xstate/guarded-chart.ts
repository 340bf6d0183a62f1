import type { AnyActorLogic, AnyStateMachine } from 'xstate'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { and, StateMachine } from './library.ts'
import { isMachine } from './persisted-snapshot.ts'
import { noteWrittenConfig, noteWrittenGuard, writtenConfig } from './state-nodes.ts'
import { writtenChart, type WrittenState } from './written-chart.ts'

type Config = Readonly<Record<string, unknown>>

/** A guard as a function, as XState calls it. */
export type GuardFunction = (given: { readonly context: unknown; readonly event: unknown }, params: unknown) => boolean

/**
 * A chart with further guards on transitions: `added` gives one for a state and a name in its `on`. Its outline stays
 * the one of the given chart.
 */
export function withAddedGuards<Machine extends AnyStateMachine>(
  machine: Machine,
  added: (state: WrittenState, name: string) => GuardFunction | undefined,
  make: (config: object) => Machine
): Machine {
  const guarded = make(guardedState(machine.config as Config, writtenChart(machine).root, added))
  noteWrittenConfig(guarded.config, machine.config)
  return guarded
}

function guardedState(
  config: Config,
  state: WrittenState,
  added: (state: WrittenState, name: string) => GuardFunction | undefined
): Config {
  const { on, states } = config as { readonly on?: Config; readonly states?: Readonly<Record<string, Config>> }
  return {
    ...config,
    ...(on && {
      on: Object.fromEntries(
        Object.entries(on).map(([name, given]) => [name, guardedTransitions(given, added(state, name))])
      )
    }),
    ...(states && {
      states: Object.fromEntries(
        state.states.map(child => [child.key, guardedState(states[child.key] as Config, child, added)])
      )
    })
  }
}

function guardedTransitions(given: unknown, added: GuardFunction | undefined): unknown {
  if (!added) return given
  return [given].flat().map(each => {
    const transition: { readonly guard?: unknown } = typeof each === 'object' ? (each as object) : { target: each }
    const { guard } = transition
    const both = guard === undefined ? added : and([added as never, guard as never])
    noteWrittenGuard(both, guard)
    return { ...transition, guard: both }
  })
}

/**
 * A chart whose guards, and those of the charts among its actors, are replaced, those of the author by their functions.
 * Guards that XState combines (`and`, `not`) are made of their parts. `name`: that of a guard in `setup`.
 */
export function withReplacedGuards(
  { config, implementations }: AnyStateMachine,
  replace: (guard: GuardFunction, name?: string) => GuardFunction,
  make: (config: object, make: (config: object) => AnyStateMachine) => AnyStateMachine
): AnyStateMachine {
  const guards = mapped(implementations.guards as Record<string, GuardFunction>, (guard, name) =>
    isCombined(guard) ? guard : replace(guard, name)
  )
  const actors = mapped(implementations.actors as Readonly<Record<string, AnyActorLogic>>, logic =>
    isMachine(logic) ? withReplacedGuards(logic, replace, make) : logic
  )
  return make(
    replacedIn(writtenConfig(config), replace),
    changed => new StateMachine(changed, { ...implementations, guards, actors } as never)
  )
}

function mapped<T>(
  all: Readonly<Record<string, T>>,
  change: (one: T, name: string) => unknown
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(all).map(([name, one]) => [name, change(one, name)]))
}

function isCombined(guard: unknown): boolean {
  return typeof guard === 'function' && 'check' in guard
}

/** Members of a chart's configuration that map names to states and transitions. */
const NAMED = new Set(['states', 'on', 'after'])

/** Members that hold no transitions. */
const WITHOUT_GUARDS = new Set([
  'context',
  'meta',
  'types',
  'schemas',
  'input',
  'output',
  'actions',
  'entry',
  'exit',
  'src',
  'params'
])

/** A chart's configuration, with each guard that is written inline replaced. */
function replacedIn<Part>(config: Part, replace: (guard: GuardFunction) => GuardFunction, areNames = false): Part {
  if (Array.isArray(config)) return config.map((each: unknown) => replacedIn(each, replace)) as Part
  if (!isObject(config)) return config
  return Object.fromEntries(
    Object.entries(config).map(([key, value]) => {
      if (areNames) return [key, replacedIn(value, replace)]
      if (key === 'guard' && typeof value === 'function' && !isCombined(value))
        return [key, replace(value as GuardFunction)]
      return [key, WITHOUT_GUARDS.has(key) ? value : replacedIn(value, replace, NAMED.has(key))]
    })
  ) as Part
}
