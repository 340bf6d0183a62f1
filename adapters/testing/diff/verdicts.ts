import type { AnyStateMachine } from 'xstate'
import { isObject } from '../../../machines/protocol/codec/json.ts'
import { eventName } from '../../../machines/xstate-names.ts'
import {
  answerFormOf,
  answerFormText,
  type ChartConfiguration,
  type ChartParts,
  type CodePart,
  type Decisive,
  type Names,
  nameOf,
  pathOf,
  type StateParts
} from '../../../runtime/work-port.ts'
import { isWithin, misfit, type PersistedSnapshot } from '../../../runtime/xstate/persisted-snapshot.ts'
import type { WrittenState, WrittenTransition } from '../../../runtime/xstate/written-chart.ts'
import { guardName } from '../../../runtime/xstate/written-chart.ts'
import { reachOf, StaleTimers, ChartWalk, type WalkNode } from './walk.ts'

/**
 * What a stored task does with the new chart. `same`: it goes on the same way. `otherwise`: it goes on, and differs.
 * `other answer`: it waits for an answer in another form. `depends`: code decides whose text has changed.
 * `unknown`: the chart has more configurations than are followed. `never ends`: only a cancel, a deadline or an
 * error ends it. `not restored`: it fails when it is restored.
 */
export type ChangeVerdict =
  | 'same'
  | 'otherwise'
  | 'other answer'
  | 'depends'
  | 'unknown'
  | 'never ends'
  | 'not restored'

/** The verdict on a stored task with the new code. `not compared`: it is restored, but what stored it is not known. */
export type StoredVerdict = ChangeVerdict | 'not compared'

/** Code that decides, whose text has changed, and what follows if it is a guard. */
export interface ChangedCode {
  readonly kind: CodePart['kind'] | 'module' | 'migrate'
  readonly name: string
  /** A clause: `the guard isAdult, whose source changed`. */
  readonly says: string
  /** The name of the transition in which it is written, if it is written in one. */
  readonly transition?: string
  /** For a guard: where it decides, and the endings to which a way leads if it always holds, and if it never does. */
  readonly ways?: {
    readonly places: readonly string[]
    readonly holds: readonly string[]
    readonly fails: readonly string[]
  }
}

/** A configuration in which stored tasks may be, and what becomes of them. */
export interface ConfigurationVerdict {
  /** XState's state value. */
  readonly state: unknown
  /** The states to which its history leads, by the ids of history states, if it has any. */
  readonly history?: Readonly<Record<string, readonly string[]>>
  readonly verdict: ChangeVerdict
  /** Clauses, the most important first; empty for `same`. */
  readonly reasons: readonly string[]
  readonly endings: { readonly added: readonly string[]; readonly removed: readonly string[] }
  readonly depends: readonly ChangedCode[]
}

/** The facts beside the charts that decide verdicts. */
export interface Surroundings {
  /** Whether both agents have the same version: then stored timers stay as they are. */
  readonly isSameVersion: boolean
  /** Whether a stored chart is migrated first. */
  readonly isMigrated: boolean
  /** The new names of what the old chart has; the new one has the old names here. */
  readonly names?: Names | undefined
  /** Whether work may be restarted from its beginning. */
  readonly mayRestart: boolean
  /** Options of the agent that decide how its tasks go on, and that differ; as clauses. */
  readonly options: readonly string[]
  /** Local modules that differ. */
  readonly modules: readonly ChangedCode[]
}
/** The maximum number of configurations that are followed. */
const MOST_CONFIGURATIONS = 20_000

/** The verdicts on every configuration that stored tasks of a chart can be in, each made when it is asked for. */
export class ChartVerdicts {
  readonly #make: () => Walked
  readonly #made = new Map<WalkNode, ConfigurationVerdict>()
  #walked: Walked | undefined

  constructor(before: ChartParts, after: ChartParts, around: Surroundings, most = MOST_CONFIGURATIONS) {
    this.#make = () => {
      const old = new ChartWalk(before, () => true, most)
      const starts = old.begin()
      const stays = new StaleTimers(before, around.isSameVersion)
      const next = new ChartWalk(after, (transition, { stale }) => stays.mayHappen(transition, stale), most)
      const open = starts.length === 0 ? [] : old.nodes.filter(({ configuration }) => !configuration.isDone)
      return {
        judge: new Judge({ before, after, old, next, around, starts }),
        open,
        byKey: new Map(open.map(node => [placeKey(node.configuration.value, node.configuration.history), node])),
        isBegun: starts.length > 0,
        isCut: starts.length === 0 || old.nodes.length > most
      }
    }
  }

  get all(): ConfigurationVerdict[] {
    const { open, isBegun } = this.#walk
    return isBegun ? open.map(node => this.#verdictOn(node)) : [UNFOLLOWED]
  }

  /** The verdict on a configuration; `unknown` if the chart does not come to it, as far as it is followed. */
  at(state: unknown, history?: ConfigurationVerdict['history']): ConfigurationVerdict {
    const { byKey, isCut } = this.#walk
    const node = byKey.get(placeKey(state, history))
    if (node) return this.#verdictOn(node)
    const reason = isCut ? MORE_CONFIGURATIONS : 'the stored definition does not come to this configuration'
    return { ...UNFOLLOWED, state, reasons: [reason] }
  }

  get #walk(): Walked {
    return (this.#walked ??= this.#make())
  }

  #verdictOn(node: WalkNode): ConfigurationVerdict {
    const known = this.#made.get(node) ?? this.#walk.judge.verdictOn(node)
    this.#made.set(node, known)
    return known
  }
}

