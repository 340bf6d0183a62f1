/**
 * The names that XState 5 gives to events and actions of its own. No other file spells them, so that another major of
 * XState changes this one.
 */

/** The events that an actor gets from XState itself. */
export const OWN_EVENT = {
  start: 'xstate.init',
  stop: 'xstate.stop',
  /** Takes a chart to a state with a `route`. */
  route: 'xstate.route',
  /** A promise actor's own events, and that of a new value of an observable. */
  resolve: 'xstate.promise.resolve',
  reject: 'xstate.promise.reject',
  next: 'xstate.observable.next'
} as const

/** The actions that XState executes, by the names of the functions that make them. */
export const OWN_ACTION = {
  assign: 'xstate.assign',
  cancel: 'xstate.cancel',
  emit: 'xstate.emit',
  enqueueActions: 'xstate.enqueueActions',
  log: 'xstate.log',
  raise: 'xstate.raise',
  sendTo: 'xstate.sendTo',
  spawnChild: 'xstate.spawnChild',
  stopChild: 'xstate.stopChild'
} as const

/** The type of the event with which an actor of this id is done; `*` for any. */
export function doneType<Id extends string>(id: Id): `xstate.done.actor.${Id}` {
  return `xstate.done.actor.${id}`
}

/** The type of the event with which an actor of this id fails; `*` for any. */
export function errorType<Id extends string>(id: Id): `xstate.error.actor.${Id}` {
  return `xstate.error.actor.${id}`
}

/** The type of the event with a snapshot of an actor of this id. */
export function snapshotType<Id extends string>(id: Id): `xstate.snapshot.${Id}` {
  return `xstate.snapshot.${id}`
}

/** The type of the event with which the state of this id is done. */
export function stateDoneType(id: string): string {
  return `xstate.done.state.${id}`
}

/** The type of the event of a delay in the state of this id. */
export function delayType(delay: number | string, stateId: string): string {
  return `xstate.after.${delay}.${stateId}`
}

/** An event that XState makes: of a delay in a state, of a state that is done, or of an actor. */
export interface MadeEvent {
  readonly kind: 'after' | 'done' | 'error' | 'snapshot'
  /** Whether an actor or a state is done or has failed. */
  readonly of: 'actor' | 'state' | undefined
  /** The id of the actor or state, `*` for any; of `after` its delay, in milliseconds or by its name. */
  readonly id: string
}

/** Reads the type of an event that XState makes; `undefined` for the author's events. */
export function parseType(type: string): MadeEvent | undefined {
  const [, kind, of, id = ''] = /^xstate\.(after|done|error|snapshot)\.(?:(actor|state)\.)?(.*)$/s.exec(type) ?? []
  return kind === undefined ? undefined : ({ kind, of, id: kind === 'after' ? id.split('.')[0] : id } as MadeEvent)
}

/** The id of the actor that an event says is done, or has failed. */
export function endedActor(type: string): string | undefined {
  const { of, id } = parseType(type) ?? {}
  return of === 'actor' ? id : undefined
}

/** Whether an event brings a snapshot of an actor. */
export function isSnapshotType(type: string): boolean {
  return type.startsWith('xstate.snapshot.')
}

/** Whether an event says that an actor failed. */
export function isErrorType(type: string): boolean {
  return type.startsWith('xstate.error.actor')
}

/** Whether an event or action is XState's own. */
export function isOwnName(name: string): boolean {
  return name.startsWith('xstate.')
}

/** The name of an action as its author writes it: `assign` for XState's own. */
export function writtenName(action: string): string {
  return action.replace(/^xstate\./, '')
}

/** Whether XState made up this id or this name of an invoked actor: `0.light.on`, `xstate.invoke.0.light.on`. */
export function isMadeUp(name: string): boolean {
  return /^(?:xstate\.invoke\.)?\d+\./.test(name)
}

/** An actor that a state invokes. */
interface Invoked {
  readonly id: string
  readonly src?: string | undefined
}

/**
 * An event in words: `after step`, `paint is done`, `route`. Actors without an id from the author have the name of
 * their logic.
 */
export function eventName(type: string, invoked: readonly Invoked[] = []): string {
  if (type === OWN_EVENT.route) return 'route'
  const made = parseType(type)
  if (!made) return type
  const { kind, of, id } = made
  if (kind === 'after') return /^\d+$/.test(id) ? `after ${id} ms` : `after ${id}`
  const who = of === 'state' ? id.slice(id.lastIndexOf('.') + 1) : whoOf(id, invoked)
  if (kind === 'snapshot') return `${who} changes`
  return kind === 'done' ? `${who} is done` : `${who} fails`
}

/** The trigger of a transition: its event, and its guard in brackets. Empty without both. */
export function occasionOf(event: string, guard: string | undefined, invoked: readonly Invoked[]): string {
  return [...(event === '' ? [] : [eventName(event, invoked)]), ...(guard === undefined ? [] : [`[${guard}]`])].join(
    ' '
  )
}

function whoOf(id: string, invoked: readonly Invoked[]): string {
  if (id === '*') return 'any actor'
  if (!isMadeUp(id)) return id
  return invoked.find(actor => actor.id === id)?.src ?? 'what it invokes'
}
