import type { AnyActorLogic, AnyStateMachine } from 'xstate'
import { type GuardFunction, withAddedGuards } from '../xstate/guarded-chart.ts'
import { isMachine, isWithin } from '../xstate/persisted-snapshot.ts'
import { writtenChart, type WrittenState } from '../xstate/written-chart.ts'

/** Tags of states with a question. */
export const ASKING: readonly string[] = ['input-required', 'auth-required'] satisfies WorkTag[]

/** Events that bring an answer to a chart. */
export const ANSWERS: readonly string[] = ['message.received', 'authorization.received']

/** Whether a name in a chart's `on` (`message.received`, `message.*`, `*`) stands for an event of this type. */
export function hears(name: string, type: string): boolean {
  return name === type || name === '*' || (name.endsWith('.*') && `${type}.`.startsWith(name.slice(0, -1)))
}

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
  const added = (state: WrittenState, name: string) => {
    if (!ANSWERS.some(type => hears(name, type)) || !states.some(each => areParallel(each, state))) return undefined
    const own = states.filter(each => isWithin(each, state) || isWithin(state, each)).map(({ id }) => id)
    return own.length > 0 ? questionGuard(own) : undefined
  }
  return withAddedGuards(machine, added, make)
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

function questionStates(machine: AnyStateMachine): WrittenState[] {
  return writtenChart(machine).states.filter(isQuestionState)
}

function hasParallelQuestions(states: readonly WrittenState[]): boolean {
  return states.some(one => states.some(other => areParallel(one, other)))
}

function isQuestionState({ tags }: WrittenState): boolean {
  return tags.some(tag => ASKING.includes(tag))
}

function questionGuard(questions: readonly string[]): GuardFunction {
  return function isQuestionOpen({ event }) {
    const { question } = event as { readonly question?: string }
    return question === undefined || questions.includes(question)
  }
}

/** Whether two states lie in different regions of a parallel state. */
function areParallel(one: WrittenState, other: WrittenState): boolean {
  let common: WrittenState = one
  while (!isWithin(other, common)) common = common.parent as WrittenState
  return common.type === 'parallel' && common !== one && common !== other
}

/** Tags of a work chart's states that drive the task's life cycle. */
export type WorkTag = 'input-required' | 'auth-required' | 'failed' | 'rejected'
