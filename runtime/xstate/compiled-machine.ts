import {
  assign,
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type AnyTransitionDefinition,
  type ErrorActorEvent,
  type EventObject,
  type Snapshot,
  type UnknownAction
} from 'xstate'
import { evaluateGuard } from 'xstate/guards'
import { isErrorType, OWN_EVENT, stateDoneType } from '../../machines/xstate-names.ts'
import { NONE } from '../primitives/collections.ts'
import { isInspected, type FullSystem } from './actor-system.ts'
import {
  Macrostep,
  NO_CHILDREN,
  performActions,
  prepareActions,
  type PreparedAction,
  stopChildren
} from './builtin-actions.ts'
import { mayCompile } from './self-check.ts'
import { chartTable, type ChartTable, type TableState, type TableTransition } from './transition-table.ts'

/**
 * Compiles a machine: its transitions are looked up in a table that is made once. Its actors behave, persist and
 * restore exactly as those of the original machine, so that each can restore snapshots of the other. A machine that is
 * not flat is returned as it is, and so is every machine if compiled charts do not agree with the installed version of
 * XState.
 */
export function compileMachine<Machine extends AnyStateMachine>(
  machine: Machine,
  isTrusted = mayCompile(compile)
): Machine {
  return isTrusted ? compile(machine) : machine
}

function compile<Machine extends AnyStateMachine>(machine: Machine): Machine {
  const table = chartTable(machine)
  if (!table) return machine
  const interpreter = new TableInterpreter(machine, table)
  const replaced: Pick<AnyStateMachine, 'getInitialSnapshot' | 'transition'> = {
    getInitialSnapshot: (scope, input) => interpreter.begin(scope, input),
    transition: (snapshot, event, scope) => interpreter.take(snapshot, event, scope)
  }
  return Object.assign(Object.create(Object.getPrototypeOf(machine)), machine, replaced)
}

type InitEvent = EventObject & { input: unknown }

/** Interpreter of a chart's table: takes macrosteps as XState does. */
class TableInterpreter {
  readonly #machine: AnyStateMachine
  readonly #table: ChartTable
  /** The actions that set the initial context, and the snapshot before them. */
  readonly #initial: readonly PreparedAction[]
  readonly #uninitialized: AnyMachineSnapshot

  constructor(machine: AnyStateMachine, table: ChartTable) {
    const { context } = machine.config
    const { root } = machine
    this.#machine = machine
    this.#table = table
    this.#initial = typeof context === 'function' ? prepareActions([initialAction(context)], machine) : NONE
    const given = typeof context === 'function' ? {} : (context ?? {})
    this.#uninitialized = {
      ...table.start.target.template,
      status: 'active',
      context: given,
      children: NO_CHILDREN,
      _nodes: [root],
      tags: new Set(root.tags)
    } as AnyMachineSnapshot
  }

  begin(scope: AnyActorScope, input: unknown): AnyMachineSnapshot {
    const event: InitEvent = { type: OWN_EVENT.start, input }
    const step = new Macrostep(this.#uninitialized, event, scope, true)
    let { context, children } = step.snapshot
    try {
      performActions(this.#initial, step)
      ;({ context, children } = step.snapshot)
      this.#move(this.#table.start, step)
      return this.#settle(step)
    } catch (error) {
      return { ...this.#uninitialized, context, children, status: 'error', error } as AnyMachineSnapshot
    }
  }

  take(before: AnyMachineSnapshot, event: EventObject, scope: AnyActorScope): AnyMachineSnapshot {
    const step = new Macrostep(before, event, scope)
    if (event.type === OWN_EVENT.start) return this.#settle(step)
    if (event.type === OWN_EVENT.stop) return stopped(step, { status: 'stopped' })
    const move = this.#chosen(step)
    if (!move && isErrorType(event.type))
      return stopped(step, { status: 'error', error: (event as ErrorActorEvent).error })
    this.#takeMove(move, step)
    return this.#settle(step)
  }

  /** Completes the macrostep: takes eventless transitions and raised events. */
  #settle(step: Macrostep): AnyMachineSnapshot {
    let isEventlessDue = true
    const { maxIterations = Infinity } = this.#machine.options
    for (let steps = 1; step.snapshot.status === 'active'; steps += 1) {
      if (steps > maxIterations) throw endless(this.#machine)
      const eventless: TableTransition | undefined = isEventlessDue ? this.#eventless(step) : undefined
      if (!eventless) {
        const event = step.nextRaised()
        if (!event) break
        step.event = event
      }
      step.isChanged = false
      this.#takeMove(eventless ?? this.#chosen(step), step)
      isEventlessDue = !eventless || step.isChanged
    }
    if (step.snapshot.status !== 'active') stopChildren(step)
    return step.snapshot
  }

  #eventless(step: Macrostep): TableTransition | undefined {
    for (const move of this.#configurationOf(step.snapshot).always) {
      if (holds(move.transition, step)) return move
    }
    return undefined
  }

  /** The move of an event: the first whose guard holds, from the innermost state outwards. */
  #chosen(step: Macrostep): TableTransition | undefined {
    for (const move of this.#configurationOf(step.snapshot).moves(step.event.type)) {
      try {
        if (holds(move.transition, step)) return move
      } catch (error) {
        throw guardError(move.transition, step.event, error)
      }
    }
    return undefined
  }

  #takeMove(move: TableTransition | undefined, step: Macrostep): void {
    if (move) this.#move(move, step)
    reportMicrostep(step, move)
  }

  #move({ steps, target, ends }: Pick<TableTransition, 'steps' | 'target' | 'ends'>, step: Macrostep): void {
    const { _nodes: before } = step.snapshot
    for (const { actions, invoked } of steps) performActions(actions, step, invoked)
    if (ends) {
      const output = this.#outputAt(ends, step)
      step.own.status = 'done'
      step.own.output = output
    }
    if (step.snapshot.status === 'done') performActions(target.exits, step)
    if (before.includes(target.leaf)) return
    const { own } = step
    const { value, tags, _nodes } = target.template
    own.value = value
    own.tags = tags
    own._nodes = _nodes
  }

  /** The chart's output, made from that of its final state. */
  #outputAt(final: AnyStateNode, { snapshot: { context }, event, scope: { self } }: Macrostep): unknown {
    const { output } = this.#machine.root
    if (typeof output !== 'function') return output
    const result = typeof final.output === 'function' ? final.output({ context, event, self }) : final.output
    return output({ context, event: { type: stateDoneType(final.id), output: result } as EventObject, self })
  }

  #configurationOf({ _nodes }: AnyMachineSnapshot): TableState {
    for (let i = _nodes.length - 1; i >= 0; i -= 1) {
      const configuration = this.#table.configurations.get(_nodes[i] as AnyStateNode)
      if (configuration) return configuration
    }
    throw new TypeError('This snapshot is not one of this chart.')
  }
}

