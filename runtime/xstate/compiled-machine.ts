import { assign, stopChild, type AnyActorRef, type AnyActorScope, type AnyMachineSnapshot, type AnyStateMachine, type AnyStateNode, type AnyTransitionDefinition, type ErrorActorEvent, type EventObject, type Snapshot, type UnknownAction } from 'xstate'
import { evaluateGuard } from 'xstate/guards'
import { NONE } from '../primitives/collections.ts'
import { Draft, perform, prepared, type PreparedAction, type Step } from './builtin-actions.ts'
import { LEAN } from './lean-actor.ts'
import { persistedChart } from './persisted-snapshot.ts'
import { mayCompile } from './self-check.ts'
import { chartTable, type ChartTable, type Configuration, type Move } from './transition-table.ts'

/**
 * Compiles a machine: its transitions are looked up in a table that is made once. Its actors behave, persist and restore exactly as
 * those of the original machine, so that each can restore snapshots of the other. A machine that is not flat is returned as it is, and
 * so is every machine if compiled charts do not agree with the installed version of XState.
 */
export function compiled<Machine extends AnyStateMachine>(machine: Machine, isTrusted = mayCompile(compile)): Machine {
  return isTrusted ? compile(machine) : machine
}

function compile<Machine extends AnyStateMachine>(machine: Machine): Machine {
  const table = chartTable(machine)
  if (!table) return machine
  const interpreter = new TableInterpreter(machine, table)
  const replaced: Pick<AnyStateMachine, 'getInitialSnapshot' | 'transition' | 'getPersistedSnapshot'> = {
    getInitialSnapshot: (scope, input) => interpreter.begin(scope, input),
    transition: (snapshot, event, scope) => interpreter.take(snapshot, event, scope),
    getPersistedSnapshot: persistedChart
  }
  return Object.assign(Object.create(Object.getPrototypeOf(machine)), machine, replaced, { [LEAN]: true })
}

type InitEvent = EventObject & { input: unknown }

/** Interpreter of a chart's table: takes macrosteps as XState does. */
class TableInterpreter {
  readonly #machine: AnyStateMachine
  readonly #table: ChartTable
  /** The action that sets the initial context, and the snapshot before it. */
  readonly #initial: readonly PreparedAction[]
  readonly #uninitialized: AnyMachineSnapshot

  constructor(machine: AnyStateMachine, table: ChartTable) {
    const { context } = machine.config
    const { root } = machine
    const given = typeof context === 'function' ? {} : context ?? {}
    this.#machine = machine
    this.#table = table
    this.#initial = typeof context === 'function' ? prepared([initialAction(context)], machine) : []
    this.#uninitialized = { ...table.start.target.template, status: 'active', context: given, _nodes: [root], tags: new Set(root.tags) } as AnyMachineSnapshot
  }

  begin(scope: AnyActorScope, input: unknown): AnyMachineSnapshot {
    const event: InitEvent = { type: 'xstate.init', input }
    const step: Step = { event, scope, internalQueue: [], deferredActorIds: undefined }
    const draft = new Draft(this.#uninitialized)
    try {
      perform(this.#initial, draft, step)
      return this.#settle(this.#move(this.#table.start, draft.snapshot, step), step)
    } catch (error) {
      return { ...draft.snapshot, status: 'error', error } as AnyMachineSnapshot
    }
  }

  take(before: AnyMachineSnapshot, event: EventObject, scope: AnyActorScope): AnyMachineSnapshot {
    const step: Step = { event, scope, internalQueue: [], deferredActorIds: undefined }
    if (event.type === 'xstate.init') return this.#settle(before, step)
    if (event.type === 'xstate.stop') return stopped(before, step, { status: 'stopped' })
    const move = this.#chosen(before, event)
    if (!move && event.type.startsWith('xstate.error.actor')) return stopped(before, step, { status: 'error', error: (event as ErrorActorEvent).error })
    return this.#settle(this.#moved(move, before, step), step)
  }

  /** Completes the macrostep: takes eventless transitions and raised events. */
  #settle(moved: AnyMachineSnapshot, first: Step): AnyMachineSnapshot {
    let snapshot = moved
    let step = first
    let isChanged = true
    const { maxIterations = Infinity } = this.#machine.options
    for (let steps = 1; snapshot.status === 'active'; steps += 1) {
      if (steps > maxIterations) throw endless(this.#machine)
      const before: AnyMachineSnapshot = snapshot
      const eventless: Move | undefined = isChanged ? this.#eventless(snapshot, step.event) : undefined
      if (!eventless) {
        const event = step.internalQueue.shift()
        if (!event) break
        step = { ...step, event }
      }
      snapshot = this.#moved(eventless ?? this.#chosen(snapshot, step.event), snapshot, step)
      isChanged = !eventless || snapshot !== before
    }
    if (snapshot.status !== 'active') perform(stopsOf(snapshot), new Draft(snapshot), step)
    return snapshot
  }

  #eventless(snapshot: AnyMachineSnapshot, event: EventObject): Move | undefined {
    for (const move of this.#configurationOf(snapshot).always) {
      if (holds(move.transition, snapshot, event)) return move
    }
    return undefined
  }

  /** The move of an event: the first whose guard holds, from the innermost state outwards. */
  #chosen(snapshot: AnyMachineSnapshot, event: EventObject): Move | undefined {
    for (const move of this.#configurationOf(snapshot).moves(event.type)) {
      try {
        if (holds(move.transition, snapshot, event)) return move
      } catch (error) {
        throw guardError(move.transition, event, error)
      }
    }
    return undefined
  }

