import type { WrittenState } from '../../../runtime/xstate/written-chart.ts'
import type { ChangedCode, ConfigurationVerdict, StoredVerdict } from './verdicts.ts'

/** Each verdict as a sentence. */
export const VERDICT_SENTENCES: Readonly<Record<StoredVerdict, string>> = {
  same: 'It goes on the same way.',
  otherwise: 'It goes on, but not the same way.',
  'other answer': 'It waits for an answer in another form.',
  depends: 'How it goes on depends on what has changed.',
  unknown: 'It is not known how it goes on.',
  'not compared': 'It is not compared.',
  'never ends': 'It has no way to an end: only a cancel, a deadline or an error ends it.',
  'not restored': 'It is not restored: it fails with the next message or timer.'
}

/** A state value as paths: `order.paying`, and several for parallel states. */
export function statePaths(value: unknown): string {
  return typeof value === 'string' ? value : pathsIn(Object(value)).join(' and ')
}

function pathsIn(value: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(value).flatMap(([key, inner]) => {
    if (typeof inner === 'string') return [`${key}.${inner}`]
    const below = pathsIn(Object(inner))
    return below.length === 0 ? [key] : below.map(path => `${key}.${path}`)
  })
}

/** The ids of the states of a state value, outermost first; none without one. */
export function activeStateIds(state: WrittenState, value: unknown): string[] {
  if (value === undefined) return []
  const inner = typeof value === 'string' ? [[value, {}] as const] : Object.entries(Object(value))
  return [
    state.id,
    ...inner.flatMap(([key, below]) => {
      const child = state.states.find(one => one.key === key)
      return child ? activeStateIds(child, below) : []
    })
  ]
}

/** A configuration: its state, and where its history leads. */
export function placeText({ state, history = {} }: Pick<ConfigurationVerdict, 'state' | 'history'>): string {
  const leads = Object.entries(history).map(([id, states]) => `${id}: ${states.join(', ')}`)
  return `${statePaths(state)}${leads.length === 0 ? '' : ` (history ${leads.join('; ')})`}`
}

/** All that is said of a configuration, as clauses. */
export function detailsOf({
  reasons,
  endings,
  depends
}: Pick<ConfigurationVerdict, 'reasons' | 'endings' | 'depends'>): string[] {
  return [
    ...reasons,
    ...(endings.added.length > 0 ? [`new endings: ${endings.added.join(', ')}`] : []),
    ...(endings.removed.length > 0 ? [`endings that are gone: ${endings.removed.join(', ')}`] : []),
    ...depends.flatMap(dependsLines)
  ]
}

function dependsLines({ says, ways }: ChangedCode): string[] {
  if (!ways) return [`depends on ${says}`]
  const list = (endings: readonly string[]) => (endings.length === 0 ? 'no end' : endings.join(', '))
  return [
    `depends on ${says}`,
    ...ways.places.map(place => `  ${place}`),
    `  if it always holds: ${list(ways.holds)}; if it never does: ${list(ways.fails)}`
  ]
}

/** The name of a compared chart: `work`, or `child:` and the name of an actor. */
export function chartTitle(chart: string): string {
  return chart === 'work' ? 'The work' : `The actor ${chart.replace(/^child:/, '')}`
}

/** How many tasks: `1 open task`. */
export function openTasksText(tasks: number): string {
  return tasks === 1 ? '1 open task' : `${tasks} open tasks`
}
