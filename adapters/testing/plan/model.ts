import { initialTransition, transition, type AnyMachineSnapshot, type AnyStateMachine, type EventObject, type ExecutableActionsFrom, type Snapshot } from 'xstate'
import { endless, withActors } from '../run/stub-actors.ts'
import { heardBy, type InnerMove } from './moves.ts'

/** A pending delayed event. */
export interface Timer {
  readonly id: string
  readonly event: EventObject
  /** Milliseconds since the start of the path. */
  readonly dueMs: number
}

/** The state of a work's chart after one move, from XState's pure functions, with the effects of the move. */
export type Turn = Snapshot<unknown> & {
  readonly chart: AnyMachineSnapshot
  /** The events that it emitted. */
  readonly words: readonly unknown[]
  /** The events that it sent to actors. */
  readonly sent: readonly EventObject[]
  readonly timers: readonly Timer[]
  readonly nowMs: number
}

/** A work's chart as a pure function of moves. */
export interface Model {
  readonly begin: (input: unknown) => Turn
  readonly take: (turn: Turn, move: InnerMove) => Turn
}

type Actions = readonly ExecutableActionsFrom<AnyStateMachine>[]

/**
 * The model of a work: the author's chart with actors that never end by themselves, so that only moves end them. Custom actions do not
 * run. An error in the chart is a turn with the status `error`, in the previous state.
 */
export function modelOf(machine: AnyStateMachine): Model {
  const model = withActors(machine, endless)
  return {
    begin: input => {
      const [chart, actions] = initialTransition(model, input as never)
      return turnOf(chart, actions, [], 0)
    },
    take: (turn, move) => {
      const heard = heardBy(turn.chart, move)
      /* c8 ignore next -- only legal moves are made */
      if ('violations' in heard) return turn
      const nowMs = turn.nowMs + (move.type === 'time' ? move.delayMs : 0)
      const timers = turn.timers.filter(({ id }) => move.type !== 'time' || id !== move.timer)
      try {
        const [chart, actions] = transition(model, turn.chart, heard.event)
        return turnOf(chart, actions, timers, nowMs)
      } catch (error) {
        return { ...turn, status: 'error', output: undefined, error, words: [], sent: [], timers: [], nowMs }
      }
    }
  }
}

function turnOf(chart: AnyMachineSnapshot, actions: Actions, before: readonly Timer[], nowMs: number): Turn {
  const timers = new Map(before.map(timer => [timer.id, timer]))
  const words: unknown[] = []
  const sent: EventObject[] = []
  for (const { type, params } of actions as readonly { type: string; params: Record<string, unknown> }[]) {
    if (type === 'xstate.emit') words.push(params['event'])
    if (type === 'xstate.sendTo') sent.push(params['event'] as EventObject)
    if (type === 'xstate.cancel') timers.delete(String(params['sendId']))
    if (type === 'xstate.raise' && typeof params['delay'] === 'number') {
      const id = String(params['id'])
      timers.set(id, { id, event: params['event'] as EventObject, dueMs: nowMs + params['delay'] })
    }
  }
  const { status, output, error } = chart
  return { status, output, error, chart, words, sent, timers: status === 'active' ? [...timers.values()] : [], nowMs } as Turn
}
