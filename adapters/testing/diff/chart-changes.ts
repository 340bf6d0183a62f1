import { eventName } from '../../../machines/xstate-names.ts'
import {
  answerFormOf,
  answerFormText,
  type ChartParts,
  type CodePart,
  type Names,
  nameOf,
  pathOf,
  type StateParts
} from '../../../runtime/work-port.ts'
import type {
  WrittenAction,
  WrittenActor,
  WrittenState,
  WrittenTransition
} from '../../../runtime/xstate/written-chart.ts'
import { actionName, guardName } from '../../../runtime/xstate/written-chart.ts'
import type { DifferenceMarks } from '../../drawing/merged-chart.ts'

/** A difference between two charts, or between the agents around them. */
export interface Change {
  readonly part:
    | 'state'
    | 'transition'
    | 'guard'
    | 'action'
    | 'timer'
    | 'question'
    | 'actor'
    | 'code'
    | 'option'
    | 'module'
  readonly change: 'added' | 'removed' | 'renamed' | 'changed'
  /** Its name: a path of a state, the name of a transition, of code, an option or a file. */
  readonly name: string
  /** The new name of what was renamed. */
  readonly to?: string
  /** A sentence without a period. */
  readonly says: string
  /** The text before the change, and after it. */
  readonly before?: string
  readonly after?: string
}

/** The differences of two charts, and the states and transitions that a drawing marks. */
export interface ChartDifference {
  readonly changes: readonly Change[]
  readonly marks: DifferenceMarks
}

/** Compares two charts part by part. `names`: the new ones that the agent gives to what the old chart has. */
export function chartChanges(before: ChartParts, after: ChartParts, names?: Names): ChartDifference {
  return new Comparison(before, after, names).run()
}

class Comparison {
  readonly #before: ChartParts
  readonly #after: ChartParts
  readonly #names: Names | undefined
  readonly #changes: Change[] = []
  readonly #marks = { added: new Set<string>(), removed: new Set<string>(), changed: new Set<string>() }
  /** The states of both. */
  readonly #pairs = new Map<WrittenState, WrittenState>()

  constructor(before: ChartParts, after: ChartParts, names: Names | undefined) {
    this.#before = before
    this.#after = after
    this.#names = names
  }

