import type { AnyActorLogic, AnyMachineSnapshot, AnyStateMachine, AnyStateNode, StateValue } from 'xstate'
import { plainCopy } from '../primitives/json.ts'
import { statesOf, writtenConfig, noteWrittenConfig } from './state-nodes.ts'

/** An actor as XState persists it. A machine has all of these members; other logic has none of the optional ones. */
export interface PersistedSnapshot {
  readonly status?: string
  readonly value?: StateValue
  readonly historyValue?: Readonly<Record<string, readonly { readonly id: string }[]>>
  readonly children?: Readonly<Record<string, { readonly src: unknown; readonly snapshot: PersistedSnapshot }>>
  /** The ids of the active states in the order in which they were entered, of a machine with regions. */
  readonly entered?: readonly string[]
  /** The ids of the actors that the active states invoke, and that the machine has stopped. */
  readonly stopped?: readonly string[]
}

/**
 * Has a machine persist what XState leaves out. Of one with regions that is the order in which its states were entered:
 * XState restores the order of the chart, and takes another eventless transition first if several regions have one. And
 * it is which invoked actors were stopped: they are not missing.
 */
export function keepDetails(machine: AnyStateMachine): AnyStateMachine {
  const nodes = statesOf(machine.root)
  const hasRegions = nodes.some(({ type }) => type === 'parallel')
  if (!hasRegions && nodes.every(({ invoke }) => invoke.length === 0)) return machine
  const persist = machine.getPersistedSnapshot.bind(machine)
  const restore = machine.restoreSnapshot.bind(machine)
  const replaced: Pick<AnyStateMachine, 'getPersistedSnapshot' | 'restoreSnapshot'> = {
    getPersistedSnapshot: (snapshot, options) => {
      const { _nodes: active, children } = snapshot
      const stopped = active.flatMap(({ invoke }) => invoke.flatMap(({ id }) => (id in children ? [] : [id])))
      return {
        ...persist(snapshot, options),
        ...(hasRegions && { entered: active.map(({ id }) => id) }),
        ...(stopped.length > 0 && { stopped })
      }
    },
    restoreSnapshot: (persisted, scope) => {
      const { entered = [], stopped: _, ...others } = persisted as PersistedSnapshot
      const snapshot = restore(others as typeof persisted, scope)
      return Object.assign(snapshot, {
        _nodes: snapshot._nodes.toSorted((one, other) => entered.indexOf(one.id) - entered.indexOf(other.id))
      })
    }
  }
  return Object.assign(machine, replaced)
}

/**
 * Why a persisted actor does not fit this logic, in a clause that names what is missing; `undefined` if it fits. XState
 * itself restores most misfits silently: it drops actors and history whose logic or state is missing, and does not
 * start a newly invoked actor.
 */
export function misfit(logic: AnyActorLogic, snapshot: PersistedSnapshot, name = 'the work'): string | undefined {
  if (isMachine(logic) !== 'value' in snapshot)
    return `${name} ${isMachine(logic) ? 'was no statechart, and is one now' : 'was a statechart, and is none now'}`
  if (!isMachine(logic) || snapshot.status !== 'active') return undefined
  return (
    stateMisfit(logic.root, snapshot.value) ??
    historyMisfit(logic, snapshot) ??
    activeMisfit(logic, snapshot) ??
    childMisfit(logic, snapshot)
  )
}

function stateMisfit(node: AnyStateNode, value: unknown): string | undefined {
  const inner: [string, unknown][] = typeof value === 'string' ? [[value, {}]] : Object.entries(value as object)
  for (const [key, below] of inner) {
    const child = node.states[key]
    const fault = child ? stateMisfit(child, below) : `the chart has no state ${[node.id, key].join('.')}`
    if (fault !== undefined) return fault
  }
  return undefined
}

function historyMisfit({ root }: AnyStateMachine, { historyValue = {} }: PersistedSnapshot): string | undefined {
  const ids = new Set(statesOf(root).map(({ id }) => id))
  const gone = Object.values(historyValue)
    .flat()
    .find(({ id }) => !ids.has(id))
  return gone && `the chart has no state ${gone.id}, to which its history leads`
}

/** A misfit of the active states: the chart has ended in them, or they invoke an actor that was not stored. */
function activeMisfit(
  machine: AnyStateMachine,
  { value, children = {}, stopped = [] }: PersistedSnapshot
): string | undefined {
  const { status, _nodes: nodes } = machine.resolveState({ value: value as StateValue, context: {} })
  if (status === 'done') return `the chart ends in the state ${nodes.at(-1)?.id}`
  for (const node of nodes) {
    const missing = node.invoke.find(({ id }) => !(id in children || stopped.includes(id)))
    if (missing) return `the state ${node.id} invokes an actor ${missing.id}, which was not there`
  }
  return undefined
}

function childMisfit(
  { implementations, root }: AnyStateMachine,
  { children = {} }: PersistedSnapshot
): string | undefined {
  for (const [id, { src, snapshot }] of Object.entries(children)) {
    const logic = implementations.actors[String(src)] as AnyActorLogic | undefined
    // A chart below the work may invoke inline logic, which XState names.
    if (!logic && statesOf(root).some(({ invoke }) => invoke.some(each => each.src === src))) continue
    const fault = logic
      ? misfit(logic, snapshot, `the actor ${id}`)
      : `the chart has no logic ${String(src)} for the actor ${id}`
    if (fault !== undefined) return fault
  }
  return undefined
}

/** An active state of a chart. XState's nodes have these members, and more that only this room reads. */
export interface ActiveState {
  readonly id: string
  /** Its place among the states of its chart, parents first. */
  readonly order: number
  readonly tags: readonly string[]
  readonly meta?: Readonly<Record<string, unknown>> | undefined
  readonly parent?: ActiveState | undefined
}

/** The active states of an actor that is no chart. Shared, so that comparisons find no change. */
const NO_STATES: readonly ActiveState[] = []

/** The active states of a chart's snapshot. */
export function activeStates(snapshot: object): readonly ActiveState[] {
  return (snapshot as Partial<Pick<AnyMachineSnapshot, '_nodes'>>)._nodes ?? NO_STATES
}

/** The active states of a stored value of a chart; none if the chart has no such states. */
export function statesOfValue(machine: AnyStateMachine, value: StateValue): readonly ActiveState[] {
  return stateMisfit(machine.root, value) === undefined
    ? activeStates(machine.resolveState({ value, context: {} }))
    : NO_STATES
}

/** Whether a state is another one, or nested in it. */
export function isWithin<State extends { readonly parent?: State | undefined }>(
  state: State | undefined,
  outer: State
): boolean {
  return state !== undefined && (state === outer || isWithin(state.parent, outer))
}

/** Whether a snapshot of an actor is that of a chart. */
export function isChart(snapshot: object | undefined): snapshot is AnyMachineSnapshot {
  return snapshot !== undefined && '_nodes' in snapshot
}

export function isMachine(logic: AnyActorLogic): logic is AnyStateMachine {
  return 'implementations' in logic && 'provide' in logic
}

/**
 * The machine, whose actors each begin with a copy of a constant context: an assignment that changes it in place would
 * reach all of them.
 */
export function withOwnContext<Machine extends AnyStateMachine>(machine: Machine): Machine {
  const { config } = machine
  const { context } = config
  if (typeof context !== 'object') return machine
  const own = Object.assign(machine.provide({}), {
    config: { ...config, context: () => plainCopy(context) }
  }) as Machine
  noteWrittenConfig(own.config, writtenConfig(config))
  return own
}