/** The error of a chart that exceeds `maxIterations`. XState's own text differs. */
function endless({ id, options: { maxIterations } }: AnyStateMachine): Error {
  return new Error(
    `The chart ${id} took more than ${maxIterations} microsteps in one macrostep. Look for a cycle of eventless transitions or raised events. If the chart needs more, set options.maxIterations.`
  )
}

/** The factory of the initial context as an action, as in XState. */
function initialAction(context: (args: object) => object): UnknownAction {
  return assign(args => context(new ContextArgs(args)))
}

/** Arguments of a context factory. `spawn` is read lazily, because an assignment without it costs less. */
class ContextArgs {
  readonly input: unknown
  readonly self: unknown
  readonly #args: { readonly spawn: unknown }

  constructor(args: { readonly event: EventObject; readonly self: unknown; readonly spawn: unknown }) {
    this.input = (args.event as InitEvent).input
    this.self = args.self
    this.#args = args
  }

  get spawn(): unknown {
    return this.#args.spawn
  }
}

/** Evaluates a guard as XState does, but with the same arguments for all guards of a step. */
function holds({ guard }: AnyTransitionDefinition, step: Macrostep): boolean {
  if (guard === undefined) return true
  const { snapshot, event } = step
  const name = typeof guard === 'object' ? guard.type : guard
  const known: unknown = typeof name === 'string' ? snapshot.machine.implementations.guards[name] : name
  if (typeof known !== 'function' || 'check' in known) return evaluateGuard(guard, snapshot.context, event, snapshot)
  const params: unknown = typeof guard === 'object' ? guard.params : undefined
  return known(step.given, typeof params === 'function' ? params(step.given) : params)
}

function guardError({ guard, source }: AnyTransitionDefinition, { type }: EventObject, error: unknown): Error {
  const name = typeof guard === 'string' ? `'${guard}' ` : typeof guard === 'object' ? `'${guard.type}' ` : ''
  return new Error(
    `Unable to evaluate guard ${name}in transition for event '${type}' in state node '${source.id}':\n${(error as Error).message}`
  )
}

/** Counts a microstep, and reports it to the system's inspectors. */
function reportMicrostep(step: Macrostep, move?: TableTransition): void {
  const {
    snapshot,
    event,
    scope: { self, system }
  } = step
  move?.counted?.take(self)
  if (!isInspected(system)) return
  step.shown()
  ;(system as unknown as FullSystem)._sendInspectionEvent({
    type: '@xstate.microstep',
    actorRef: self,
    event,
    snapshot,
    _transitions: move ? [move.transition] : []
  })
}

function stopped(step: Macrostep, end: Partial<Snapshot<unknown>>): AnyMachineSnapshot {
  stopChildren(step)
  Object.assign(step.own, end, { children: NO_CHILDREN })
  reportMicrostep(step)
  return step.snapshot
}
