import type { AnyActorLogic, AnyStateMachine, StateValue } from 'xstate'
import { isObject } from '../../machines/protocol/codec/json.ts'
import { A2AError } from '../../machines/protocol/errors.ts'
import { delayType } from '../../machines/xstate-names.ts'
import type { DelayedEvent } from '../commits/task-timers.ts'
import { closestName, rejectUnknown } from '../primitives/options.ts'
import { isMachine, type PersistedSnapshot } from '../xstate/persisted-snapshot.ts'
import { writtenChart, type WrittenChart, type WrittenState } from '../xstate/written-chart.ts'
import type { SavedTask } from './snapshot-text.ts'

/** The names that parts of a chart have now, by those that another version gave them. */
export interface RenamedParts {
  /** By the path of a state, which is its keys joined by dots: `{ choosing: 'asking', 'trip.paid': 'trip.booked' }`. */
  readonly states?: Readonly<Record<string, string>>
  /** Names of actors in `setupWork`, and ids with which states invoke actors. */
  readonly actors?: Readonly<Record<string, string>>
}

/** New names: for the tasks of every other version, or by the version that stored them. */
export type Renamed = RenamedParts | Readonly<Record<string, RenamedParts>>

/** The agent whose parts have new names. */
interface RenamingAgent {
  readonly version: string
  readonly work?: unknown
  readonly renamed?: Renamed
  readonly earlier?: Readonly<Record<string, unknown>>
}

const MEMBERS = Object.keys({ states: true, actors: true } satisfies Record<keyof RenamedParts, true>)

const EXAMPLE =
  "renamed: { states: { choosing: 'asking' } }, or by version: renamed: { '1': { states: { choosing: 'asking' } } }"

/** Whether the names are for the tasks of every other version. */
function isForAll(renamed: Renamed): renamed is RenamedParts {
  return Object.keys(renamed).every(name => MEMBERS.includes(name))
}

/**
 * Validates the new names of an agent with a statechart. Throws TypeError for a name that the chart does not have, for
 * two names that became one, for a state that another one contains now, and for a version that does not use them.
 */
export function checkRenamed(renamed: unknown, agent: RenamingAgent): void {
  if (!isObject(renamed)) throw new TypeError(`renamed has to be an object: ${EXAMPLE}.`)
  const { work: chart } = agent
  if (typeof chart !== 'object' || chart === null || !isMachine(chart as AnyActorLogic))
    throw new TypeError(
      'renamed is for work as a statechart. A function runs again with its journal: leave renamed out, and put new code behind work.patch.'
    )
  const read = (parts: RenamedParts, place: Place) =>
    void new Names(writtenChart(chart as AnyStateMachine), logicNames(chart as AnyStateMachine), parts, place)
  if (isForAll(renamed)) return read(renamed, { name: 'renamed', isForAll: true })
  for (const [version, parts] of Object.entries(renamed)) {
    const name = `renamed[${JSON.stringify(version)}]`
    if (!isObject(parts)) throw new TypeError(`${name} has to be an object. Write ${EXAMPLE}.`)
    if (version === '' || version === agent.version)
      throw new TypeError(
        `${name} has to name another version than that of the agent, which is ${agent.version}: the one that stored the old names.`
      )
    if (agent.earlier && Object.hasOwn(agent.earlier, version))
      throw new TypeError(
        `${name} renames nothing, because tasks of version ${version} go on with their own work in earlier. Leave one of them out.`
      )
    rejectUnknown(parts, MEMBERS, name)
    read(parts, { name, isForAll: false })
  }
}

function logicNames({ implementations }: AnyStateMachine): string[] {
  return Object.keys(implementations.actors)
}

/** The renamed parts of snapshots that a version stored; `undefined` without any. */
export function renamedSince(version: string | undefined, renamed: Renamed | undefined): RenamedParts | undefined {
  if (!renamed || isForAll(renamed)) return renamed
  return version !== undefined && Object.hasOwn(renamed, version) ? renamed[version] : undefined
}

/** The names that a chart was last restored with. They are read once for all its tasks. */
const known = new WeakMap<AnyStateMachine, { readonly parts: RenamedParts; readonly names: Names }>()

/** The new names for what a version stored; `undefined` if there are none. */
export function namesSince(version: string | undefined, { renamed, work }: RenamingAgent): Names | undefined {
  const parts = renamedSince(version, renamed)
  if (!parts) return undefined
  const machine = work as AnyStateMachine
  const last = known.get(machine)
  if (last?.parts === parts) return last.names
  const names = new Names(writtenChart(machine), logicNames(machine), parts, { name: 'renamed', isForAll: false })
  known.set(machine, { parts, names })
  return names
}

