import { assign, stopChild, type AnyActorRef, type AnyActorScope, type AnyMachineSnapshot, type AnyStateMachine, type AnyStateNode, type AnyTransitionDefinition, type ErrorActorEvent, type EventObject, type Snapshot, type UnknownAction } from 'xstate'
import { evaluateGuard } from 'xstate/guards'
import { Draft, perform, prepared, tellInspectors, type PreparedAction, type Step } from './builtin-actions.ts'
import { persistedChart } from './persisted-snapshot.ts'
import { mayCompile } from './self-check.ts'
import { chartTable, type ChartTable, type Configuration, type Move } from './transition-table.ts'

/**
 * The machine with its transitions looked up in a table that is made once, instead of being worked out from the chart
 * each time. All else is the machine's: actors of it do, show, persist and restore exactly what the machine's own would,
 * so that either kind goes on from what the other stored. A machine that is not flat is given back as it is, and so is every
 * machine if XState is a version with which compiled charts do not agree.
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
  return Object.assign(Object.create(Object.getPrototypeOf(machine)), machine, replaced)
}

type InitEvent = EventObject & { input: unknown }

/** Runs a chart's table: macrosteps as XState takes them, of microsteps that the table holds. */
class TableInterpreter {
  readonly #machine: AnyStateMachine
  readonly #table: ChartTable
  /** What gives an actor its first context, and its snapshot before that. */
  readonly #birth: readonly PreparedAction[]
  readonly #unborn: AnyMachineSnapshot

  constructor(machine: AnyStateMachine, table: ChartTable) {
    const { context } = machine.config
    const { root } = machine
    const given = typeof context === 'function' ? {} : context ?? {}
    this.#machine = machine
    this.#table = table
    this.#birth = typeof context === 'function' ? prepared([birthOf(context)], machine) : []
    this.#unborn = { ...table.start.target.template, status: 'active', context: given, _nodes: [root], tags: new Set(root.tags) } as AnyMachineSnapshot
  }

  begin(scope: AnyActorScope, input: unknown): AnyMachineSnapshot {
    const event: InitEvent = { type: 'xstate.init', input }
    const step: Step = { event, scope, internalQueue: [], deferredActorIds: undefined }
    const born = new Draft(this.#unborn)
    try {
      perform(this.#birth, born, step)
      return this.#settle(this.#move(this.#table.start, born.snapshot, step), step)
    } catch (error) {
      return { ...born.snapshot, status: 'error', error } as AnyMachineSnapshot
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

  /** Goes on with what happens by itself: the events that the chart raises, and transitions without an event. */
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

  /** The move that an event makes: the first whose guard holds, from the innermost state outwards. */
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
    tellInspectors(snapshot, step, move ? [move.transition] : [])
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

  /** The chart's output, which is made of that of the final state that it ends in. */
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

/** The error of a chart that goes on and on by itself. The machine's own has another text. */
function endless({ id, options: { maxIterations } }: AnyStateMachine): Error {
  return new Error(`The chart ${id} took more than ${maxIterations} steps without coming to rest. Look for a cycle of transitions without an event, or of events that it raises; a chart that needs more steps sets options.maxIterations.`)
}

/** A step in which these actors start. */
function startingStep({ event, scope, internalQueue }: Step, deferredActorIds: readonly string[]): Step {
  return { event, scope, internalQueue, deferredActorIds }
}

/** The context's factory as an action, which is how XState runs it too. */
function birthOf(context: (args: object) => object): UnknownAction {
  return assign(args => context(new BirthArgs(args)))
}

/** What a context's factory is given. `spawn` is taken only by one that wants it: without it an assignment costs less. */
class BirthArgs {
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

function stopped(before: AnyMachineSnapshot, step: Step, end: Partial<Snapshot<unknown>>): AnyMachineSnapshot {
  const draft = new Draft(before)
  perform(stopsOf(before), draft, step)
  const snapshot = { ...draft.snapshot, ...end } as AnyMachineSnapshot
  tellInspectors(snapshot, step, [])
  return snapshot
}

function stopsOf({ children, machine }: AnyMachineSnapshot): PreparedAction[] {
  return prepared(Object.values(children as Record<string, AnyActorRef>).map(child => stopChild(child)), machine)
}