  run(): ChartDifference {
    this.#pair(this.#before.chart.root, this.#after.chart.root)
    const isNow = new Set(this.#pairs.values())
    for (const state of this.#before.chart.states) {
      if (this.#pairs.has(state)) continue
      this.#marks.removed.add(state.id)
      for (const { name } of state.transitions) this.#marks.removed.add(name)
      this.#add({ part: 'state', change: 'removed', name: pathOf(state), says: `the state ${pathOf(state)} is gone` })
    }
    for (const state of this.#after.chart.states) {
      if (isNow.has(state)) continue
      this.#marks.added.add(state.id)
      for (const { name } of state.transitions) this.#marks.added.add(name)
      this.#add({ part: 'state', change: 'added', name: pathOf(state), says: `the state ${pathOf(state)} is new` })
    }
    const order = (state: WrittenState) => this.#after.chart.states.indexOf(state)
    for (const [one, other] of [...this.#pairs].toSorted(([, a], [, b]) => order(a) - order(b)))
      this.#compare(one, other)
    for (const kind of ['actors', 'guards', 'actions', 'delays'] as const)
      this.#compareNamed(this.#before[kind], this.#after[kind])
    this.#compareInline()
    const states = new Map(Array.from(this.#pairs, ([{ id }, other]) => [id, other.id]))
    return { changes: this.#changes, marks: { ...this.#marks, states } }
  }

  #add(change: Change): void {
    this.#changes.push(change)
  }

  /** Pairs two states, and their children: by their names now, then those with another key that are alike. */
  #pair(one: WrittenState, other: WrittenState): void {
    this.#pairs.set(one, other)
    const keyNow = ({ key, path }: WrittenState) => this.#names?.pathOf(path).at(-1) ?? key
    const gone = one.states.filter(state => !other.states.some(({ key }) => key === keyNow(state)))
    const added = other.states.filter(({ key }) => !one.states.some(state => keyNow(state) === key))
    for (const state of one.states) {
      const same = other.states.find(({ key }) => key === keyNow(state))
      if (!same) continue
      if (same.key !== state.key) this.#addRenamed(state, same)
      this.#pair(state, same)
    }
    for (const state of gone) {
      const alike = added.filter(candidate => likenessOf(candidate) === likenessOf(state))
      const others = gone.filter(candidate => likenessOf(candidate) === likenessOf(state))
      const [renamed] = alike
      if (!renamed || alike.length > 1 || others.length > 1) continue
      this.#addRenamed(state, renamed)
      this.#pair(state, renamed)
    }
  }

  #addRenamed(state: WrittenState, renamed: WrittenState): void {
    const [name, to] = [pathOf(state), pathOf(renamed)]
    this.#add({ part: 'state', change: 'renamed', name, to, says: `the state ${name} is now named ${to}` })
    this.#marks.changed.add(renamed.id)
  }

  #compare(one: WrittenState, other: WrittenState): void {
    const name = nameOf(other)
    const differs = (part: Change['part'], what: string, before: string, after: string) => {
      if (before === after) return
      this.#marks.changed.add(other.id)
      this.#add({
        part,
        change: 'changed',
        name: pathOf(other),
        before,
        after,
        says: `${name}: ${what} is ${after} instead of ${before}`
      })
    }
    differs('state', 'its type', one.type, other.type)
    if (one.type === other.type)
      differs(
        'state',
        'its initial state',
        keysOf(one.initial.map(state => this.#pairs.get(state) ?? state)),
        keysOf(other.initial)
      )
    differs('question', 'its tags', listOf(one.tags), listOf(other.tags))
    differs('question', 'the form of its answer', formOf(one), formOf(other))
    differs('question', 'its prompt', textOf(one.meta?.['prompt']), textOf(other.meta?.['prompt']))
    differs('action', 'its entry', actionsOf(one.entry), actionsOf(other.entry))
    differs('action', 'its exit', actionsOf(one.exit), actionsOf(other.exit))
    this.#compareInvoked(one.invoke, other.invoke, other)
    const kinds = new Set([...one.transitions, ...other.transitions].map(kindOf))
    for (const kind of kinds) {
      const of = ({ transitions }: WrittenState) => transitions.filter(each => kindOf(each) === kind)
      this.#compareTransitions(of(one), of(other))
    }
  }

  #compareInvoked(before: readonly WrittenActor[], after: readonly WrittenActor[], state: WrittenState): void {
    const nameOfActor = ({ id, src, hasOwnId }: WrittenActor) =>
      hasOwnId && src !== undefined && id !== src ? `${src} as ${id}` : (src ?? id)
    const now = ({ id, src, ...actor }: WrittenActor): WrittenActor => ({
      ...actor,
      id: this.#names?.idOf(id) ?? id,
      src: src && (this.#names?.sourceOf(src) ?? src)
    })
    const [had, has] = [before.map(actor => nameOfActor(now(actor))), after.map(nameOfActor)]
    const say = (change: 'added' | 'removed', actor: string, says: string) => {
      this.#marks.changed.add(state.id)
      this.#add({ part: 'actor', change, name: actor, says })
    }
    for (const actor of had)
      if (!has.includes(actor)) say('removed', actor, `${nameOf(state)} no longer invokes ${actor}`)
    for (const actor of has)
      if (!had.includes(actor)) say('added', actor, `${nameOf(state)} invokes ${actor}, which is new there`)
  }

  #compareTransitions(before: readonly WrittenTransition[], after: readonly WrittenTransition[]): void {
    const targetsOf = ({ targets }: WrittenTransition) =>
      targets.map(target => pathOf(this.#pairs.get(target) ?? target)).join(' and ')
    const keyOf = (one: WrittenTransition, targets: string) => JSON.stringify([one.delay, guardOf(one), targets])
    const rest = [...after]
    const pairs: (readonly [WrittenTransition, WrittenTransition | undefined])[] = before.map(one => {
      const at = rest.findIndex(
        other => keyOf(other, other.targets.map(pathOf).join(' and ')) === keyOf(one, targetsOf(one))
      )
      return [one, at < 0 ? undefined : rest.splice(at, 1)[0]]
    })
    for (const [one, same] of pairs) {
      const other = same ?? rest.shift()
      if (other) this.#comparePair(one, other, targetsOf(one))
      else this.#sayGone(one)
    }
    for (const other of rest) this.#sayNew(other)
  }

  #comparePair(one: WrittenTransition, other: WrittenTransition, targets: string): void {
    const place = `${nameOf(other.source)} on ${occasionIn(one)}`
    const isTimer = one.member === 'after'
    const differs = (part: Change['part'], before: string, after: string, says: string) => {
      if (before === after) return
      this.#marks.changed.add(other.name)
      this.#add({ part, change: 'changed', name: other.name, before, after, says: `${place}: ${says}` })
    }
    const now = other.targets.map(pathOf).join(' and ')
    const leads = (to: string) => (to === '' ? 'stays' : `leads to ${to}`)
    differs(
      'timer',
      isTimer ? delayText(one) : '',
      isTimer ? delayText(other) : '',
      `the timer is ${delayText(other)} instead of ${delayText(one)}`
    )
    differs('transition', targets, now, `it ${leads(now)}, and before it ${leads(targets)}`)
    differs('guard', guardOf(one), guardOf(other), `its guard is ${guardOf(other)} instead of ${guardOf(one)}`)
    differs(
      'action',
      actionsOf(one.actions),
      actionsOf(other.actions),
      `its actions are ${actionsOf(other.actions)} instead of ${actionsOf(one.actions)}`
    )
    differs(
      'transition',
      String(one.reenter),
      String(other.reenter),
      `it ${other.reenter ? 'enters its state again' : 'no longer enters its state again'}`
    )
  }

  #sayGone(one: WrittenTransition): void {
    this.#marks.removed.add(one.name)
    this.#add({
      part: partOf(one),
      change: 'removed',
      name: one.name,
      says: `${nameOf(one.source)} no longer has "${textIn(one)}"`
    })
  }