/** The open configurations of a chart, and who judges them. */
interface Walked {
  readonly judge: Judge
  readonly open: readonly WalkNode[]
  readonly byKey: ReadonlyMap<string, WalkNode>
  /** Whether its start is followed. */
  readonly isBegun: boolean
  /** Whether there are more than are followed. */
  readonly isCut: boolean
}

/** A configuration as a key. */
export function placeKey(state: unknown, history: ConfigurationVerdict['history'] = {}): string {
  return JSON.stringify([sortedValue(state), sortedValue(history)])
}

function sortedValue(value: unknown): unknown {
  return isObject(value)
    ? Object.fromEntries(
        Object.entries(value)
          .toSorted(([one], [other]) => (one < other ? -1 : 1))
          .map(([name, inner]) => [name, sortedValue(inner)])
      )
    : value
}

const MORE_CONFIGURATIONS = 'the chart has more configurations than are followed'

/** The verdict on a chart that has too many guards at its start. */
const UNFOLLOWED: ConfigurationVerdict = {
  state: 'any state',
  verdict: 'unknown',
  reasons: ['the chart evaluates more guards at its start than are followed'],
  endings: { added: [], removed: [] },
  depends: []
}
interface Compared {
  readonly before: ChartParts
  readonly after: ChartParts
  readonly old: ChartWalk
  readonly next: ChartWalk
  readonly around: Surroundings
  readonly starts: readonly WalkNode[]
}

/** The differences of a state: of its shape, as a clause, and of its code. */
interface Differences {
  readonly shape: string | undefined
  readonly code: readonly ChangedCode[]
}

type StoredChildren = NonNullable<PersistedSnapshot['children']>

const SPAWNED: ChangedCode = {
  kind: 'actor',
  name: 'spawned',
  says: 'the actors that a task has spawned, which its chart does not tell'
}

/** The actors that these states invoke as a snapshot has them, as far as a restore reads it. */
function childrenOf({ actorCharts }: ChartParts, states: readonly WrittenState[]): StoredChildren {
  const invoked = states.flatMap(({ invoke }) => invoke)
  return Object.fromEntries(
    invoked.map(({ id, storedSrc: src }) => [
      id,
      { src, snapshot: actorCharts.has(src) ? { status: 'done', value: {} } : { status: 'active' } }
    ])
  )
}

class Judge {
  readonly #given: Compared
  /** By the path of a state: what differs in it while it is active, and when it is entered. */
  readonly #active = new Map<string, Differences>()
  readonly #entry = new Map<string, Differences>()
  readonly #open: readonly ChangedCode[]

  constructor(given: Compared) {
    this.#given = given
    const { before, after } = given
    for (const [path, { state, active, entry }] of before.states) {
      const other = after.states.get(path)
      this.#active.set(path, this.#differencesOf(state, active, other?.active))
      this.#entry.set(path, this.#differencesOf(state, entry, other?.entry))
    }
    const all = ({ guards, actions, actors, delays, hasOpenNames }: ChartParts) =>
      hasOpenNames ? [...guards, ...actions, ...actors, ...delays] : []
    this.#open = this.#changedIn(all(before), all(after))
  }

  #differencesOf(state: WrittenState, before: Decisive, after: Decisive | undefined): Differences {
    if (!after) return { shape: `${nameOf(state)} is gone`, code: [] }
    const shape = before.shape === after.shape ? undefined : `${nameOf(state)} has changed`
    return { shape, code: this.#changedIn(before.code, after.code) }
  }