  #moved(move: Move | undefined, before: AnyMachineSnapshot, step: Step): AnyMachineSnapshot {
    const snapshot = move ? this.#move(move, before, step) : before
    tellMicrostep(snapshot, step, move)
    return snapshot
  }

  #move({ steps, target, ends }: Pick<Move, 'steps' | 'target' | 'ends'>, before: AnyMachineSnapshot, step: Step): AnyMachineSnapshot {
    const draft = new Draft(before)
    for (const { actions, invoked } of steps) perform(actions, draft, invoked ? startingStep(step, invoked) : step)
    if (ends) Object.assign(draft.own, { status: 'done', output: this.#outputAt(ends, draft.snapshot, step) })
    if (draft.snapshot.status === 'done') perform(target.exits, draft, step)
    if (!before._nodes.includes(target.leaf)) {
      const { own } = draft
      const { value, tags, _nodes } = target.template
      own.value = value
      own.tags = tags
      own._nodes = _nodes
    }
    return draft.snapshot
  }

  /** The chart's output, made from that of its final state. */
  #outputAt(final: AnyStateNode, { context }: AnyMachineSnapshot, { event, scope: { self } }: Step): unknown {
    const { output } = this.#machine.root
    if (typeof output !== 'function') return output
    const result = typeof final.output === 'function' ? final.output({ context, event, self }) : final.output
    return output({ context, event: { type: `xstate.done.state.${final.id}`, output: result } as EventObject, self })
  }

  #configurationOf({ _nodes }: AnyMachineSnapshot): Configuration {
    for (let i = _nodes.length - 1; i >= 0; i -= 1) {
      const configuration = this.#table.configurations.get(_nodes[i] as AnyStateNode)
      if (configuration) return configuration
    }
    throw new TypeError('This snapshot is not one of this chart.')
  }
}

/** The error of a chart that exceeds `maxIterations`. XState's own text differs. */
function endless({ id, options: { maxIterations } }: AnyStateMachine): Error {
  return new Error(`The chart ${id} took more than ${maxIterations} microsteps in one macrostep. Look for a cycle of eventless transitions or raised events. If the chart needs more, set options.maxIterations.`)
}

/** The step with the ids of the actors that it starts. */
function startingStep({ event, scope, internalQueue }: Step, deferredActorIds: readonly string[]): Step {
  return { event, scope, internalQueue, deferredActorIds }
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

function holds({ guard }: AnyTransitionDefinition, snapshot: AnyMachineSnapshot, event: EventObject): boolean {
  return guard === undefined || evaluateGuard(guard, snapshot.context, event, snapshot)
}

function guardError({ guard, source }: AnyTransitionDefinition, { type }: EventObject, error: unknown): Error {
  const name = typeof guard === 'string' ? `'${guard}' ` : typeof guard === 'object' ? `'${guard.type}' ` : ''
  return new Error(`Unable to evaluate guard ${name}in transition for event '${type}' in state node '${source.id}':\n${(error as Error).message}`)
}

/** Reports a microstep to the system's inspectors. What a lean system counts is counted here, while nobody inspects it. */
function tellMicrostep(snapshot: AnyMachineSnapshot, { event, scope }: Step, move?: Move): void {
  const { self } = scope
  const system = scope.system as unknown as { readonly isInspected?: boolean; _sendInspectionEvent(seen: object): void }
  if (system.isInspected === false) move?.counted?.take(self)
  else system._sendInspectionEvent({ type: '@xstate.microstep', actorRef: self, event, snapshot, _transitions: move ? [move.transition] : [] })
}

function stopped(before: AnyMachineSnapshot, step: Step, end: Partial<Snapshot<unknown>>): AnyMachineSnapshot {
  const draft = new Draft(before)
  perform(stopsOf(before), draft, step)
  const snapshot = { ...draft.snapshot, ...end } as AnyMachineSnapshot
  tellMicrostep(snapshot, step)
  return snapshot
}

function stopsOf({ children, machine }: AnyMachineSnapshot): readonly PreparedAction[] {
  const living = Object.values(children as Record<string, AnyActorRef>)
  return living.length === 0 ? NONE : prepared(living.map(child => stopChild(child)), machine)
}
