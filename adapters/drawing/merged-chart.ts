import type { WrittenChart, WrittenState, WrittenTransition } from '../../runtime/xstate/written-chart.ts'

/** The mark of a state or a transition in a drawing of two charts in one. */
export type Mark = 'added' | 'removed' | 'changed'

/** Two charts in one, with marks by the ids of states and the names of transitions. */
export interface MergedChart {
  readonly chart: WrittenChart
  readonly marks: ReadonlyMap<string, Mark>
}

/** Ids of states and names of transitions. `removed` are of the chart before, the others of the chart after. */
export interface DifferenceMarks {
  readonly added: ReadonlySet<string>
  readonly removed: ReadonlySet<string>
  readonly changed: ReadonlySet<string>
  /** By the id of a state before: the id of the same state after. */
  readonly states: ReadonlyMap<string, string>
}

/** The suffix of ids and names that only the old chart has, so that they differ from new ones. */
const GONE = ' (before)'

type Draft = { -readonly [Member in keyof WrittenState]: WrittenState[Member] }

/** The chart after, with what is gone of the chart before. */
export function mergedChart(before: WrittenChart, after: WrittenChart, given: DifferenceMarks): MergedChart {
  const marks = new Map<string, Mark>()
  for (const name of given.changed) marks.set(name, 'changed')
  for (const name of given.added) marks.set(name, 'added')
  const drafts = new Map<string, Draft>()
  for (const state of after.states) drafts.set(state.id, { ...state })
  const gone = before.states.filter(({ id }) => !given.states.has(id))
  for (const state of gone) {
    marks.set(`${state.id}${GONE}`, 'removed')
    drafts.set(`${state.id}${GONE}`, { ...state, id: `${state.id}${GONE}`, hasOwnId: true })
  }
  const now = ({ id }: WrittenState) => drafts.get(id) as Draft
  const then = ({ id }: WrittenState) => drafts.get(given.states.get(id) ?? `${id}${GONE}`) as Draft
  for (const state of after.states) connect(now(state), state, now)
  for (const state of gone) connect(then(state), state, then)
  for (const state of gone) {
    const parent = then(state).parent as Draft
    if (given.states.has((state.parent as WrittenState).id)) parent.states = [...parent.states, then(state)]
    if (parent.type === 'atomic') parent.type = 'compound'
  }
  for (const state of before.states.filter(({ id }) => given.states.has(id))) {
    const draft = then(state)
    const removed = state.transitions.filter(({ name }) => given.removed.has(name))
    for (const { name } of removed) marks.set(`${name}${GONE}`, 'removed')
    draft.transitions = [...draft.transitions, ...removed.map(one => movedTo(draft, one, then))]
  }
  for (const { transitions } of gone) for (const { name } of transitions) marks.set(`${name}${GONE}`, 'removed')
  const states = [...after.states.map(now), ...gone.map(then)]
  return {
    chart: { ...after, root: now(after.root), states, transitions: states.flatMap(({ transitions }) => transitions) },
    marks
  }
}

function connect(draft: Draft, state: WrittenState, at: (state: WrittenState) => Draft): void {
  const isGone = draft.id.endsWith(GONE)
  draft.parent = state.parent && at(state.parent)
  draft.states = state.states.map(at)
  draft.initial = state.initial.map(at)
  draft.transitions = state.transitions.map(one =>
    isGone ? movedTo(draft, one, at) : { ...one, source: draft, targets: one.targets.map(at) }
  )
}

function movedTo(source: Draft, one: WrittenTransition, at: (state: WrittenState) => Draft): WrittenTransition {
  return { ...one, name: `${one.name}${GONE}`, source, targets: one.targets.map(at) }
}
