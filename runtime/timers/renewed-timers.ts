import type { AnyActorRef, AnyMachineSnapshot, AnyStateMachine } from 'xstate'
import { pathOf } from '../commits/actor-host.ts'
import { activeStates } from '../xstate/persisted-snapshot.ts'
import type { DelayedEvent } from './delayed-events.ts'

const AFTER = 'xstate.after.'

/**
 * Renews the delayed events of a task whose charts have changed. An `after` of a state that is not active, or no longer exists, is
 * dropped; a new `after` of an active state starts now. All others stay. Throws what an author's delay function throws.
 */
export function renewedTimers(task: AnyActorRef, delayed: readonly DelayedEvent[], nowMs: number): DelayedEvent[] {
  const others = delayed.filter(({ event }) => !event.type.startsWith(AFTER))
  const timers = chartsBelow(task).flatMap(chart => {
    const source = pathOf(chart).slice(1)
    return afterOf(chart).map(({ type, delayMs }) => {
      const stored = delayed.find(
        ({ event, source: from }) => event.type === type && from.join('/') === source.join('/')
      )
      return stored ?? { source, event: { type }, id: type, dueMs: nowMs + delayMs }
    })
  })
  return [...others, ...timers]
}

/** The active charts at or below an actor. */
function chartsBelow(actor: AnyActorRef): AnyActorRef[] {
  const { status, children, machine } = actor.getSnapshot() as Partial<AnyMachineSnapshot>
  if (status !== 'active' || !machine) return []
  return [actor, ...Object.values<AnyActorRef>(children).flatMap(chartsBelow)]
}

/** The timers of a chart's active states. An invalid delay counts as 0 ms, as in XState. */
function afterOf(chart: AnyActorRef): { type: string; delayMs: number }[] {
  const snapshot: AnyMachineSnapshot = chart.getSnapshot()
  return activeStates(snapshot)
    .flatMap(({ after }) => after)
    .map(({ eventType, delay }) => ({ type: eventType, delayMs: delayOf(delay, snapshot, chart) }))
}

function delayOf(delay: unknown, snapshot: AnyMachineSnapshot, self: AnyActorRef): number {
  const { delays } = (snapshot.machine as AnyStateMachine).implementations
  const given: unknown = typeof delay === 'string' ? delays[delay] : delay
  const delayMs: unknown =
    typeof given === 'function'
      ? given({ context: snapshot.context, event: { type: 'xstate.init' }, self }, undefined)
      : given
  /* c8 ignore next -- an author's function may give any value; defineAgent refuses undefined delays */
  return typeof delayMs === 'number' ? delayMs : 0
}