  verdictOn(node: WalkNode): ConfigurationVerdict {
    const { configuration } = node
    const { around, before, after, old, next, starts } = this.#given
    const reach = reachOf([node, ...(around.mayRestart ? starts : [])], old)
    const paths = around.mayRestart ? [...before.states.keys()] : undefined
    const found = [
      ...Array.from(paths ?? reach.states, path => this.#active.get(path) as Differences),
      ...Array.from(paths ?? reach.entered, path => this.#entry.get(path) as Differences)
    ]
    const code = [
      ...found.flatMap(({ code }) => code),
      ...this.#open,
      ...(around.mayRestart ? this.#changedIn([before.context], [after.context]) : []),
      ...around.modules
    ]
    const depends = [...new Map(code.map(one => [`${one.kind} ${one.name}`, one])).values()]
    const given = {
      state: configuration.value,
      ...(Object.keys(configuration.history).length > 0 && { history: configuration.history })
    }
    const none = { added: [], removed: [] }
    const lost = this.#misfitOf(configuration)
    if (around.isMigrated) {
      const migrated: ChangedCode = {
        kind: 'migrate',
        name: 'migrate',
        says: 'migrate, which converts the stored chart'
      }
      const reasons = lost === undefined ? [] : [`without migrate it could not be restored: ${lost}`]
      return { ...given, verdict: 'depends', reasons, endings: none, depends: [migrated, ...depends] }
    }
    if (lost !== undefined && this.#isHelpedBySpawned(configuration))
      return {
        ...given,
        verdict: 'depends',
        reasons: [`without a spawned actor: ${lost}`],
        endings: none,
        depends: [SPAWNED]
      }
    if (lost !== undefined) return { ...given, verdict: 'not restored', reasons: [lost], endings: none, depends: [] }
    const restored = next.from(next.skeleton.restore(configuration))
    const now = reachOf([restored, ...(around.mayRestart ? next.begin() : [])], next)
    const endings = { added: without(now.endings, reach.endings), removed: without(reach.endings, now.endings) }
    const isCut = reach.isCut || now.isCut
    const form = this.#formChange(configuration)
    const timers = this.#timerChanges(configuration)
    const differs = [...around.options, ...timers, ...found.flatMap(({ shape }) => shape ?? [])]
    const reasons = [...(form === undefined ? [] : [form]), ...new Set(differs)]
    const result = { ...given, endings, reasons, depends: depends.map(one => this.#withWays(one, restored)) }
    if (isCut)
      return {
        ...result,
        verdict: 'unknown',
        endings: none,
        reasons: [MORE_CONFIGURATIONS, ...reasons]
      }
    if (reach.endings.size > 0 && now.endings.size === 0) return { ...result, verdict: 'never ends' }
    if (form !== undefined) return { ...result, verdict: 'other answer' }
    if (differs.length + endings.added.length + endings.removed.length > 0) return { ...result, verdict: 'otherwise' }
    return { ...result, verdict: depends.length > 0 ? 'depends' : 'same' }
  }

  #changedIn(before: readonly CodePart[], after: readonly CodePart[]): ChangedCode[] {
    return before.flatMap((part): ChangedCode[] => {
      const { kind, name, isNamed } = part
      const other = after.find(one => one.kind === kind && one.name === name)
      const how = this.#howChanged(part, other)
      if (how === undefined) return []
      const says = `${isNamed ? `the ${kind} ${name}` : name}, ${how}`
      return [{ kind, name, says, ...(other?.transition !== undefined && { transition: other.transition }) }]
    })
  }

  /** How code differs, as a clause; `undefined` if it does not. */
  #howChanged(part: CodePart, other: CodePart | undefined): string | undefined {
    if (!other) return part.isNamed ? 'which is gone' : 'which is written otherwise'
    if (part.code.isHidden || other.code.isHidden) return 'whose source cannot be read'
    if (part.code.digest !== other.code.digest) return 'whose source changed'
    const reads = readOtherwise(part, other)
    return reads.length === 0 ? undefined : `which reads ${reads.join(' and ')}, which changed`
  }

  /** A guard with the endings of both ways. */
  #withWays(one: ChangedCode, restored: WalkNode): ChangedCode {
    if (one.kind !== 'guard') return one
    const { after, next } = this.#given
    const own = after.chart.transitions.filter(({ guard, name }) =>
      guard?.kind === 'named' ? guard.name === one.name : guard !== undefined && name === one.transition
    )
    const names = new Set(own.map(({ name }) => name))
    const always = (isHeld: boolean) =>
      reachOf([restored], next, ({ held, failed }) => !overlaps(isHeld ? failed : held, names)).endings
    return {
      ...one,
      ways: { places: own.map(waysText), holds: [...always(true)].toSorted(), fails: [...always(false)].toSorted() }
    }
  }

  /** Whether a task is restored if it has spawned the actors that are invoked now. A chart does not tell which it has. */
  #isHelpedBySpawned(configuration: ChartConfiguration): boolean {
    const { before, after } = this.#given
    return before.hasOpenNames && this.#misfitOf(configuration, childrenOf(after, after.chart.states)) === undefined
  }

  /** Why a stored task is not restored, as a clause; `undefined` if it is. `spawned`: actors that it has besides. */
  #misfitOf(configuration: ChartConfiguration, spawned: StoredChildren = {}): string | undefined {
    const { after, around } = this.#given
    const stored = this.#storedAt(configuration)
    try {
      const named = around.names?.snapshotOf(stored) ?? stored
      return misfit(
        after.machine as AnyStateMachine,
        { ...named, children: { ...spawned, ...named.children } },
        'the work'
      )
    } catch (error) {
      return (error as Error).message
    }
  }

  /** The snapshot of a stored task, as far as a restore reads it. */
  #storedAt(configuration: ChartConfiguration): PersistedSnapshot {
    const { old, before } = this.#given
    return {
      status: 'active',
      value: configuration.value,
      historyValue: Object.fromEntries(
        Object.entries(configuration.history).map(([id, ids]) => [id, ids.map(id => ({ id }))])
      ),
      children: childrenOf(before, old.statesIn(configuration))
    }
  }