/** New names, read for a chart. */
export class Names {
  /** By the path of a state of the other version, its last key now; and the other way round, whole paths. */
  readonly #keys = new Map<string, string>()
  readonly #oldPaths = new Map<string, string>()
  /** Ids of states and actors, names of logic, types of delayed events: those of now by those of before. */
  readonly stateIds = new Map<string, string>()
  readonly actorIds = new Map<string, string>()
  readonly sources = new Map<string, string>()
  readonly delayed = new Map<string, string>()

  /** `name`: where they stand, for errors; `isForAll`: whether they are for the tasks of every other version. */
  constructor(
    chart: WrittenChart,
    logic: readonly string[],
    { states = {}, actors = {} }: RenamedParts,
    { name, isForAll }: Place
  ) {
    this.#readStates(chart, states, { name: `${name}.states`, isForAll })
    this.#readIds(chart)
    this.#readActors(chart, logic, actors, { name: `${name}.actors`, isForAll })
  }

  /** The path of a state now, by its path in the other version. */
  pathOf(path: readonly string[]): string[] {
    return path.map((key, i) => this.#keys.get(path.slice(0, i + 1).join('.')) ?? key)
  }

  /** The path of a state in the other version, by its path now. */
  oldPathOf(path: readonly string[]): string[] {
    for (let length = path.length; length > 0; length -= 1) {
      const from = this.#oldPaths.get(path.slice(0, length).join('.'))
      if (from !== undefined) return [...from.split('.'), ...path.slice(length)]
    }
    return [...path]
  }

  /** The id of a state or of an actor that a state invokes, now. */
  idOf(id: string): string {
    return this.stateIds.get(id) ?? this.actorIds.get(id) ?? id
  }

  /** The name of the logic of an actor, now. */
  sourceOf(src: string): string {
    return this.sources.get(src) ?? src
  }

  /** The type of the event of a delay, now. */
  delayedType(type: string): string {
    return this.delayed.get(type) ?? type
  }

  /** A stored chart with the names of now. Throws InvalidAgentResponse if two of its states would become one. */
  snapshotOf(snapshot: PersistedSnapshot): PersistedSnapshot {
    const { value = {}, historyValue = {}, children = {}, entered, stopped } = snapshot
    const { context } = snapshot as { readonly context?: unknown }
    const history = Object.entries(historyValue).map(([id, states]) => [
      this.idOf(id),
      states.map(state => ({ ...state, id: this.idOf(state.id) }))
    ])
    const actors = Object.entries(children).map(([id, { src, ...actor }]) => [
      this.idOf(id),
      { ...actor, src: typeof src === 'string' ? this.sourceOf(src) : src }
    ])
    return {
      ...snapshot,
      ...(context !== undefined && { context: this.#withActors(context) }),
      value: this.#valueOf(value, []),
      historyValue: Object.fromEntries(history),
      children: Object.fromEntries(actors),
      ...(entered && { entered: entered.map(id => this.idOf(id)) }),
      ...(stopped && { stopped: stopped.map(id => this.idOf(id)) })
    }
  }

  /** A delayed event of a task whose work is the chart. */
  delayedOf({ source, target, event, id, ...others }: DelayedEvent): DelayedEvent {
    const isOfChart = source.length === 1
    const renamed = (name: string) => (isOfChart ? this.delayedType(name) : name)
    // A path begins at the task with its work, or at the context with the task.
    const pathAt = (path: readonly string[], depth: number) =>
      path.map((one, i) => (i === depth ? this.idOf(one) : one))
    return {
      ...others,
      source: pathAt(source, 1),
      ...(target && { target: pathAt(target, 2) }),
      event: { ...event, type: renamed(event.type) },
      ...(id !== undefined && { id: renamed(id) })
    }
  }

  #readStates(chart: WrittenChart, states: object, place: Place): void {
    const byPath = new Map(chart.states.slice(1).map(state => [state.path.join('.'), state]))
    const renamed = readPairs(states, place)
    for (const [from, to] of renamed) {
      if (!byPath.has(to)) {
        const close = closestName(to, [...byPath.keys()])
        throw new TypeError(
          `${place.name}: the chart has no state ${to}, as which ${from} is named.${close === undefined ? '' : ` Did you mean ${close}?`} A nested state is named by its path: 'trip.booked'.`
        )
      }
      if (place.isForAll && byPath.has(from)) throw stillThere(place.name, from, `a state ${from}`)
      this.#keys.set(from, to.split('.').at(-1) as string)
      this.#oldPaths.set(to, from)
    }
    for (const [from, to] of renamed) {
      const now = this.pathOf(from.split('.')).join('.')
      if (now !== to)
        throw new TypeError(
          `${place.name}: ${from} cannot be named ${to}, since what contains it is not named so: it would be ${now}. Rename that as well, or write migrate.`
        )
    }
  }

  /** The ids and events that XState makes of the path of a state. */
  #readIds({ id: chartId, states }: WrittenChart): void {
    for (const state of states) {
      const oldId = [chartId, ...this.oldPathOf(state.path)].join('.')
      if (oldId !== [chartId, ...state.path].join('.')) this.#readIdsOf(state, oldId)
    }
  }

  #readIdsOf({ id, invoke, transitions }: WrittenState, oldId: string): void {
    this.stateIds.set(oldId, id)
    for (const [i, actor] of invoke.entries()) {
      if (!actor.hasOwnId) this.actorIds.set(`${i}.${oldId}`, actor.id)
    }
    for (const { delay, event } of transitions)
      if (delay !== undefined) this.delayed.set(delayType(delay, oldId), event)
  }