  #sayNew(other: WrittenTransition): void {
    this.#marks.added.add(other.name)
    this.#add({
      part: partOf(other),
      change: 'added',
      name: other.name,
      says: `${nameOf(other.source)} has "${textIn(other)}", which is new`
    })
  }

  /** Code with a name: added, gone, renamed if its text is the same, and changed. */
  #compareNamed(before: readonly CodePart[], after: readonly CodePart[]): void {
    const gone = before.filter(({ name }) => !after.some(other => other.name === name))
    const added = after.filter(({ name }) => !before.some(other => other.name === name))
    const renamed = new Map<CodePart, CodePart>()
    for (const one of gone) {
      const named = added.find(({ name }) => one.kind === 'actor' && name === this.#names?.sourceOf(one.name))
      const alike = named ? [named] : added.filter(({ code }) => code.digest === one.code.digest && !code.isHidden)
      const [to] = alike
      if (to && alike.length === 1 && ![...renamed.values()].includes(to)) renamed.set(one, to)
    }
    const partFor = (kind: CodePart['kind']) =>
      kind === 'actor' || kind === 'guard' || kind === 'action' ? kind : 'timer'
    for (const one of gone) {
      const { kind, name } = one
      const to = renamed.get(one)?.name
      if (to === undefined)
        this.#add({ part: partFor(kind), change: 'removed', name, says: `the ${kind} ${name} is gone` })
      else
        this.#add({ part: partFor(kind), change: 'renamed', name, to, says: `the ${kind} ${name} is now named ${to}` })
    }
    for (const other of added) {
      if ([...renamed.values()].includes(other)) continue
      this.#add({
        part: partFor(other.kind),
        change: 'added',
        name: other.name,
        says: `the ${other.kind} ${other.name} is new`
      })
    }
    for (const one of before) {
      const other = renamed.get(one) ?? after.find(({ name }) => name === one.name)
      if (other) this.#compareCode(one, other)
    }
  }

  #compareCode(one: CodePart, other: CodePart): void {
    if (one.code.digest === other.code.digest) return
    const what = one.isNamed ? `the ${one.kind} ${one.name}` : one.name
    this.#add({
      part: 'code',
      change: 'changed',
      name: one.name,
      before: one.code.source,
      after: other.code.source,
      says: `the source of ${what} has changed`
    })
  }

  /** Code that is written inline. */
  #compareInline(): void {
    for (const [one, other] of this.#pairs) {
      const inlineOf = ({ states }: ChartParts, state: WrittenState) => {
        const { active, entry } = states.get(pathOf(state)) as StateParts
        return [...active.code, ...entry.code].filter(({ isNamed }) => !isNamed)
      }
      const after = inlineOf(this.#after, other)
      for (const part of inlineOf(this.#before, one)) {
        const same = after.find(({ kind, name }) => kind === part.kind && name === part.name)
        if (!same || same.code.digest === part.code.digest) continue
        this.#marks.changed.add(other.id)
        this.#compareCode(part, same)
      }
    }
  }
}

/** The text of a state without its name and the targets of its transitions, equal for a state that was renamed. */
function likenessOf(state: WrittenState): string {
  const { type, tags, meta = {}, transitions, entry, exit, invoke, states } = state
  return JSON.stringify([
    type,
    tags,
    textOf(meta['prompt']),
    formOf(state),
    transitions.map(one => [kindOf(one), delayText(one), guardOf(one)]),
    actionsOf(entry),
    actionsOf(exit),
    invoke.map(({ src }) => src),
    states.map(({ key }) => key)
  ])
}

/** The kind of a transition's trigger: an event, a timer, the end of an actor. */
function kindOf(one: WrittenTransition): string {
  return one.member === 'after' ? 'after' : occasionIn(one)
}

function occasionIn({ source, event, member }: WrittenTransition): string {
  if (member === 'onDone') return 'its states are done'
  return event === '' ? 'its own' : eventName(event, source.invoke)
}

function textIn(one: WrittenTransition): string {
  const guard = one.guard ? ` [${guardOf(one)}]` : ''
  return `${occasionIn(one)}${guard} ${one.targets.length === 0 ? 'stays' : `→ ${one.targets.map(pathOf).join(' and ')}`}`
}

function partOf({ member }: WrittenTransition): Change['part'] {
  return member === 'after' ? 'timer' : 'transition'
}

function delayText({ delay }: WrittenTransition): string {
  return typeof delay === 'number' ? `${delay} ms` : (delay ?? '')
}

function guardOf({ guard }: WrittenTransition): string {
  return guard ? guardName(guard) : 'none'
}

function actionsOf(actions: readonly WrittenAction[]): string {
  return listOf(actions.map(actionName))
}

function keysOf(states: readonly WrittenState[]): string {
  return listOf(states.map(({ key }) => key))
}

function listOf(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.join(', ')
}

function formOf(state: WrittenState): string {
  const form = answerFormOf(state)
  return form ? answerFormText(form) : 'none'
}

function textOf(words: unknown): string {
  return typeof words === 'function' ? 'a function' : (JSON.stringify(words) ?? 'none')
}
