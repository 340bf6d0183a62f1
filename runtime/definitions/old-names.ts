import { doneType, errorType, snapshotType, stateDoneType } from '../../machines/xstate-names.ts'
import type { Names } from '../snapshots/renames.ts'
import type { WrittenChart, WrittenState, WrittenTransition } from '../xstate/written-chart.ts'

/** Gives the old one of a name now. */
type OldName = (now: string) => string

/** A chart with the names that another version gave to its states and actors, so that it is compared with that one. */
export function withOldNames(chart: WrittenChart, names: Names): WrittenChart {
  const oldId = invert(names.stateIds)
  const oldActor = invert(names.actorIds)
  const oldSource = invert(names.sources)
  const oldEvent = invert(eventsOf(names))
  const drafts = new Map<WrittenState, Draft>()
  for (const state of chart.states) {
    const path = names.oldPathOf(state.path)
    drafts.set(state, { ...state, id: oldId(state.id), key: path.at(-1) ?? state.key, path })
  }
  const at = (state: WrittenState) => drafts.get(state) as Draft
  const transitions = new Map<WrittenTransition, WrittenTransition>()
  for (const one of chart.transitions)
    transitions.set(one, {
      ...one,
      source: at(one.source),
      targets: one.targets.map(at),
      event: oldEvent(one.event)
    })
  const taken = (all: readonly WrittenTransition[]) => all.map(one => transitions.get(one) as WrittenTransition)
  for (const draft of drafts.values()) {
    draft.parent = draft.parent && at(draft.parent)
    draft.states = draft.states.map(at)
    draft.initial = draft.initial.map(at)
    draft.transitions = taken(draft.transitions)
    draft.invoke = draft.invoke.map(({ id, src, storedSrc, onDone, onError, onSnapshot, ...actor }) => ({
      ...actor,
      id: oldActor(id),
      src: src && oldSource(src),
      storedSrc: oldSource(storedSrc),
      onDone: taken(onDone),
      onError: taken(onError),
      onSnapshot: taken(onSnapshot)
    }))
  }
  return { ...chart, root: at(chart.root), states: [...drafts.values()], transitions: [...transitions.values()] }
}

type Draft = { -readonly [Member in keyof WrittenState]: WrittenState[Member] }

function invert(now: ReadonlyMap<string, string>): OldName {
  const before = new Map(Array.from(now, ([old, name]) => [name, old]))
  return name => before.get(name) ?? name
}

/** The types of events that XState makes of the ids of states and actors, now by before. */
function eventsOf({ stateIds, actorIds, delayed }: Names): Map<string, string> {
  const events = new Map(delayed)
  for (const [old, id] of stateIds) events.set(stateDoneType(old), stateDoneType(id))
  for (const [old, id] of actorIds)
    for (const typeOf of [doneType, errorType, snapshotType]) events.set(typeOf(old), typeOf(id))
  return events
}
