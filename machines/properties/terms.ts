import type { AnyMachineSnapshot, AnyStateMachine, AnyStateNode, EventObject } from 'xstate'

/**
 * One moment of a walk through a chart. A step has several. First its event arrives, then the client gets its updates,
 * then events are sent to actors. At last the chart rests in a state.
 */
export interface Moment {
  readonly kind: 'event' | 'told' | 'sent' | 'state'
  /** The chart: before the step at the moment of its event, else after it. */
  readonly chart: AnyMachineSnapshot
  /**
   * The type of the event, or the name of an update: `WORKING`, `artifact`, or the type of an emitted event. Empty for
   * a state.
   */
  readonly name: string
  /** The event or the update. */
  readonly value?: unknown
  /** How the task ended, or the chart; `undefined` while it goes on. */
  readonly over?: Ending | undefined
}

/** How a walk ends. `canceled` and `late` (its deadline) are ends of a task whose chart could go on. */
export type Ending = 'done' | 'error' | 'canceled' | 'late'

/** A condition on a moment. */
export interface Term {
  readonly holds: (moment: Moment) => boolean
  /** Whether it lasts, as a state does, or happens at a moment, as an event does. */
  readonly isLasting: boolean
  /** Whether it reads more of the chart than its states and tags. Then unknown data may change it. */
  readonly readsContext: boolean
  /** Whether it holds without an update, if only updates decide it; `undefined` if the chart does. */
  readonly elsewhere?: boolean | undefined
  /** Whether it reads more of an update than the name. */
  readonly readsTold?: boolean
}

/** A term, a state of the chart by its path (`'order.paying'`), or a function of the chart's snapshot. */
export type AnyTerm<State extends string = string, Snapshot = AnyMachineSnapshot> =
  | State
  | Term
  | ((chart: Snapshot) => boolean)

/** The chart is in this state, or in a state within it. Throws TypeError if a chart is given that has no such state. */
export function stateTerm(path: string, chart?: AnyStateMachine): Term {
  if (chart) checkState(path, chart)
  return lasting(({ chart }) => chart.matches(path))
}

/** The chart is in a state with this tag. */
export function tagTerm(tag: string): Term {
  return lasting(({ chart }) => chart.hasTag(tag))
}

/** The task is over: its chart is done or throws, the client cancels, or the deadline passes. */
export const TERMINAL: Term = lasting(({ kind, over }) => kind !== 'event' && over !== undefined)

/** The chart throws. */
export const THROWN: Term = lasting(({ over }) => over === 'error')

/** The wire's groups of states: the states that a client may see. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  terminal: ['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED'],
  interrupted: ['INPUT_REQUIRED', 'AUTH_REQUIRED'],
  status: ['SUBMITTED', 'WORKING', 'COMPLETED', 'FAILED', 'CANCELED', 'REJECTED', 'INPUT_REQUIRED', 'AUTH_REQUIRED']
}

/** An update of this name, or of this group of states. Without a name, any update. */
export function updateTerm(name?: string, isIt?: (value: never) => boolean): Term {
  const names = name === undefined ? undefined : (GROUPS[name] ?? [name])
  const holds = ({ kind, name, value }: Moment) =>
    kind === 'told' && (!names || names.includes(name)) && (!isIt || isIt(value as never))
  return { ...momentary(holds), elsewhere: false, readsTold: isIt !== undefined }
}

/** An event of this type arrives and is accepted. */
export function eventTerm(type: string, isIt: (event: never) => boolean = () => true): Term {
  return momentary(({ kind, name, value }) => kind === 'event' && name === type && isIt(value as never))
}

/** An actor of this logic, or with this id, ends: done, or with an error. */
export function endTerm(how: 'done' | 'error', actor: string): Term {
  const start = `xstate.${how}.actor.`
  return momentary(({ kind, name, chart }) => {
    if (kind !== 'event' || !name.startsWith(start)) return false
    const id = name.slice(start.length)
    const child = (chart.children as Readonly<Record<string, { readonly src?: unknown }>>)[id]
    return id === actor || child?.src === actor
  })
}

