import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate'
import { isObject } from '../../machines/protocol/codec/json.ts'
import {
  doneType,
  errorType,
  isMadeUp,
  isOwnName,
  OWN_EVENT,
  snapshotType,
  stateDoneType,
  writtenName
} from '../../machines/xstate-names.ts'
import { refuseOtherMajor } from './other-majors.ts'
import { statesOf, transitionName, transitionsOf, writtenGuard } from './state-nodes.ts'

/**
 * The outline of a chart as its author wrote it. Drawings, walks, plans, coverage, proofs, checks and the inspector
 * read charts here, and not in XState.
 */
export interface WrittenChart {
  readonly id: string
  /** The first context; a function of the input if the author wrote one. */
  readonly context: unknown
  /** The output and the options of the chart, as written. */
  readonly output: unknown
  readonly options: unknown
  readonly root: WrittenState
  /** All states, parents before their children. */
  readonly states: readonly WrittenState[]
  readonly transitions: readonly WrittenTransition[]
}

/** A state of a chart. */
export interface WrittenState {
  /** XState's id: `task.active.working`, or the author's. */
  readonly id: string
  /** Whether the author gave the id. */
  readonly hasOwnId: boolean
  readonly key: string
  /** The keys from the root to the state; empty for the root. */
  readonly path: readonly string[]
  readonly type: 'atomic' | 'compound' | 'parallel' | 'final' | 'history'
  readonly parent: WrittenState | undefined
  readonly states: readonly WrittenState[]
  /** The initial states of a compound state; those that a history state enters without history. */
  readonly initial: readonly WrittenState[]
  /** The actions of the way into the initial state. */
  readonly initialActions: readonly WrittenAction[]
  /** The output of a final state, as written. */
  readonly output: unknown
  readonly history: 'shallow' | 'deep' | undefined
  /** The target of a history state, as written. */
  readonly historyTarget: unknown
  readonly tags: readonly string[]
  readonly description: string | undefined
  readonly meta: Readonly<Record<string, unknown>> | undefined
  readonly entry: readonly WrittenAction[]
  readonly exit: readonly WrittenAction[]
  readonly invoke: readonly WrittenActor[]
  /** The transitions on events in XState's order, then the eventless ones. */
  readonly transitions: readonly WrittenTransition[]
  /** The effect of an event `xstate.route` to the state. */
  readonly route: Omit<TransitionBody, 'targets'> | undefined
}

/** The effect of a transition. */
interface TransitionBody {
  /** Empty if it stays in its state. */
  readonly targets: readonly WrittenState[]
  /** The author's guard, without guards that were added to it. */
  readonly guard: WrittenGuard | undefined
  readonly actions: readonly WrittenAction[]
  readonly reenter: boolean
  readonly description: string | undefined
}

/** A transition of a chart. */
export interface WrittenTransition extends TransitionBody {
  /** Unique in its chart. */
  readonly name: string
  readonly source: WrittenState
  /** The type of its event in XState; empty for an eventless one. */
  readonly event: string
  /** The member of its state's configuration that has it. XState makes those of `route`, on the root. */
  readonly member: 'on' | 'after' | 'always' | 'onDone' | 'invoke' | 'route'
  /** The delay of `after`, in milliseconds, or its name. */
  readonly delay: number | string | undefined
}

/** A guard: by its name, a function written inline (its name may be empty), or guards in one. */
export type WrittenGuard =
  | { readonly kind: 'named'; readonly name: string; readonly params?: unknown }
  | { readonly kind: 'inline'; readonly name: string; readonly run: (...given: never) => unknown }
  | { readonly kind: 'and' | 'or' | 'not'; readonly guards: readonly WrittenGuard[] }

/** An action: by its name, one of XState's, as `assign`, or a function written inline (its name may be empty). */
export interface WrittenAction {
  readonly kind: 'named' | 'own' | 'inline'
  readonly name: string
  /** The action itself, with its params. */
  readonly written: unknown
}

/** An actor that a state invokes. */
export interface WrittenActor {
  readonly id: string
  /** Whether the author gave the id. */
  readonly hasOwnId: boolean
  /** The name of its logic; none if that is written inline. */
  readonly src: string | undefined
  /** The name of its logic in a stored snapshot, also of logic that is written inline. */
  readonly storedSrc: string
  /** All that its state says of it, with its input, and its logic if that is written inline. */
  readonly written: unknown
  readonly onDone: readonly WrittenTransition[]
  readonly onError: readonly WrittenTransition[]
  readonly onSnapshot: readonly WrittenTransition[]
}

