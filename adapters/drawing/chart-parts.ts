import { isObject } from '../../machines/protocol/codec/json.ts'
import { isMadeUp, OWN_EVENT, parseType, writtenName } from '../../machines/xstate-names.ts'
import { writtenGuard } from '../../runtime/xstate/written-chart.ts'

/** An actor that a state invokes. */
interface Invoked {
  readonly id: string
  readonly src?: unknown
}

/** What a transition needs. */
interface Trigger {
  readonly eventType: string
  readonly guard?: unknown
}

/**
 * An event in words: `after step`, `paint is done`, `route`. Actors without an id from the author have the name of
 * their logic.
 */
export function eventName(type: string, invoked: readonly Invoked[] = []): string {
  if (type === OWN_EVENT.route) return 'route'
  const made = parseType(type)
  if (!made) return type
  const { kind, of, id, delay } = made
  if (kind === 'after') return `after ${delay}`.replace(/\d$/, '$& ms')
  const who = of === 'state' ? id.slice(id.lastIndexOf('.') + 1) : whoOf(id, invoked)
  if (kind === 'snapshot') return `${who} changes`
  return kind === 'done' ? `${who} is done` : `${who} fails`
}

/** Whether an actor's id or logic name is the author's. */
export function isAuthorName(name: unknown): name is string {
  return typeof name === 'string' && !isMadeUp(name)
}

/** Whether XState made a transition of its root of a state's `route`. */
export function isRoute({ eventType, guard }: Trigger): boolean {
  return eventType === OWN_EVENT.route && Object(partsOf(guard)[0]).name === 'routeMatches'
}

/**
 * The author's guard of a transition. XState adds a guard to each `route`, which compares the event's `to` with the
 * state's id, and `setupWork` to answers.
 */
export function authorsGuard(transition: Trigger): unknown {
  return isRoute(transition) ? partsOf(transition.guard)[1] : writtenGuard(transition.guard)
}

/**
 * The name of a guard, with its static params (`says: yes`); `a condition` if it has none; combined guards as in `not
 * isFull and isOpen`.
 */
export function guardName(guard: unknown): string {
  if (typeof guard === 'string') return guard
  const { type, params, guards, name } = Object(guard) as {
    type?: unknown
    params?: unknown
    guards?: readonly unknown[]
    name?: unknown
  }
  if (guards && (name === 'and' || name === 'or')) return guards.map(operandName).join(` ${name} `)
  if (guards && name === 'not') return `not ${guards.map(operandName).join()}`
  if (typeof type === 'string')
    return params === undefined || typeof params === 'function' ? type : `${type}: ${paramsText(params)}`
  return typeof name === 'string' && name !== '' && name !== 'guard' ? name : 'a condition'
}

/** The name of an action: `assign` for one of XState's own, `a function` for one without a name. */
export function actionName(action: unknown): string {
  if (typeof action === 'string') return action
  const { type, name } = Object(action) as { type?: unknown; name?: unknown }
  if (typeof type === 'string') return writtenName(type)
  return typeof name === 'string' && name !== '' && !HOLDERS.has(name) ? name : 'a function'
}

/** The trigger of a transition: its event, and its guard in brackets. Empty without both. */
export function occasionOf({ eventType, guard, invoked }: Trigger & { readonly invoked: readonly Invoked[] }): string {
  return [
    ...(eventType === '' ? [] : [eventName(eventType, invoked)]),
    ...(guard ? [`[${guardName(guard)}]`] : [])
  ].join(' ')
}

/** Functions written inline in a chart get the name of the member that holds them. */
const HOLDERS = new Set(['entry', 'exit', 'actions'])

function whoOf(id: string, invoked: readonly Invoked[]): string {
  if (id === '*') return 'any actor'
  if (isAuthorName(id)) return id
  const src = invoked.find(actor => actor.id === id)?.src
  return isAuthorName(src) ? src : 'what it invokes'
}

/** The name of a guard within a combined one: in parentheses if it combines guards itself. */
function operandName(guard: unknown): string {
  return partsOf(guard).length > 1 ? `(${guardName(guard)})` : guardName(guard)
}

/** The guards that a guard combines, or itself. */
function partsOf(guard: unknown): readonly unknown[] {
  return (Object(guard) as { guards?: readonly unknown[] }).guards ?? [guard]
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