/** The chart sends an event of this type to an actor. */
export function sentTerm(type: string, isIt: (event: never) => boolean = () => true): Term {
  return momentary(({ kind, name, value }) => kind === 'sent' && name === type && isIt(value as never))
}

/** All of the terms hold at one moment. The moment of an event has the state before it. */
export function allTerms(terms: readonly Term[]): Term {
  return combined(
    terms,
    moment => terms.every(({ holds }) => holds(moment)),
    terms.every(({ isLasting }) => isLasting),
    terms.every(({ elsewhere }) => elsewhere)
  )
}

/** At least one of the terms holds. */
export function anyTerm(terms: readonly Term[]): Term {
  return combined(
    terms,
    moment => terms.some(({ holds }) => holds(moment)),
    terms.every(({ isLasting }) => isLasting),
    terms.some(({ elsewhere }) => elsewhere)
  )
}

/** The term does not hold. */
export function notTerm(term: Term): Term {
  return combined([term], moment => !term.holds(moment), term.isLasting, !term.elsewhere)
}

/** A term as an author may write it. */
export function termOf(given: AnyTerm, chart?: AnyStateMachine): Term {
  if (typeof given === 'string') return stateTerm(given, chart)
  if (typeof given === 'function') return { holds: ({ chart }) => given(chart), isLasting: true, readsContext: true }
  return given
}

/** Whether a term holds at a moment at which it can begin to: one that lasts, when the chart rests. */
export function occurs({ holds, isLasting }: Term, moment: Moment): boolean {
  return (!isLasting || moment.kind === 'state') && holds(moment)
}

/** The moments of one step, in their order. A start has no event. */
export function momentsOf({ event, before, after, updates, sent, over }: StepSeen): Moment[] {
  return [
    ...(event && before ? [{ kind: 'event' as const, chart: before, name: event.type, value: event }] : []),
    ...updates.map(({ name, value }) => ({ kind: 'told' as const, chart: after, name, value, over })),
    ...sent.map(value => ({ kind: 'sent' as const, chart: after, name: value.type, value, over })),
    { kind: 'state', chart: after, name: '', over }
  ]
}

/** All that properties see of one step. */
export interface StepSeen {
  readonly event?: EventObject | undefined
  readonly before?: AnyMachineSnapshot
  readonly after: AnyMachineSnapshot
  readonly updates: readonly NamedValue[]
  readonly sent: readonly EventObject[]
  readonly over?: Ending | undefined
}

/** An update with its name. */
export interface NamedValue {
  readonly name: string
  readonly value: unknown
}

function lasting(holds: Term['holds']): Term {
  return { holds, isLasting: true, readsContext: false }
}

function momentary(holds: Term['holds']): Term {
  return { holds, isLasting: false, readsContext: false }
}

function combined(terms: readonly Term[], holds: Term['holds'], isLasting: boolean, elsewhere: boolean): Term {
  const isOfUpdates = terms.every(term => term.elsewhere !== undefined)
  return {
    holds,
    isLasting,
    readsContext: terms.some(({ readsContext }) => readsContext),
    elsewhere: isOfUpdates ? elsewhere : undefined,
    readsTold: terms.some(term => term.readsTold)
  }
}

function checkState(path: string, { id, root }: AnyStateMachine): void {
  let node: AnyStateNode | undefined = root
  for (const key of path.split('.')) node = node?.states[key]
  if (!node)
    throw new TypeError(`The chart ${id} has no state ${JSON.stringify(path)}. It has: ${pathsIn(root).join(', ')}.`)
}

function pathsIn(node: AnyStateNode): string[] {
  return Object.values(node.states).flatMap(child => [child.path.join('.'), ...pathsIn(child)])
}