const written = new WeakMap<AnyStateNode, WrittenChart>()

/** The outline of a chart. It is made once for each machine. */
export function writtenChart(machine: AnyStateMachine): WrittenChart {
  refuseOtherMajor(machine, 'The chart')
  const { id, root, config } = machine
  const known = written.get(root)
  if (known) return known
  const states = new Map<AnyStateNode, Draft>()
  for (const node of statesOf(root)) states.set(node, draftOf(node, node.parent && states.get(node.parent)))
  const at = (node: AnyStateNode): WrittenState => states.get(node) as Draft
  for (const [node, state] of states) connect(state, node, at)
  const all = [...states.values()]
  const chart: WrittenChart = {
    id,
    context: config.context as unknown,
    output: config.output as unknown,
    options: config.options,
    root: at(root),
    states: all,
    transitions: all.flatMap(({ transitions }) => transitions)
  }
  written.set(root, chart)
  return chart
}

/** A state and all its descendants. */
export function statesWithin(state: WrittenState): WrittenState[] {
  return [state, ...state.states.flatMap(statesWithin)]
}

const takenNames = new WeakMap<object, string>()

/** The name of a transition that an actor took, as XState's inspection shows it. */
export function takenName(transition: object): string {
  const known = takenNames.get(transition)
  if (known !== undefined) return known
  const name = transitionName(transition as AnyTransitionDefinition)
  takenNames.set(transition, name)
  return name
}

/** A state whose connections to others are not known yet. */
type Draft = { -readonly [Member in keyof WrittenState]: WrittenState[Member] }

function draftOf(node: AnyStateNode, parent: WrittenState | undefined): Draft {
  const { id, key, path, type, history, tags, description, meta, config } = node
  return {
    id,
    hasOwnId: config.id !== undefined,
    key,
    path,
    type,
    parent,
    states: [],
    initial: [],
    initialActions: type === 'compound' ? readActions(node.initial.actions) : [],
    output: config.output,
    history: type === 'history' ? (history === 'deep' ? 'deep' : 'shallow') : undefined,
    historyTarget: (config as { readonly target?: unknown }).target,
    tags,
    description: typeof description === 'string' ? description : undefined,
    meta: meta as WrittenState['meta'],
    // The node's own lists also have XState's timers of `after`.
    entry: readActions(config.entry),
    exit: readActions(config.exit),
    invoke: [],
    transitions: [],
    route: undefined
  }
}

function connect(state: Draft, node: AnyStateNode, at: (node: AnyStateNode) => WrittenState): void {
  state.states = Object.values(node.states).map(at)
  state.initial = beginningOf(node).map(at)
  state.transitions = transitionsOf(node).map(transition => transitionOf(transition, at))
  const { route } = node.config as { readonly route?: Partial<AnyTransitionDefinition> }
  if (route) state.route = bodyOf(route, writtenGuard(route.guard), at)
  const invoked: readonly unknown[] = [node.config.invoke ?? []].flat()
  state.invoke = node.invoke.map(({ id, src }, i): WrittenActor => {
    const on = (type: string) => state.transitions.filter(({ event }) => event === type)
    return {
      id,
      hasOwnId: !isMadeUp(id),
      src: isMadeUp(src as string) ? undefined : (src as string),
      storedSrc: src as string,
      written: invoked[i],
      onDone: on(doneType(id)),
      onError: on(errorType(id)),
      onSnapshot: on(snapshotType(id))
    }
  })
}

function transitionOf(
  transition: AnyTransitionDefinition,
  at: (node: AnyStateNode) => WrittenState
): WrittenTransition {
  const { source, eventType: event, delay } = transition as AnyTransitionDefinition & Pick<WrittenTransition, 'delay'>
  const isOfRoute = isRoute(transition)
  return {
    name: transitionName(transition),
    source: at(source),
    event,
    member: isOfRoute ? 'route' : memberOf(source, event, delay),
    delay,
    ...bodyOf(transition, isOfRoute ? partsOf(transition.guard)[1] : writtenGuard(transition.guard), at)
  }
}

function bodyOf(
  { target = [], actions, reenter, description }: Partial<AnyTransitionDefinition & { description: unknown }>,
  guard: unknown,
  at: (node: AnyStateNode) => WrittenState
): TransitionBody {
  return {
    targets: target.map(at),
    guard: guard === undefined ? undefined : readGuard(guard),
    actions: readActions(actions),
    reenter: reenter === true,
    description: typeof description === 'string' ? description : undefined
  }
}

