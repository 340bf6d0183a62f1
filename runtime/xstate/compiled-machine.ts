import {
  type AnyActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type AnyTransitionDefinition,
  assign,
  type ErrorActorEvent,
  type EventObject,
  pathToStateValue,
  type Snapshot,
  spawnChild,
  stopChild,
  type UnknownAction
} from 'xstate'
import { evaluateGuard } from 'xstate/guards'
import { isErrorType, OWN_EVENT, stateDoneType } from '../../machines/xstate-names.ts'
import { NONE } from '../primitives/collections.ts'
import { type FullSystem, isInspected } from './actor-system.ts'
import {
  Macrostep,
  NO_CHILDREN,
  performActions,
  prepareActions,
  type PreparedAction,
  stopChildren
} from './builtin-actions.ts'
import { mayCompile } from './self-check.ts'
import { statesOf } from './state-nodes.ts'
import { type Counted, countedOf } from './transition-counter.ts'

/** Actions of one exited or entered state; `invoked` are the ids of its invoked actors. */
interface Actions {
  readonly actions: readonly PreparedAction[]
  readonly invoked?: readonly string[]
}

/** A transition from one configuration, with its actions, in order, and its target. */
interface TableTransition {
  readonly transition: AnyTransitionDefinition
  readonly counted: Counted | undefined
  readonly steps: readonly Actions[]
  readonly target: TableState
  /** The final state in which the chart ends, if it does. */
  readonly ends: AnyStateNode | undefined
}

/** A configuration of a chart: a leaf state and its ancestors. */
interface TableState {
  readonly leaf: AnyStateNode
  /** A snapshot in this configuration; its context and children are ignored. */
  readonly template: AnyMachineSnapshot
  /** Exit actions of all states, for a chart that ends here. */
  readonly exits: readonly PreparedAction[]
  /** Candidate moves of an event type, in the order of their guards. */
  moves(type: string): readonly TableTransition[]
  /** Candidate eventless moves, in the order of their guards. */
  readonly always: readonly TableTransition[]
}

/** A chart as a table: its initial move, and its configurations by leaf state. */
interface ChartTable {
  readonly start: Pick<TableTransition, 'steps' | 'target' | 'ends'>
  readonly configurations: ReadonlyMap<AnyStateNode, TableState>
}

/**
 * Makes a chart's table; `undefined` for a chart that is not flat: with parallel states, history, or a nested final
 * state.
 */
function chartTable(machine: AnyStateMachine): ChartTable | undefined {
  const nodes = statesOf(machine.root)
  if (!nodes.every(isFlat)) return undefined
  const configurations = new Map<AnyStateNode, TableState>()
  const at = (leaf: AnyStateNode) => configurations.get(leaf) as TableState
  for (const leaf of nodes.filter(isInnermost)) configurations.set(leaf, configurationOf(machine, leaf, at))
  const path = initialPath(machine.root)
  return {
    start: {
      steps: stepsOf(
        path.map(node => entryActions(node)),
        machine
      ),
      ...targetOf(path, at)
    },
    configurations
  }
}

function configurationOf(
  machine: AnyStateMachine,
  leaf: AnyStateNode,
  at: (leaf: AnyStateNode) => TableState
): TableState {
  const nodes = [leaf, ...ancestorsOf(leaf)]
  // Moves are made lazily, because their target configurations may not exist yet.
  const move = (transition: AnyTransitionDefinition): TableTransition => moveOf(transition, leaf, at)
  const named = new Set(nodes.flatMap(node => [...node.transitions.keys()]))
  const wildcards = [...named]
    .filter(descriptor => descriptor.endsWith('*'))
    .map(descriptor => ({ prefix: descriptor.slice(0, -1), name: `${descriptor} ` }))
  const ofTypes = new Map<string, TableTransition[]>()
  const ofWildcards = new Map<string, TableTransition[]>()
  let always: TableTransition[] | undefined
  return {
    leaf,
    template: machine.resolveState({ value: pathToStateValue(leaf.path), context: {} }),
    exits: prepareActions(
      nodes.flatMap(node => node.exit),
      machine
    ),
    moves: type => {
      const found = ofTypes.get(type)
      if (found) return found
      // There is no limit to unknown event types. Those that match the same wildcards share their moves: the key is the
      // list of these wildcards, such as `a.* a.b.* `.
      let key = named.has(type) ? type : ''
      const known = key === '' ? ofWildcards : ofTypes
      if (key === '') for (const wildcard of wildcards) if (isBelow(type, wildcard.prefix)) key += wildcard.name
      const before = known.get(key)
      if (before) return before
      const moves = nodes.flatMap(node => transitionsOf(node, type)).map(move)
      known.set(key, moves)
      return moves
    },
    get always() {
      return (always ??= nodes.flatMap(node => node.always ?? []).map(move))
    }
  }
}

