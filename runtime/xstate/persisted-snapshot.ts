import type { AnyActorLogic, AnyMachineSnapshot, AnyStateMachine, AnyStateNode, Snapshot, StateValue } from 'xstate'

/** An actor as XState persists it: of a machine with all that is optional here, of other logic without. */
export interface PersistedSnapshot {
  readonly status?: string
  readonly value?: StateValue
  readonly historyValue?: Readonly<Record<string, readonly { readonly id: string }[]>>
  readonly children?: Readonly<Record<string, { readonly src: unknown; readonly snapshot: PersistedSnapshot }>>
}

/**
 * Why a persisted actor cannot go on with this logic, in a clause that names what is missing; `undefined` if it can.
 * XState itself restores most of what does not fit without a word: it drops actors and history whose logic or state is
 * gone, and never starts what a state has come to invoke.
 */
export function misfit(logic: AnyActorLogic, snapshot: PersistedSnapshot, name = 'the work'): string | undefined {
  if (isMachine(logic) !== 'value' in snapshot) return `${name} ${isMachine(logic) ? 'was no statechart, and is one now' : 'was a statechart, and is none now'}`
  if (!isMachine(logic) || snapshot.status !== 'active') return undefined
  return stateMisfit(logic.root, snapshot.value) ?? historyMisfit(logic, snapshot) ?? activeMisfit(logic, snapshot) ?? childMisfit(logic, snapshot)
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
  const ids = new Set(states(root).map(({ id }) => id))
  const gone = Object.values(historyValue).flat().find(({ id }) => !ids.has(id))
  return gone && `the chart has no state ${gone.id}, to which its history leads`
}

/** What is wrong with the states that the chart is in: it has come to its end, or they invoke what was not stored. */
function activeMisfit(machine: AnyStateMachine, { value, children = {} }: PersistedSnapshot): string | undefined {
  const { status, _nodes: nodes } = machine.resolveState({ value: value as StateValue, context: {} })
  if (status === 'done') return `the chart ends in the state ${nodes.at(-1)?.id}`
  for (const node of nodes) {
    const missing = node.invoke.find(({ id }) => !(id in children))
    if (missing) return `the state ${node.id} invokes an actor ${missing.id}, which was not there`
  }
  return undefined
}

function childMisfit({ implementations, root }: AnyStateMachine, { children = {} }: PersistedSnapshot): string | undefined {
  for (const [id, { src, snapshot }] of Object.entries(children)) {
    const logic = implementations.actors[String(src)] as AnyActorLogic | undefined
    // A chart below the work's may invoke logic that stands in it; XState gives it a name of its own.
    if (!logic && states(root).some(({ invoke }) => invoke.some(each => each.src === src))) continue
    const fault = logic ? misfit(logic, snapshot, `the actor ${id}`) : `the chart has no logic ${String(src)} for the actor ${id}`
    if (fault !== undefined) return fault
  }
  return undefined
}

/** Of an actor that is no chart. One for all, so that whoever compares them sees no change. */
const NO_STATES: readonly AnyStateNode[] = []

/** The states that a chart is in, by its snapshot. */
export function activeStates(snapshot: object): readonly AnyStateNode[] {
  return (snapshot as Partial<Pick<AnyMachineSnapshot, '_nodes'>>)._nodes ?? NO_STATES
}

/** A state, and all below it. */
export function states(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values(node.states).flatMap(states)]
}

export function isMachine(logic: AnyActorLogic): logic is AnyStateMachine {
  return 'implementations' in logic && 'provide' in logic
}

/** What XState persists of a child; its types do not show `_syncSnapshot` and that options are passed on. */
interface PersistedChild {
  readonly src: unknown
  readonly systemId: string | undefined
  readonly _syncSnapshot: boolean | undefined
  getPersistedSnapshot(options: unknown): unknown
}

/** What a flat chart's actor persists: all that XState persists of it, in the same form and order. */
export function persistedChart(snapshot: AnyMachineSnapshot, options?: unknown): Snapshot<unknown> {
  const { status, output, error, value, historyValue, context, children } = snapshot
  return { status, output, error, value, historyValue, context: withoutActors(context), children: persistedChildren(children, options) } as Snapshot<unknown>
}

function persistedChildren(children: Record<string, PersistedChild>, options: unknown): object {
  const persisted: Record<string, object> = {}
  for (const [id, child] of Object.entries(children)) {
    const { src, systemId, _syncSnapshot: syncSnapshot } = child
    persisted[id] = { snapshot: child.getPersistedSnapshot(options), src, systemId, syncSnapshot }
  }
  return persisted
}

/** A context with what stands for its actors in their place; itself if it holds none. */
function withoutActors(part: object): object {
  let copy: Record<string, unknown> | undefined
  for (const key of Object.keys(part)) {
    const member: unknown = part[key as keyof typeof part]
    const persisted: unknown = typeof member === 'object' && member !== null ? (isActor(member) ? member.toJSON() : withoutActors(member)) : member
    if (persisted === member) continue
    copy ??= (Array.isArray(part) ? [...part] : { ...part }) as Record<string, unknown>
    copy[key] = persisted
  }
  return copy ?? part
}

function isActor(value: object): value is { toJSON(): unknown } {
  return 'sessionId' in value && 'send' in value && 'ref' in value
}