function memberOf(
  { id, invoke }: AnyStateNode,
  event: string,
  delay: WrittenTransition['delay']
): WrittenTransition['member'] {
  if (delay !== undefined) return 'after'
  if (event === '') return 'always'
  if (event === stateDoneType(id)) return 'onDone'
  const types = invoke.flatMap(({ id }): string[] => [doneType(id), errorType(id), snapshotType(id)])
  return types.includes(event) ? 'invoke' : 'on'
}

function beginningOf(node: AnyStateNode): readonly AnyStateNode[] {
  if (node.type === 'compound') return node.initial.target
  if (node.type !== 'history' || !node.parent) return []
  const { target } = node.config as { target?: string }
  return target === undefined ? beginningOf(node.parent) : [stateAt(node.parent, target)]
}

/** The state at a path below a state, or with an id. */
function stateAt(node: AnyStateNode, path: string): AnyStateNode {
  if (path.startsWith('#')) return node.machine.getStateNodeById(path)
  return path
    .split('.')
    .filter(key => key !== '')
    .reduce((at, key) => at.states[key] as AnyStateNode, node)
}

/**
 * Whether XState made a transition of its root of a state's `route`. It has a guard that compares the event's `to` with
 * the state's id, and then the author's.
 */
function isRoute({ eventType, guard }: AnyTransitionDefinition): boolean {
  return eventType === OWN_EVENT.route && Object(partsOf(guard)[0]).name === 'routeMatches'
}

/** The guards that a guard combines, or itself. */
function partsOf(guard: unknown): readonly unknown[] {
  return (Object(guard) as { guards?: readonly unknown[] }).guards ?? [guard]
}

/** A guard as a chart has it, read. */
export function readGuard(guard: unknown): WrittenGuard {
  if (typeof guard === 'string') return { kind: 'named', name: guard }
  const { type, params, guards, name } = Object(guard) as {
    type?: unknown
    params?: unknown
    guards?: readonly unknown[]
    name?: unknown
  }
  if (guards && (name === 'and' || name === 'or' || name === 'not'))
    return { kind: name, guards: guards.map(readGuard) }
  if (typeof type === 'string') return { kind: 'named', name: type, ...(params !== undefined && { params }) }
  return { kind: 'inline', name: typeof name === 'string' && name !== 'guard' ? name : '', run: guard as () => unknown }
}

/** Functions written inline in a chart get the name of the member that holds them. */
const HOLDERS = new Set(['', 'entry', 'exit', 'actions'])

/** The actions of a member of a chart, read. */
export function readActions(actions: unknown): WrittenAction[] {
  return actions === undefined ? [] : [actions].flat().map(readAction)
}

function readAction(action: unknown): WrittenAction {
  if (typeof action === 'string') return { kind: 'named', name: action, written: action }
  const { type, name } = Object(action) as { type?: unknown; name?: unknown }
  if (typeof type === 'string')
    return { kind: isOwnName(type) ? 'own' : 'named', name: writtenName(type), written: action }
  return { kind: 'inline', name: typeof name === 'string' && !HOLDERS.has(name) ? name : '', written: action }
}

/**
 * The name of a guard, with its static params (`says: yes`); `a condition` if it has none; combined guards as in `not
 * isFull and isOpen`.
 */
export function guardName(guard: WrittenGuard): string {
  switch (guard.kind) {
    case 'named':
      return guard.params === undefined || typeof guard.params === 'function'
        ? guard.name
        : `${guard.name}: ${paramsText(guard.params)}`
    case 'not':
      return `not ${guard.guards.map(operandName).join()}`
    case 'and':
    case 'or':
      return guard.guards.map(operandName).join(` ${guard.kind} `)
    case 'inline':
    default:
      return guard.name || 'a condition'
  }
}

/** The name of an action: `assign` for one of XState's own, `a function` for one without a name. */
export function actionName({ name }: WrittenAction): string {
  return name || 'a function'
}

/** The name of a guard within a combined one: in parentheses if it combines guards itself. */
function operandName(guard: WrittenGuard): string {
  return 'guards' in guard && guard.guards.length > 1 ? `(${guardName(guard)})` : guardName(guard)
}

/** Static params: `yes`, `{ limit: 10, of: … }`. */
function paramsText(params: unknown): string {
  if (Array.isArray(params)) return `[${params.map(memberText).join(', ')}]`
  return isObject(params)
    ? `{ ${Object.entries(params)
        .map(([key, value]) => `${key}: ${memberText(value)}`)
        .join(', ')} }`
    : memberText(params)
}

function memberText(value: unknown): string {
  return typeof value === 'function' || (typeof value === 'object' && value !== null) ? '…' : String(value)
}