  /** How the form of the answer differs that a configuration waits for, as a clause. */
  #formChange(configuration: ChartConfiguration): string | undefined {
    const { old, after } = this.#given
    for (const state of old.statesIn(configuration)) {
      const form = answerFormOf(state)
      const other = after.states.get(pathOf(state))
      if (!form || !other) continue
      const now = answerFormOf(other.state)
      if (!now) return `${nameOf(state)} no longer asks`
      if (JSON.stringify(form) !== JSON.stringify(now))
        return `${nameOf(state)} asks for another form: ${answerFormText(form)} before, ${answerFormText(now)} now`
    }
    return undefined
  }

  /** The changes of the timers of a stored configuration, as clauses. */
  #timerChanges(configuration: ChartConfiguration): string[] {
    const { old, after, around } = this.#given
    return old.statesIn(configuration).flatMap(state => {
      // All states of a configuration that is restored are there.
      const { state: other } = after.states.get(pathOf(state)) as StateParts
      const now = other.transitions.filter(({ member }) => member === 'after')
      const timers = state.transitions.filter(({ member }) => member === 'after')
      const events = new Set(timers.map(({ event }) => event))
      if (around.isSameVersion) {
        const gone = [...events].filter(event => !now.some(other => other.event === event))
        const added = now.filter(({ event }) => !events.has(event))
        return [
          ...gone.map(event => `its timer "${eventName(event)}" leads nowhere when it fires`),
          ...added.map(
            ({ event }) => `"${eventName(event)}" of ${nameOf(state)} is not started for it: the version is the same`
          )
        ]
      }
      const wakes = [...events].filter(event =>
        mayStay(
          timers.filter(one => one.event === event),
          state
        )
      )
      return wakes.map(
        event => `"${eventName(event)}" of ${nameOf(state)} starts again if it has fired: the version differs`
      )
    })
  }
}

/** Whether a state may still be active after its timer has fired. */
function mayStay(timers: readonly WrittenTransition[], state: WrittenState): boolean {
  const leaves = ({ targets, reenter }: WrittenTransition) =>
    targets.length > 0 && (reenter || !targets.every(target => target !== state && isWithin(target, state)))
  return !timers.some(({ guard }) => guard === undefined) || !timers.every(leaves)
}

/** The names at the top of its module that code reads with another value; none if modules of a side were not read. */
function readOtherwise({ reads: had }: CodePart, { reads: has }: CodePart): string[] {
  if (!had || !has) return []
  return [...new Set([...Object.keys(had), ...Object.keys(has)])].filter(name => had[name] !== has[name])
}

function without(all: ReadonlySet<string>, others: ReadonlySet<string>): string[] {
  return [...all].filter(one => !others.has(one)).toSorted()
}

function overlaps(some: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  return [...some].some(one => others.has(one))
}

/** Where a guard decides: `asking on message.received: serving if it holds, else refused`. */
function waysText({ source, event, guard, targets }: WrittenTransition): string {
  const alike = source.transitions.filter(one => one.event === event)
  const next = alike[alike.findIndex(one => one.guard === guard) + 1]
  const leads = (all: readonly WrittenState[]) => (all.length === 0 ? 'it stays' : all.map(nameOf).join(' and '))
  const other = next
    ? `${next.guard ? `the next, if ${guardName(next.guard)}: ` : ''}${leads(next.targets)}`
    : 'nothing'
  return `${nameOf(source)} on ${event === '' ? 'its own' : eventName(event, source.invoke)}: ${leads(targets)} if it holds, else ${other}`
}
