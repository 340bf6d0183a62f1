import { and, type AnyActorLogic, type AnyStateMachine, type AnyStateNode, type EventObject } from 'xstate'
import { isMachine, isWithin } from '../xstate/persisted-snapshot.ts'
import { statesOf, noteWrittenConfig, noteWrittenGuard } from '../xstate/written-chart.ts'

/** Tags of states with a question. */
export const ASKING: readonly string[] = ['input-required', 'auth-required'] satisfies WorkTag[]

/** Events that bring an answer to a chart. */
export const ANSWERS: readonly string[] = ['message.received', 'authorization.received']

/** Whether a name in a chart's `on` (`message.received`, `message.*`, `*`) stands for an event of this type. */
export function hears(name: string, type: string): boolean {
  return name === type || name === '*' || (name.endsWith('.*') && `${type}.`.startsWith(name.slice(0, -1)))
}

type StateConfig = AnyStateNode['config']

/**
 * Makes a chart whose answers reach only the state with the question. If two regions can have questions at once, each
 * of their transitions that handle an answer gets a guard: the event's `question` is the transition's state, one that
 * contains it, or one in it. An event without `question` passes.
 */
export function withQuestionGuards<Machine extends AnyStateMachine>(
  config: object,
  make: (config: object) => Machine
): Machine {
  const machine = make(config)
  const states = questionStates(machine)
  if (!hasParallelQuestions(states)) return machine
  const guarded = make(guardedState(machine.root, states))
  noteWrittenConfig(guarded.config, machine.config)
  return guarded
}

/** Whether a chart may have several questions at once: of two regions, or of charts among its actors. */
export function mayAskTwice(machine: AnyStateMachine): boolean {
  return (
    hasParallelQuestions(questionStates(machine)) ||
    chartsIn(machine).some(chart => chart !== machine && questionStates(chart).length > 0)
  )
}

/** A chart, and all charts that its actors may be. */
function chartsIn(machine: AnyStateMachine, known: AnyStateMachine[] = []): AnyStateMachine[] {
  if (known.includes(machine)) return known
  const all = [...known, machine]
  const actors = Object.values(machine.implementations.actors as Record<string, AnyActorLogic>)
  return actors.filter(isMachine).reduce((found, chart) => chartsIn(chart, found), all)
}

function questionStates({ root }: AnyStateMachine): AnyStateNode[] {
  return statesOf(root).filter(isQuestionState)
}

function hasParallelQuestions(states: readonly AnyStateNode[]): boolean {
  return states.some(one => states.some(other => areParallel(one, other)))
}

function isQuestionState({ tags }: AnyStateNode): boolean {
  return tags.some(tag => ASKING.includes(tag))
}

function guardedState(node: AnyStateNode, states: readonly AnyStateNode[]): StateConfig {
  const { config } = node
  const own = states.filter(each => isWithin(each, node) || isWithin(node, each)).map(({ id }) => id)
  const isShared = own.length > 0 && states.some(each => areParallel(each, node))
  return {
    ...config,
    ...(isShared &&
      config.on && {
        on: Object.fromEntries(
          Object.entries(config.on).map(([name, given]) => [name, guardedTransitions(name, given, own)])
        )
      }),
    ...(config.states && {
      states: Object.fromEntries(Object.entries(node.states).map(([key, child]) => [key, guardedState(child, states)]))
    })
  } as StateConfig
}

function guardedTransitions(name: string, given: unknown, questions: readonly string[]): unknown {
  if (!ANSWERS.some(type => hears(name, type))) return given
  return [given].flat().map(each => {
    const transition: { readonly guard?: unknown } = typeof each === 'object' ? (each as object) : { target: each }
    return { ...transition, guard: questionGuard(questions, transition.guard) }
  })
}

function questionGuard(questions: readonly string[], guard: unknown): unknown {
  const isQuestionOpen = ({ event }: { event: EventObject & { question?: string } }) =>
    event.question === undefined || questions.includes(event.question)
  const both = guard === undefined ? isQuestionOpen : and([isQuestionOpen, guard as typeof isQuestionOpen])
  noteWrittenGuard(both, guard)
  return both
}

/** Whether two states lie in different regions of a parallel state. */
function areParallel(one: AnyStateNode, other: AnyStateNode): boolean {
  let common: AnyStateNode = one
  while (!isWithin(other, common)) common = common.parent as AnyStateNode
  return common.type === 'parallel' && common !== one && common !== other
}

/** Tags of a work chart's states that drive the task's life cycle. */
export type WorkTag = 'input-required' | 'auth-required' | 'failed' | 'rejected'