/** The move of a transition in a flat chart: XState's rules for domain, exit set and entry set with one region. */
function moveOf(
  transition: AnyTransitionDefinition,
  leaf: AnyStateNode,
  at: (leaf: AnyStateNode) => TableState
): TableTransition {
  const { source, reenter, actions } = transition
  const [target] = transition.target ?? []
  const counted = countedOf(transition)
  if (!target)
    return { transition, counted, steps: stepsOf([{ actions }], leaf.machine), target: at(leaf), ends: undefined }
  const staysInside = !reenter && (target === source || isInside(target, source))
  const domain = staysInside ? source : (ancestorsOf(target).find(node => isInside(source, node)) as AnyStateNode)
  const exited = [leaf, ...ancestorsOf(leaf)].filter(node => isInside(node, domain))
  const around = ancestorsOf(target)
    .filter(node => isInside(node, domain))
    .toReversed()
  const inner = initialPath(target)
  const entries = [
    ...around.map(node => entryActions(node, false)),
    ...inner.filter(node => node !== domain).map(node => entryActions(node))
  ]
  return {
    transition,
    counted,
    steps: stepsOf([...exited.map(exitActions), { actions }, ...entries], leaf.machine),
    ...targetOf(inner, at)
  }
}

function targetOf(
  path: readonly AnyStateNode[],
  at: (leaf: AnyStateNode) => TableState
): Pick<TableTransition, 'target' | 'ends'> {
  const leaf = path.at(-1) as AnyStateNode
  return { target: at(leaf), ends: leaf.type === 'final' ? leaf : undefined }
}

/** Actions as declared in the chart. */
type DeclaredActions = Omit<Actions, 'actions'> & { readonly actions: readonly UnknownAction[] }

function exitActions(node: AnyStateNode): DeclaredActions {
  return { actions: [...node.exit, ...node.invoke.map(({ id }) => stopChild(id))] }
}

function entryActions(node: AnyStateNode, byDefault = true): DeclaredActions {
  const spawns = node.invoke.map(invoke =>
    spawnChild(invoke.src, { ...invoke, syncSnapshot: Boolean(invoke.onSnapshot) } as object)
  )
  const initial = byDefault ? node.initial.actions : []
  const actions = [...node.entry, ...spawns, ...initial] as UnknownAction[]
  return spawns.length > 0 ? { actions, invoked: node.invoke.map(({ id }) => id) } : { actions }
}

function stepsOf(steps: readonly DeclaredActions[], machine: AnyStateMachine): readonly Actions[] {
  return steps
    .filter(({ actions }) => actions.length > 0)
    .map(({ actions, ...invoked }) => ({ actions: prepareActions(actions, machine), ...invoked }))
}

/** A node's transitions for an event: of its exact type first, then of wildcards, longest first. */
function transitionsOf(node: AnyStateNode, type: string): AnyTransitionDefinition[] {
  const wildcards = [...node.transitions.keys()].filter(descriptor => descriptor !== type && matches(type, descriptor))
  return [type, ...wildcards.toSorted((a, b) => b.length - a.length)].flatMap(
    descriptor => node.transitions.get(descriptor) ?? []
  )
}

/** `*` matches every type; `a.*` matches `a` and every type that begins with `a.`. */
function matches(type: string, descriptor: string): boolean {
  return descriptor === '*' || (descriptor.endsWith('.*') && isBelow(type, descriptor.slice(0, -1)))
}

/** Whether a type begins with a prefix such as `a.`, or is `a`. */
function isBelow(type: string, prefix: string): boolean {
  return type.startsWith(prefix) || (type.length === prefix.length - 1 && prefix.startsWith(type))
}

function isFlat(node: AnyStateNode): boolean {
  if (!['atomic', 'compound', 'final'].includes(node.type)) return false
  if (node.parent ? node.type === 'final' && node.parent.parent : node.type !== 'compound') return false
  const transitions = [...node.transitions.values(), node.always ?? []].flat()
  const isOdd = ({ target = [], reenter }: AnyTransitionDefinition) =>
    target.length > 1 || (!node.parent && reenter) || target.some(({ parent }) => !parent)
  return (
    !transitions.some(isOdd) && ![...node.transitions.keys()].some(descriptor => descriptor.slice(0, -1).includes('*'))
  )
}

function ancestorsOf({ parent }: AnyStateNode): AnyStateNode[] {
  return parent ? [parent, ...ancestorsOf(parent)] : []
}

function isInside(node: AnyStateNode, outer: AnyStateNode): boolean {
  return ancestorsOf(node).includes(outer)
}

function isInnermost({ type }: AnyStateNode): boolean {
  return type !== 'compound'
}

/** A state and its nested initial states, outermost first. */
function initialPath(node: AnyStateNode): AnyStateNode[] {
  const [initial] = node.initial.target
  return initial ? [node, ...initialPath(initial)] : [node]
}

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
