import { isObject } from '../../machines/protocol/codec/json.ts'
import { isMadeUp, OWN_EVENT, parseType } from '../../machines/xstate-names.ts'
import type { WrittenAction, WrittenGuard } from '../../runtime/xstate/written-chart.ts'

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
  if (kind === 'after') return `after ${id}`.replace(/\d$/, '$& ms')
  const who = of === 'state' ? id.slice(id.lastIndexOf('.') + 1) : whoOf(id, invoked)
  if (kind === 'snapshot') return `${who} changes`
  return kind === 'done' ? `${who} is done` : `${who} fails`
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
