import { modeAfter } from '../../../machines/properties/properties.ts'
import { momentsOf } from '../../../machines/properties/terms.ts'
import type { Agent } from '../../../runtime/index.ts'
import { checkArgument, withMembers } from '../../../runtime/primitives/options.ts'
import { checkAgent } from '../../../runtime/runtime-options.ts'
import { PathError } from '../path-error.ts'
import type { Cases } from '../plan/cases.ts'
import { agentInitialStates } from './agent-states.ts'
import { configurationKeyOf, toStepSeen, type InitialState, type Configuration } from './initial-state.ts'
import { OWN_PROPERTIES } from './prove.ts'

/** A walk on which a property was violated once. */
export interface WalkToCheck {
  /** The name of the property. */
  readonly property: string
  /** The clauses of `Walk`: the opening, the steps, and those that repeat. */
  readonly opening: string
  readonly walk: readonly string[]
  readonly again?: readonly string[]
  readonly cases?: Cases
}

/**
 * Checks that an agent's property holds on one walk, such as a counterexample that was mended. Resolves if it does, or
 * if the chart cannot take the walk any more. Rejects with PathError at the violation, and with RangeError if there is
 * no such property.
 */
export async function checkWalk(agent: Agent, given: WalkToCheck): Promise<void> {
  checkAgent(agent, 'checkWalk')
  checkArgument(
    given,
    withMembers(['property', 'walk'], 'a walk as its second argument'),
    "checkWalk(agent, { property: '…', opening: '…', walk: [] })"
  )
  const { property: name, opening, walk, again = [], cases = {} } = given
  const property = { ...OWN_PROPERTIES, ...agent.properties }[name]
  if (!property) throw new RangeError(`there is no property ${JSON.stringify(name)}.`)
  const { initialStates } = await agentInitialStates(agent, cases)
  const initialState = initialStates.find(({ name }) => name === opening)
  if (!initialState) return
  let configuration = initialState.start
  let mode = modeAfter(property, property.start, momentsOf(toStepSeen(undefined, undefined, configuration)))
  let looped = ''
  let last = opening
  for (const [i, says] of [...walk, ...again].entries()) {
    if (i === walk.length) looped = placeOf(configuration, initialState, mode)
    const transition = initialState.transitionsFrom(configuration).find(transition => transition.says === says)
    if (!transition) return
    last = says
    mode = modeAfter(
      property,
      mode,
      momentsOf(toStepSeen({ move: transition, turn: transition.to }, configuration, initialState.start))
    )
    configuration = transition.to
    if (mode === 'violated') throw violation(says, name, configuration)
  }
  if (mode !== 'owes') return
  const isStuck =
    again.length === 0 &&
    configuration.over !== 'canceled' &&
    !initialState.transitionsFrom(configuration).some(({ source }) => source !== undefined)
  if (isStuck || placeOf(configuration, initialState, mode) === looped) throw violation(last, name, configuration)
}

function placeOf(configuration: Configuration, { memory }: InitialState, mode: string): string {
  return `${mode} ${configurationKeyOf(configuration, memory)}`
}

function violation(says: string, property: string, { chart }: Configuration): PathError {
  return new PathError(
    says,
    `"${property}" has to hold`,
    'it holds',
    `it is violated in the state ${JSON.stringify(chart.value)}`
  )
}
