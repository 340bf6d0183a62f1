/** An actor that a state invokes. */
interface Invoked {
  readonly id: string
  readonly src?: unknown
}

/** An event in words: `after step`, `paint is done`. Actors without an id from the author have the name of their logic. */
export function eventName(type: string, invoked: readonly Invoked[] = []): string {
  const [, kind, of, rest = ''] = /^xstate\.(after|done|error|snapshot)\.(?:(actor|state)\.)?(.*)$/s.exec(type) ?? []
  if (kind === undefined) return type
  if (kind === 'after') return `after ${rest.split('.')[0]}`.replace(/\d$/, '$& ms')
  const who = of === 'state' ? rest.slice(rest.lastIndexOf('.') + 1) : whoOf(rest, invoked)
  if (kind === 'snapshot') return `${who} changes`
  return kind === 'done' ? `${who} is done` : `${who} fails`
}

/** Whether an actor's id or logic name is the author's. XState generates `0.light.on` and `xstate.invoke.0.light.on`. */
export function isGiven(name: unknown): name is string {
  return typeof name === 'string' && !/^(?:xstate\.invoke\.)?\d+\./.test(name)
}

/** The name of a guard; `a condition` if it has none; combined guards as in `not isFull and isOpen`. */
export function guardName(guard: unknown): string {
  if (typeof guard === 'string') return guard
  const { type, guards, name } = Object(guard) as { type?: unknown; guards?: readonly unknown[]; name?: unknown }
  if (guards && (name === 'and' || name === 'or')) return guards.map(guardName).join(` ${name} `)
  if (guards && name === 'not') return `not ${guards.map(guardName).join()}`
  if (typeof type === 'string') return type
  return typeof name === 'string' && name !== '' && name !== 'guard' ? name : 'a condition'
}

/** The name of an action: `assign` for one of XState's own, `a function` for one without a name. */
export function actionName(action: unknown): string {
  if (typeof action === 'string') return action
  const { type, name } = Object(action) as { type?: unknown; name?: unknown }
  if (typeof type === 'string') return type.replace(/^xstate\./, '')
  return typeof name === 'string' && name !== '' && !HOLDERS.has(name) ? name : 'a function'
}

/** The trigger of a transition: its event, and its guard in brackets. Empty without both. */
export function occasionOf({ eventType, guard, invoked }: { readonly eventType: string; readonly guard?: unknown; readonly invoked: readonly Invoked[] }): string {
  return [...(eventType === '' ? [] : [eventName(eventType, invoked)]), ...(guard ? [`[${guardName(guard)}]`] : [])].join(' ')
}

/** Functions written inline in a chart get the name of the member that holds them. */
const HOLDERS = new Set(['entry', 'exit', 'actions'])

function whoOf(id: string, invoked: readonly Invoked[]): string {
  if (id === '*') return 'any actor'
  if (isGiven(id)) return id
  const src = invoked.find(actor => actor.id === id)?.src
  return isGiven(src) ? src : 'what it invokes'
}
