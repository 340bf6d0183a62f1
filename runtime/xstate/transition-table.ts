import {
  pathToStateValue,
  spawnChild,
  stopChild,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type AnyStateNode,
  type AnyTransitionDefinition,
  type UnknownAction
} from 'xstate'
import { prepareActions, type PreparedAction } from './builtin-actions.ts'
import { statesOf } from './state-nodes.ts'
import { type Counted, countedOf } from './transition-counter.ts'

/** Actions of one exited or entered state; `invoked` are the ids of its invoked actors. */
export interface Actions {
  readonly actions: readonly PreparedAction[]
  readonly invoked?: readonly string[]
}

/** A transition from one configuration, with its actions, in order, and its target. */
export interface TableTransition {
  readonly transition: AnyTransitionDefinition
  readonly counted: Counted | undefined
  readonly steps: readonly Actions[]
  readonly target: TableState
  /** The final state in which the chart ends, if it does. */
  readonly ends: AnyStateNode | undefined
}

/** A configuration of a chart: a leaf state and its ancestors. */
export interface TableState {
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
export interface ChartTable {
  readonly start: Pick<TableTransition, 'steps' | 'target' | 'ends'>
  readonly configurations: ReadonlyMap<AnyStateNode, TableState>
}

/**
 * Makes a chart's table; `undefined` for a chart that is not flat: with parallel states, history, or a nested final
 * state.
 */
export function chartTable(machine: AnyStateMachine): ChartTable | undefined {
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
      // Unknown event types share the moves of their wildcards, since their number is unbounded.
      let name = named.has(type) ? type : ''
      const known = name === '' ? ofWildcards : ofTypes
      if (name === '') for (const wildcard of wildcards) if (isBelow(type, wildcard.prefix)) name += wildcard.name
      const before = known.get(name)
      if (before) return before
      const moves = nodes.flatMap(node => transitionsOf(node, type)).map(move)
      known.set(name, moves)
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