  /** A name is that of logic, an id, or both: each where the chart has the new one. */
  #readActors({ states }: WrittenChart, logic: readonly string[], actors: object, place: Place): void {
    const sources = new Set(logic)
    const ids = new Set(states.flatMap(({ invoke }) => invoke.map(({ id }) => id)))
    for (const [from, to] of readPairs(actors, place)) {
      if (!sources.has(to) && !ids.has(to))
        throw new TypeError(
          `${place.name}: the chart has no actor ${to}, as which ${from} is named: neither in setupWork({ actors }) nor as the id of one that a state invokes.`
        )
      for (const [names, renamed] of [
        [sources, this.sources],
        [ids, this.actorIds]
      ] as const) {
        if (!names.has(to)) continue
        if (place.isForAll && names.has(from)) throw stillThere(place.name, from, `an actor ${from}`)
        renamed.set(from, to)
      }
    }
  }

  #valueOf(value: StateValue, path: readonly string[]): StateValue {
    const keyOf = (key: string) => this.#keys.get([...path, key].join('.')) ?? key
    if (typeof value === 'string') return keyOf(value)
    const now: Record<string, StateValue> = {}
    for (const [key, below = {}] of Object.entries(value)) {
      const name = keyOf(key)
      if (Object.hasOwn(now, name))
        throw new A2AError(
          'InvalidAgentResponse',
          `This task cannot be resumed with the present agent: two of its active states are named ${[...this.pathOf(path), name].join('.')} now.`
        )
      now[name] = this.#valueOf(below, [...path, key])
    }
    return now
  }

  /** A value of a stored context with the ids of the actors to which it refers. */
  #withActors(value: unknown): unknown {
    if (Array.isArray(value)) return value.map(item => this.#withActors(item))
    if (!isObject(value)) return value
    const { xstate$$type: type, id } = value
    if (type === 1 && typeof id === 'string') return { ...value, id: this.idOf(id) }
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, this.#withActors(item)]))
  }
}

/** Where names stand, for errors, and whether they are for the tasks of every other version. */
interface Place {
  readonly name: string
  readonly isForAll: boolean
}

/** The old and new names, of which none is there twice. */
function readPairs(names: unknown, { name }: Place): [string, string][] {
  if (!isObject(names))
    throw new TypeError(`${name} has to be an object with the new names by the old ones. ${EXAMPLE}.`)
  const taken = new Map<string, string>()
  return Object.entries(names).map(([from, to]) => {
    if (typeof to !== 'string' || to === '' || from === '')
      throw new TypeError(`${name}[${JSON.stringify(from)}] has to be the name now, a text, not ${JSON.stringify(to)}.`)
    const other = taken.get(to)
    if (other !== undefined)
      throw new TypeError(
        `${name}: ${other} and ${from} cannot both be named ${to}. If they come from two versions, name these: ${EXAMPLE}. Else write migrate, which can move tasks.`
      )
    taken.set(to, from)
    return [from, to]
  })
}

function stillThere(name: string, from: string, what: string): TypeError {
  return new TypeError(
    `${name} renames ${from}, but the chart has ${what} now, in which tasks of other versions may be. Name the version that stored it: ${EXAMPLE}.`
  )
}

/** A stored task with the names of the present chart; itself if it has nothing that was renamed. */
export function renamedTask(saved: SavedTask, names: Names): SavedTask {
  const work = saved.children?.['work']
  if (!work || !('value' in work.snapshot)) return saved
  const { asks } = saved.context
  const renamed: SavedTask = {
    ...saved,
    context: {
      ...saved.context,
      ...(asks !== undefined && {
        asks: asks
          .split(',')
          .map(id => names.idOf(id))
          .join()
      })
    },
    children: { ...saved.children, work: { ...work, snapshot: names.snapshotOf(work.snapshot) } },
    ...(saved.delayed && { delayed: saved.delayed.map(event => names.delayedOf(event)) })
  }
  return JSON.stringify(renamed) === JSON.stringify(saved) ? saved : renamed
}
