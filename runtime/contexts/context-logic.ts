import type { AnyActorLogic } from 'xstate'
import { contextMachine, type ContextFact } from '../../machines/context.machine.ts'
import type { TaskFact } from '../../machines/task-events.ts'
import { taskMachine } from '../../machines/task.machine.ts'
import type { Agent } from '../agent/define-agent.ts'
import { hostOf, type ActorHost } from '../commits/actor-host.ts'
import { withScope } from '../commits/commit-gate.ts'
import { negotiationChart } from '../negotiation/bargaining.ts'
import { negotiationFunction } from '../negotiation/per-message.ts'
import { workChart } from '../work/chart-work.ts'
import { isGenerator, workFunction, workGenerator } from '../work/function-work.ts'
import type { ScopeChanges } from '../xstate/actor-system.ts'
import { compileMachine } from '../xstate/compiled-machine.ts'
import type { TransitionCounter } from '../xstate/transition-counter.ts'

/** The context chart with an agent's logic. */
export type ContextLogic = typeof contextMachine

/** Provides an agent's work and negotiation to the charts. Made once per runtime and shared by its contexts. */
export function contextLogic({ work, negotiate, input }: Agent, counter?: TransitionCounter): ContextLogic {
  // An agent without work may have stored tasks, which then end with a reason.
  const actors: Record<string, AnyActorLogic> = { task: taskLogic(workLogic(work ?? (() => {}), counter)) }
  if (typeof negotiate === 'function') actors.negotiation = negotiationFunction({ negotiate, work, input })
  else if (negotiate) actors.bargaining = negotiationChart(negotiate)
  return withScope(
    compileMachine(contextMachine.provide({ actors })),
    emitting((host, _, fact: ContextFact) => host.noteContextFact(fact))
  ) as ContextLogic
}

/** An agent's work as the actor that its tasks invoke. */
function workLogic(work: Exclude<Agent['work'], undefined>, counter: TransitionCounter | undefined): AnyActorLogic {
  if (typeof work !== 'function') return workChart(work, counter)
  return isGenerator(work) ? workGenerator(work) : workFunction(work)
}

/** The task chart with work, whose emitted events go into the turn. */
function taskLogic(work: AnyActorLogic): AnyActorLogic {
  const machine = compileMachine(taskMachine.provide({ actors: { work } }))
  return withScope(
    machine,
    emitting((host, taskId, fact: TaskFact) => host.noteTaskFact(taskId, fact))
  )
}

/** Makes emitted events go to the host first. */
function emitting(note: (host: ActorHost, id: string, fact: never) => void): ScopeChanges {
  return {
    emit: (scope, fact) => {
      note(hostOf(scope.system), scope.id, fact as never)
      scope.emit(fact)
    }
  }
}
