import type { AnyActorLogic, AnyStateMachine } from 'xstate'
import { AgentCardSchema, type AgentCard } from '../machines/protocol/card.ts'
import { tryDecode } from '../machines/protocol/decode.ts'
import { isMachine } from './gated-logic.ts'
import type { NegotiateFunction } from './negotiation-function.ts'
import type { WorkFunction } from './work-function.ts'

/**
 * What an author says of an agent; interfaces and capabilities follow from how it is served. Defaults: no description,
 * version `1.0.0`, text in and out (`text/plain`), no skills.
 */
export type AgentDescription = Pick<AgentCard, 'name'> &
  Partial<Omit<AgentCard, 'name' | 'supportedInterfaces' | 'capabilities' | 'signatures'>>

/** An agent as its author writes it: with `work` it does tasks, with `negotiate` it answers messages, with both it negotiates first. */
export interface AgentDefinition {
  readonly card: AgentDescription
  /** What does a task: a function, or a statechart made with `setupWork`. */
  readonly work?: WorkFunction | AnyStateMachine
  /** What answers a message that addresses no task. Without it every such message opens a task. */
  readonly negotiate?: NegotiateFunction
  /**
   * How long a task's work may take, in milliseconds, questions and restarts of the process included: a task that has not
   * ended by then fails, and its work stops. Default: as long as it likes.
   */
  readonly deadlineMs?: number
}

/** An agent that a runtime can serve: checked, with its defaults filled in. */
export interface Agent extends AgentDefinition {
  readonly card: Omit<AgentCard, 'supportedInterfaces' | 'capabilities' | 'signatures'>
}

/** Checks an agent's definition. Throws TypeError that says what to write instead. */
export function defineAgent({ card, work, negotiate, deadlineMs }: AgentDefinition): Agent {
  if (!work && !negotiate) throw new TypeError('An agent needs work, negotiate or both: defineAgent({ card, work: async ({ message }) => … }).')
  if (work && !isMachineOrFunction(work)) throw new TypeError('work has to be an async function, or a statechart made with setupWork(…).createMachine(…).')
  if (work && typeof work !== 'function') checkChart(work)
  if (negotiate && typeof negotiate !== 'function') throw new TypeError('negotiate has to be a function that answers reply(…), accepted(…) or rejected(…).')
  if (deadlineMs !== undefined && !(Number.isFinite(deadlineMs) && deadlineMs > 0)) throw new TypeError('deadlineMs has to be a number of milliseconds above 0.')
  return { card: describe(card), ...(work && { work }), ...(negotiate && { negotiate }), ...(deadlineMs !== undefined && { deadlineMs }) }
}

function describe(card: AgentDescription): Agent['card'] {
  const defaults = { description: '', version: '1.0.0', defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'], skills: [] }
  const served = { capabilities: {}, supportedInterfaces: [{ url: 'ws://localhost', protocolBinding: 'none', protocolVersion: '1.0' }] }
  const { value, violations } = tryDecode(AgentCardSchema, { ...defaults, ...card, ...served }, 'card')
  if (violations) throw new TypeError(violations.map(({ field, description }) => `${field} ${description}`).join('; '))
  const { supportedInterfaces: _, capabilities: __, signatures: ___, ...described } = value
  return described
}

function isMachineOrFunction(work: unknown): boolean {
  if (typeof work === 'function') return !/Generator/.test(work.constructor.name)
  return typeof work === 'object' && work !== null && isMachine(work as AnyActorLogic)
}

interface StateConfig {
  readonly invoke?: unknown
  readonly states?: Readonly<Record<string, StateConfig>>
}

/** Refuses logic that stands in the chart itself: only what has a name is found again after a restart. */
function checkChart(machine: AnyStateMachine): void {
  checkState(machine.config as StateConfig, machine.id)
}

function checkState({ invoke, states = {} }: StateConfig, path: string): void {
  for (const { src } of [invoke ?? []].flat() as { src: unknown }[]) {
    if (typeof src !== 'string') {
      throw new TypeError(`The state ${path} invokes logic without a name. Name it: setupWork({ actors: { paint: … } }), and invoke: { src: 'paint' }.`)
    }
  }
  for (const [name, state] of Object.entries(states)) checkState(state, `${path}.${name}`)
}
